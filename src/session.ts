/**
 * The parts of a client that exist once, for all kinds of lock: its interface to Redis (`Backend`), its id and inbox,
 * its statistics, and `close`.
 *
 *      LockClient ──▶ Session ─┬─▶ Locks of one kind ─┬─▶ Scripts of that kind ──▶ Backend ──▶ Redis
 *                              └─▶ Locks of another ──┘                               │
 *                                        ▲            messages, up, down              │
 *                                        └────────────────────────────────────────────┘
 *
 * If a message is about a lock, the lock's name says to which kind the message goes. If a message is about a hold, it
 * goes to the kind that knows the hold's id.
 */
import type { Backend } from './backend.ts'
import { awake, type Clock, type Timer } from './clock.ts'
import { LockClosedError } from './errors.ts'
import type { Named } from './key/table.ts'
import type { KindDefinition } from './kind.ts'
import { type ClientContext, KindClient, type Observer } from './kind-client.ts'
import { Lookup } from './lookup.ts'
import { type ClientStats, Stats } from './observe/stats.ts'
import type { LinkListener } from './redis/link.ts'
import { Reentry } from './reentry.ts'
import type { Settings } from './settings.ts'

/**
 * `close` releases holds and withdraws waiters in the background, and waits for the answers of Redis. If no answer
 * comes for this many ms, `close` stops waiting. The remaining holds then end in Redis when their leases expire, and
 * the remaining waiters when their entries in the queue expire.
 */
const CLOSE_PATIENCE = 2_000

export class Session {
  /** The clock of everything in this client. */
  readonly clock: Clock
  readonly #backend: Backend
  readonly #context: { -readonly [K in keyof ClientContext]: ClientContext[K] }
  readonly #stats: Stats
  readonly #named: Named = new Lookup()
  /** The kinds of lock in use. `#all` has the locks of each kind at the same index. */
  readonly #kinds: object[] = []
  readonly #all: KindClient[] = []
  /**
   * The first part of the names of read-write locks in Redis. A read-write lock is two kinds of lock in this client,
   * one for readers and one for writers. A kind is one of these two if the `root` of its keys equals this text.
   * Undefined: this client has not used a read-write lock yet.
   */
  #sides: string | undefined
  /**
   * The drain: the time that `close` gives holders to release their locks. `end`: when it is over, in monotonic ms.
   * Undefined: it has not begun, or it is over.
   */
  #drain: { end: number; timer: Timer | undefined; over(): void } | undefined
  /** The latest reason why the connection was down. Undefined: no attempt to connect has failed yet. */
  #down: Error | undefined
  #closing: Promise<void> | undefined

  /**
   * `connect` makes the session's interface to Redis. Everything that arrives from Redis is passed to its `listener`.
   */
  constructor(
    connect: (listener: LinkListener) => Backend,
    settings: Settings,
    clock: Clock,
    observer: Observer,
    stats = new Stats(),
  ) {
    this.clock = clock
    this.#stats = stats
    const failed = (error: unknown) => {
      if (!(error instanceof LockClosedError)) observer.tell('error', error as Error)
    }
    const backend = connect({
      onGranted: (id, grant, lock) => {
        const wanted = this.#named.get(id)?.granted(grant, clock.now())
        if (!wanted && !this.#all.some(({ withdrawals }) => withdrawals.planned(id))) this.#giveBack(id, lock)
      },
      onTaken: (id, token, why) => this.#named.get(id)?.taken(token, why),
      onUnlocked: (lock, by) => {
        // This client needs no message about its own release, because it gets the reply to that release. A read-write
        // lock is an exception. Its readers and its writers are two kinds of lock in this client. The reply reaches
        // only one of the two kinds, so the other one needs the message.
        const own = by === backend.ids.client
        if (own && !this.#sides) return
        this.#about(lock, (client, key) => {
          if (!own || client.keys.root === this.#sides) client.onUnlocked(key)
        })
      },
      onEntered: (lock, owner) => this.#about(lock, (client, key) => client.onEntered(key, owner)),
      onEnds: (lock, ms) => this.#about(lock, ({ requests }, key) => requests.look(key, ms)),
      onDown: (error, brief) => {
        this.#down = brief ? undefined : error
        for (const { requests } of this.#all) requests.onDisconnected(error, brief)
      },
      onUp: () => {
        for (const { requests } of this.#all) requests.onReconnected()
      },
      onMoved: affects => {
        for (const { withdrawals, kind } of this.#all) withdrawals.sendAgain(key => affects(kind.placeOf(key)))
      },
      onMessagesResumed: lock => {
        if (lock !== undefined) this.#about(lock, (client, key) => client.onMessagesResumed(key))
        else for (const client of this.#all) client.onMessagesResumed()
      },
      onDisconnected: error => observer.tell('disconnected', error),
      onReconnected: () => observer.tell('reconnected'),
      onWarning: failed,
      busy: () => this.#waiting + this.#held > 0,
    })
    this.#backend = backend
    this.#context = {
      backend,
      clock,
      settings,
      stats,
      failed,
      observer,
      closedTo: (keys, key, owner) => owner === undefined || !this.#holds(keys.root, key, owner),
      closing: false,
      reentry: new Reentry(),
      named: this.#named,
      onEnded: () => this.#ended(),
    }
    backend.open()
  }

  /** Returns the `Locks` of a kind. The first call for a kind makes this object. */
  locks<State, S>(kind: KindDefinition<State, S>): KindClient<State> {
    const known = this.#all[this.#kinds.indexOf(kind)]
    if (known) return known as KindClient<State>
    const backend = this.#backend
    const made = backend.make(kind, this.#context.failed)
    const client = new KindClient(this.#context, kind.name, made.kind, made.keys)
    if (this.#all.some(({ keys }) => keys.root === made.keys.root)) this.#sides = made.keys.root
    this.#kinds.push(kind)
    this.#all.push(client)
    if (!backend.up && this.#down) client.requests.onDisconnected(this.#down)
    else if (!backend.up) client.requests.onUnconnected()
    return client
  }

  /**
   * Finds the locks of these kinds that match the pattern and have a holder or a queue, each at most once, in no
   * particular order. Does not add the kinds to `#kinds`.
   */
  async *list<State>(kinds: readonly KindDefinition<State>[], pattern: string): AsyncGenerator<State, void, undefined> {
    const made = kinds.map(kind => this.#backend.make(kind, this.#context.failed))
    const all = made.map(({ keys }) => keys)
    for await (const page of this.#backend.list(all, pattern)) {
      const found = page.map(([kind, key]) => made[kind]!.kind.inspection.find(key))
      for (const state of await Promise.all(found)) if (state !== undefined) yield state
    }
  }

  /** What the locks of this client share. */
  get context(): ClientContext {
    return this.#context
  }

  get closed(): boolean {
    return this.#closing !== undefined
  }

  stats(): ClientStats {
    return this.#stats.snapshot(this.#waiting, this.#held)
  }

  /**
   * Gives holders `drain` ms to release their locks, and then closes. Meanwhile, the only calls that are accepted are
   * those that re-enter a hold. Another call of `close` can shorten the time that holders have left, but not prolong it.
   */
  close(drain: number): Promise<void> {
    if (!this.#closing) {
      // `#closing` is set first. `refuse` calls listeners, which may call this client again and must find it closed.
      const drained = new Promise<void>(over => {
        this.#drain = { end: Number.POSITIVE_INFINITY, timer: undefined, over }
      })
      this.#closing = drained.then(() => this.#close())
      this.#context.closing = true
      this.#ended()
    }
    const end = this.clock.now() + drain
    if (!this.#drain || end >= this.#drain.end) return this.#closing
    this.#drain.timer?.cancel()
    this.#drain.end = end
    if (drain > 0) this.#drain.timer = this.clock.after(drain, () => this.#endDrain())
    else this.#endDrain()
    return this.#closing
  }

  #endDrain(): void {
    const drain = this.#drain
    if (!drain) return
    // A listener of the events below may call `close` again, and must find that the drain is over.
    this.#drain = undefined
    drain.timer?.cancel()
    for (const { holding } of this.#all) holding.loseAll()
    drain.over()
  }

  get #waiting(): number {
    return this.#all.reduce((sum, { waiting }) => sum + waiting, 0)
  }

  get #held(): number {
    return this.#all.reduce((sum, { held }) => sum + held, 0)
  }

  /** The two sides of a read-write lock are two kinds with the same `root`. A hold of one side counts for both. */
  #holds(root: string, key: string, owner: string): boolean {
    return this.#all.some(locks => locks.keys.root === root && locks.holds(key, owner))
  }

  /**
   * Called when the client is closed, and when a hold ends after that. Waiters that would have re-entered the hold are
   * refused.
   */
  #ended(): void {
    // After the drain, `#close` refuses all waiters at once.
    if (!this.#drain) return
    for (const locks of this.#all) locks.refuse()
    if (this.#held === 0) this.#endDrain()
  }

  async #close(): Promise<void> {
    const backend = this.#backend
    const { reachable } = backend
    const left = Promise.all(this.#all.map(client => client.end()))
    if (reachable) await this.#takenBack(left.then(() => backend.rest()))
    backend.close()
    for (const locks of this.#all) locks.close()
    await left
  }

  /**
   * Resolves when Redis has answered every release in the background, or when Redis has answered nothing for
   * `CLOSE_PATIENCE` ms.
   */
  async #takenBack(left: Promise<unknown>): Promise<void> {
    // While this process is busy sending thousands of releases, it reads no answers. So the time is measured on a clock
    // that counts only the time in which this process could read answers.
    const clock = awake(this.#context.clock)
    const begun = clock.now()
    let done = false
    const over = left.then(() => {
      done = true
    })
    for (;;) {
      const wait = Math.max(begun, this.#backend.answeredAt) + CLOSE_PATIENCE - clock.now()
      if (done || wait <= 0) return
      let timer: Timer | undefined
      const pause = new Promise<void>(resolve => {
        timer = clock.after(wait, resolve)
      })
      await Promise.race([over, pause])
      timer?.cancel()
    }
  }

  /** Releases, in Redis, a grant that no waiter wants. The lock's name says which kind of lock it is. */
  #giveBack(id: string, lock: string): void {
    const locks = this.#all.find(({ keys }) => keys.keyOf(lock) !== undefined)
    locks?.withdrawals.giveBack({ key: locks.keys.keyOf(lock) as string, id })
  }

  /**
   * Calls `tell` for each kind that has a lock of this name, with the lock's key. The two sides of a read-write lock
   * are two kinds whose locks have the same names.
   */
  #about(lock: string, tell: (client: KindClient, key: string) => unknown): void {
    for (const locks of this.#all) {
      const key = locks.keys.keyOf(lock)
      if (key !== undefined) tell(locks, key)
    }
  }
}

/**
 * The composition root: makes the parts of a client, connects them, and takes a request from its call to its lease.
 *
 *      LockClient ──▶ Session ─┬─▶ Acquirer ─┐
 *                             ├─▶ Holds ────┼─▶ Mutex (Kind) ──▶ Scripts ──▶ Link ──▶ Redis
 *                             └─▶ Inspection┘                                      │
 *                                     ▲                     messages, up, down     │
 *                                     └────────────────────────────────────────────┘
 */
import { awake, systemClock, type Timer } from './clock.ts'
import { type HolderInfo, LockClosedError, type LockConnectionError } from './errors.ts'
import type { Granted } from './kind.ts'
import { Inspection } from './kinds/mutex/inspection.ts'
import { Mutex } from './kinds/mutex/mutex.ts'
import { Drain } from './lease/drain.ts'
import { Holds } from './lease/holds.ts'
import { Lease } from './lease/lease.ts'
import { LossNews } from './lease/loss-news.ts'
import { LocalLocks } from './local/local-locks.ts'
import type { Waiter, Wish } from './local/waiter.ts'
import type { Announcer } from './observe/announce.ts'
import { type ClientStats, Stats } from './observe/stats.ts'
import type { Request, Settings } from './options.ts'
import type { RedisSource } from './redis/clients.ts'
import { newHoldId } from './redis/ids.ts'
import { Link } from './redis/link.ts'
import { Survey } from './redis/survey.ts'
import { Acquirer } from './wait/acquire.ts'
import { limited, patiently } from './wait/patience.ts'
import { Turns } from './wait/turns.ts'

/**
 * How long `close` waits for Redis to take what is given back, in ms, and goes on waiting while it takes more of it. What it did
 * not take ends with its lease, or with the expiry of the waiter.
 */
const CLOSE_PATIENCE = 2_000

const clock = systemClock

export class Session {
  readonly inspection: Inspection
  readonly #link: Link
  readonly #survey: Survey
  readonly #mutex: Mutex
  readonly #locks: LocalLocks
  readonly #acquirer: Acquirer
  readonly #holding: Holds
  readonly #lossNews: LossNews | undefined
  readonly #stats = new Stats()
  readonly #announcer: Announcer
  /** From the call of `close` on. */
  readonly #drain = new Drain(clock, () => this.#holding.loseAll())
  #closing: Promise<void> | undefined

  constructor(redis: RedisSource, settings: Settings, announcer: Announcer) {
    this.#announcer = announcer
    this.#link = new Link(redis, settings, clock, {
      granted: (id, token, via, lock) => {
        if (!this.#acquirer.grantedByMessage(id, token, via)) this.#strayGrant(id, token, lock)
      },
      lost: (id, token) => {
        this.#holding.doubt(id)
        this.#acquirer.lost(id, token)
      },
      unlocked: (key, by) => {
        // Of our own releases the reply tells.
        if (by !== this.#link.clientId) this.#acquirer.unlocked(key, by)
      },
      entered: (key, owner) => this.#acquirer.entered(key, owner),
      down: error => this.#acquirer.disconnected(error),
      up: () => {
        this.#acquirer.reconnected()
        this.#survey.look()
      },
      heard: key => {
        this.#acquirer.lookAgain(key)
        this.#holding.doubtAll(key)
      },
      disconnected: error => announcer.tell('disconnected', () => ({ error })),
      reconnected: () => announcer.tell('reconnected', () => ({})),
      warned: error => this.#failed(error),
      busy: () => this.#locks.waiting > 0 || this.#locks.holding > 0,
    })
    const { commands, keys, clientId } = this.#link
    this.#survey = new Survey(commands.redis, keys, clientId, settings, error => this.#failed(error))
    this.#mutex = new Mutex(this.#link.scripts, this.#link.keys, settings, this.#link.replicated)
    this.inspection = new Inspection(this.#link, this.#mutex, settings.tokenMemory)
    const patience = { waiterTtl: settings.waiterTtl, outage: settings.outageTimeout }
    const turns = new Turns(
      clock,
      key => this.#link.hears(key, 'unlock'),
      key => (this.#locks.get(key)?.waiting ?? 0) > 0,
    )
    this.#locks = new LocalLocks(turns, settings.outageTimeout)
    this.#acquirer = new Acquirer(this.#mutex, this.#link, clock, patience, this.#locks, {
      waiting: waiter => this.#waiting(waiter),
      doubt: (id, token) => this.#holding.doubt(id, token),
      trouble: () => this.#link.commands.trouble,
      failed: error => this.#failed(error),
    })
    this.#holding = new Holds(this.#mutex, clock, this.#locks, {
      renewed: ({ key, token: fencingToken }) => {
        this.#stats.renewed += 1
        announcer.tell('renewed', () => ({ key, fencingToken }))
      },
      released: ({ key, token: fencingToken }, held) => {
        this.#stats.released += 1
        this.#stats.held(held)
        announcer.tell('released', () => ({ key, fencingToken, held }))
      },
      lost: ({ key, token: fencingToken }, error, held) => {
        this.#stats.lost += 1
        this.#stats.held(held)
        announcer.tell('lost', () => ({ key, fencingToken, error }))
      },
      failed: error => this.#failed(error),
      idle: () => this.#idle(),
    })
    if (this.#link.inboxPerLock) {
      this.#lossNews = new LossNews(clock, this.#link, id => this.#holding.doubt(id))
    }
    this.#acquirer.unconnected()
    this.#link.open()
  }

  get closed(): boolean {
    return this.#closing !== undefined
  }

  /** Why Redis is out of reach, while it is. */
  get outage(): Error | undefined {
    return this.#acquirer.outage
  }

  /**
   * The lease, or the waiter that has to go without it: out of time, or refused its single attempt (`once`). `owner`:
   * undefined, if the call is its own. Rejects with errors that are not named yet.
   *
   * Thousands of calls may wait, so each keeps no more than one promise here, and what limits its patience only if something does.
   */
  acquire(key: string, owner: string | undefined, request: Request, once: boolean): Promise<Lease | Waiter> {
    if (this.closed) return Promise.reject(new LockClosedError())
    if (request.signal?.aborted) return Promise.reject(request.signal.reason)
    const id = newHoldId(this.#link.clientId)
    const wish: Wish = {
      claim: { key, id, owner: owner ?? id, label: request.label, lease: request.lease, headStart: request.headStart },
      mode: once ? 'once' : request.fair ? 'queue' : 'line',
      fairAfter: request.fairAfter,
      timeout: request.timeout,
      mayReenter: owner !== undefined,
      after: owner === undefined ? undefined : this.#holding.record(key, owner),
    }
    let waiter!: Waiter
    let lease: Lease | undefined
    const outcome = new Promise<Lease | Waiter>((resolve, reject) => {
      waiter = this.#acquirer.start(wish, (end, waiting) => {
        if (end instanceof Error) return reject(end)
        if (end) lease = this.#take(waiting, end, request)
        resolve(lease ?? waiting)
      })
    })
    const limits = { signal: request.signal, timeout: once ? undefined : request.timeout }
    if (!limited(limits)) return outcome
    const giveUp = () => {
      if (lease) this.releaseQuietly(lease)
      else this.#acquirer.quit(waiter)
      return waiter
    }
    return patiently(outcome, limits, giveUp, clock)
  }

  /** Why the end of this wait says nothing about the lock; undefined: somebody else has it. */
  unanswered(waiter: Waiter): LockConnectionError | undefined {
    return this.#acquirer.unanswered(waiter)
  }

  /** Counts a call that has ended without a lease. */
  without(how: 'refused' | 'timedOut' | 'failed'): void {
    this.#stats[how] += 1
  }

  /** Who keeps the waiter waiting, by the newest that this client knows, and for how long by now. */
  holder({ claim, refusal, since }: Waiter): HolderInfo | undefined {
    const holder = this.#holding.holder(claim.key, refusal?.sent ?? since) ?? refusal?.holder
    return holder && { label: holder.label, heldFor: Math.max(0, clock.now() - holder.since) }
  }

  /** For releases whose failure must not hide something more important: it becomes an event, and resolves false. */
  releaseQuietly(lease: Lease): Promise<boolean> {
    return this.#holding.quietly(lease.key, lease.release())
  }

  stats(): ClientStats {
    return this.#stats.snapshot(this.#locks.waiting, this.#locks.holding)
  }

  /** For `drain` ms what is held is left to its users. Called again, it is the soonest end that counts. */
  close(drain: number): Promise<void> {
    if (!this.#closing) {
      // Known before anybody is told of anything: a listener may call for more.
      this.#closing = this.#drain.over.then(() => this.#close())
      this.#acquirer.refuse()
      this.#idle()
    }
    this.#drain.within(drain)
    return this.#closing
  }

  /** Nothing is held. */
  #idle(): void {
    if (this.closed && this.#locks.holding === 0) this.#drain.finish()
  }

  async #close(): Promise<void> {
    const { up } = this.#link.commands
    const left = Promise.all([this.#acquirer.close(), this.#holding.releaseAll()])
    if (up) await this.#takenBack(left)
    this.#lossNews?.close()
    this.#link.close()
    this.#holding.close()
    await left
  }

  /** Resolves when Redis has answered to all that is given back, or as soon as it has answered to none for a while. */
  async #takenBack(left: Promise<unknown>): Promise<void> {
    const { commands } = this.#link
    let done = false
    left.then(() => {
      done = true
    })
    for (let answers = -1; !done && commands.answers > answers; ) {
      answers = commands.answers
      let timer: Timer | undefined
      const pause = new Promise<void>(resolve => {
        // To give back what thousands waited for takes this process some time, in which it reads no answer.
        timer = awake(clock).after(CLOSE_PATIENCE, resolve)
      })
      await Promise.race([left, pause])
      timer?.cancel()
    }
  }

  #take({ claim, since, handoff, alone }: Waiter, grant: Granted, { renew, maxHold }: Request): Lease {
    const hold = this.#holding.take({ claim, since, renew, maxHold, alone }, grant)
    this.#lossNews?.add(hold)
    const lease = new Lease(hold, this.#holding)
    const { key, owner, fencingToken, waited, via } = lease
    this.#stats.acquired(via, waited)
    if (handoff !== undefined) this.#stats.handedOff(handoff)
    this.#announcer.tell('acquired', () => ({ key, owner, fencingToken, waited, via }))
    return lease
  }

  /**
   * A grant for an id that nobody waits for: given back, unless there is a lease of that id. What a message says must not
   * end a live hold; but if its token is newer, Redis is asked.
   */
  #strayGrant(id: string, token: number, lock: string): void {
    const key = this.#link.keys.keyOf(lock)
    if (this.#locks.hold(id)) this.#holding.doubt(id, token)
    else if (key !== undefined) this.#mutex.giveBack({ key, id }).catch(error => this.#failed(error))
  }

  #waiting(waiter: Waiter): void {
    this.#announcer.tell('waiting', () => {
      const { claim, refusal } = waiter
      const holder = this.holder(waiter)
      return {
        key: claim.key,
        owner: claim.owner,
        ...(refusal?.position && { position: refusal.position }),
        ...(holder && { holder }),
      }
    })
  }

  #failed(error: unknown): void {
    if (!(error instanceof LockClosedError)) this.#announcer.tell('error', () => ({ error }))
  }
}

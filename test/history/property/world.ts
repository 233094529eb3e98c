/**
 * The model of a random history: some clients, some keys, and all requests and grants of the callers. The model checks
 * the outcome of each call. It also records holds and tokens, and at the end the history checker judges the record.
 */
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import {
  type Lease,
  type LockClient,
  LockConnectionError,
  LockError,
  LockLostError,
  LockTimeoutError,
} from '../../../src/index.ts'
import { freshKey, keysWith } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { Memory, RecordedClient, violationsIn } from '../recorded.ts'
import { now } from '../recorder.ts'

/** A caller's request. Without `timeout`, the call waits for ever. `once` makes the call a tryLock. */
export interface Ask {
  readonly client: number
  readonly key: number
  readonly fair: boolean
  readonly once: boolean
  readonly timeout?: number | undefined
  readonly lease?: number | undefined
  readonly owner?: string | undefined
  /** Whether the caller releases the lock as soon as the lock is granted. */
  readonly brief?: boolean
}

interface Request {
  readonly ask: Ask
  /** The name of this attempt in the history. */
  readonly attempt: string
  readonly key: string
  readonly begun: number
  readonly aborter: AbortController
  outcome: 'pending' | 'granted' | 'timed out' | 'aborted'
}

interface Held {
  readonly lease: Lease
  readonly client: number
  released: boolean
  /** Whether a `forceRelease` may have taken the hold away although the client does not know it yet. */
  doubtful: boolean
  /**
   * Whether the lease is so short that it may end before its client learns of the grant. If so, the caller may have had
   * another grant before this one, without learning of it.
   */
  readonly brief: boolean
}

/** The fair queue of a key. `at` is the server's time at which the queue was read, in µs, the unit of tokens. */
interface Snapshot {
  readonly key: string
  readonly at: number
  readonly ids: readonly string[]
}

/** If a lease has at least this many ms left, a request that is sent now is answered before the lease lapses. */
const SAFE = 1_000
/**
 * By how many µs a token may be ahead of the time of its grant. Usually a token is the server's time of its grant. But
 * a run of local hand-offs takes its tokens from a block of 1,000 tokens, which Redis reserves when the run begins. If
 * a fair waiter queues during the run, Redis takes its ticket from behind the block. So this ticket, and the token of
 * the next grant, may be ahead, too.
 */
const AHEAD = 2_000
/** The time limit, in ms, for everything that has to happen soon. It allows for a slow and busy machine. */
const SOON = 5_000

export class World {
  readonly #clients: readonly LockClient[]
  readonly #recorded: readonly RecordedClient[]
  readonly #history = new Memory()
  readonly #redis: Redis
  readonly #keys = [freshKey('property'), freshKey('property{tag}')]
  readonly #requests: Request[] = []
  readonly #grants: Held[] = []
  readonly #snapshots: Snapshot[] = []
  readonly #forcing = new Set<string>()
  /** The time of the last forced release of each key, by the server's clock in µs, the unit of tokens. */
  readonly #forced = new Map<string, number>()
  readonly #failures: unknown[] = []
  #draining = false

  /** `redis` is the test's own connection to inspect the server. */
  constructor(clients: readonly LockClient[], redis: Redis) {
    this.#clients = clients
    this.#redis = redis
    this.#recorded = clients.map((locks, i) => new RecordedClient(`client ${i}`, locks, this.#history))
    this.#history.record('clock', { wall: Date.now() })
  }

  ask(ask: Ask): void {
    const key = this.#key(ask.key)
    const aborter = new AbortController()
    const attempt = this.#recorder(ask.client).attempt()
    const request: Request = { ask, attempt, key, begun: performance.now(), aborter, outcome: 'pending' }
    this.#requests.push(request)
    const worker = `client ${ask.client % this.#clients.length}`
    const mode = ask.once ? 'once' : ask.fair ? 'fair' : 'fairAfter'
    this.#history.record('request', { worker, attempt, key, mode })
    const own = this.#live(key).filter(({ lease }) => lease.owner === ask.owner && lease.remaining() > SAFE)
    const { client, fair, timeout, lease, owner } = ask
    const options = { fair, timeout, lease, owner, signal: aborter.signal }
    const locks = this.#client(client)
    const answer = ask.once ? locks.tryLock(key, options) : locks.lock(key, options)
    answer.then(
      granted => this.#note(() => (granted ? this.#granted(request, granted) : this.#refused(request, own))),
      error => this.#note(() => this.#rejected(request, error)),
    )
  }

  abort(choice: number): void {
    const pending = this.#requests.filter(({ outcome }) => outcome === 'pending')
    pick(pending, choice)?.aborter.abort(new Error('given up'))
  }

  /**
   * Releases a hold, and checks I5: the first release of a live hold ends it, and any other release changes nothing.
   */
  async release(choice: number, twice: boolean): Promise<void> {
    const held = pick(this.#grants, choice)
    if (held) await this.#release(held, twice)
  }

  async renew(choice: number, ms: number): Promise<void> {
    const held = pick(this.#grants, choice)
    if (!held) return
    const { lease, released, doubtful } = held
    const safe = !released && !doubtful && lease.remaining() > SAFE
    const before = performance.now()
    try {
      await lease.renew(ms)
      const spent = performance.now() - before
      expect(lease.remaining(), 'a lease is prolonged to what was asked for').toBeGreaterThan(ms * 0.85 - spent - 5)
      expect(released, 'I5 a hold that was released is not prolonged').toBe(false)
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error
      expect(safe && !held.doubtful && !held.released, `I5 a live hold is prolonged: ${error.message}`).toBe(false)
    }
  }

  /**
   * Takes a lock away. I8: a holder that loses the lock by this call learns of the loss soon. After that, at most one
   * owner believes that it holds the lock.
   */
  async forceRelease(client: number, choice: number): Promise<void> {
    const key = this.#key(choice)
    const from = now()
    this.#forcing.add(key)
    for (const held of this.#live(key)) held.doubtful = true
    await this.#client(client).forceRelease(key)
    this.#history.record('taken', { key, from, how: 'forced release' })
    // A reply in transit may report a grant that this call has taken away, and it may arrive after the reply with a
    // later grant. So remember the server's time. A grant may have been taken away if its token is not larger than this
    // time.
    this.#forced.set(key, await this.#serverTime())
    this.#forcing.delete(key)
    await eventually(() => new Set(this.#live(key).map(({ lease }) => lease.fencingToken)).size <= 1, SOON)
  }

  /** Records the queues: which callers are queued, and in which order. */
  async look(): Promise<void> {
    for (const key of this.#keys) {
      const { waiters } = await this.#client(0).inspect(key)
      const at = await this.#serverTime()
      if (waiters.length > 0) this.#snapshots.push({ key, at, ids: waiters.map(({ id }) => id) })
    }
    this.check()
  }

  /** Returns the server's time, in µs. */
  async #serverTime(): Promise<number> {
    const [seconds, micros] = await this.#redis.time()
    return Number(seconds) * 1_000_000 + Number(micros)
  }

  /** Throws the first failure that the background checks have found, if any. */
  check(): void {
    if (this.#failures.length > 0) throw this.#failures[0]
  }

  /**
   * Releases all holds, and each further grant, until no caller waits. Then checks that nothing is left on the server.
   */
  async drain(): Promise<void> {
    this.#draining = true
    for (const held of this.#live()) this.#note(() => this.#release(held, false))
    await eventually(
      () => this.#failures.length > 0 || this.#requests.every(({ outcome }) => outcome !== 'pending'),
      SOON,
    )
    this.check()
    await eventually(() => this.#live().length === 0, SOON)
    // I8: each hold has ended by its release, or its loss has been signalled.
    await eventually(() => this.#grants.every(({ lease, released }) => released || lease.signal.aborted), SOON)
    for (const key of this.#keys) {
      await this.#nothingLeft(key)
      const last = await this.#client(1).tryLock(key)
      expect(await last?.release(), 'I4 a lock that nobody holds is granted').toBe(true)
    }
    for (const locks of this.#clients) expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0 })
    this.#checkOrder()
    expect(violationsIn(this.#history.events)).toEqual([])
    this.check()
  }

  #granted(request: Request, lease: Lease): void {
    const { ask, attempt, key } = request
    request.outcome = 'granted'
    this.#recorder(ask.client).granted(lease, attempt)
    const doubtful = this.#forcing.has(key) || lease.fencingToken <= (this.#forced.get(key) ?? 0)
    const brief = ask.lease !== undefined && ask.lease < SAFE
    const held = { lease, client: ask.client, released: false, doubtful, brief }
    this.#grants.push(held)
    if (this.#draining || ask.brief) this.#note(() => this.#release(held, false))
  }

  #refused(request: Request, own: readonly Held[]): void {
    request.outcome = 'timed out'
    const { client, once, timeout } = request.ask
    this.#recorder(client).end(request.attempt, 'refused')
    expect(once, 'only a tryLock resolves to null').toBe(true)
    if (timeout === undefined && performance.now() - request.begun < SAFE) {
      const held = own.filter(({ released, doubtful }) => !released && !doubtful)
      expect(held, 'an owner that holds the lock re-enters').toEqual([])
    }
    this.#checkWait(request)
  }

  #rejected(request: Request, error: unknown): void {
    const { aborter, ask } = request
    if (error === aborter.signal.reason) {
      request.outcome = 'aborted'
      this.#recorder(ask.client).end(request.attempt, 'aborted')
      return
    }
    request.outcome = 'timed out'
    this.#recorder(ask.client).end(request.attempt, 'timeout')
    // If this process was stalled, Redis may not answer a tryLock in time. The tryLock must then reject, and not claim
    // that the lock is held.
    const unanswered = error instanceof LockConnectionError && ask.once && Boolean(ask.timeout)
    const timedOut = error instanceof LockTimeoutError && !ask.once && ask.timeout !== undefined
    if (!unanswered && !timedOut)
      throw error instanceof LockError ? error : new Error('not an error of ours', { cause: error })
    this.#checkWait(request)
  }

  #checkWait({ ask, begun }: Request): void {
    const late = performance.now() - begun - (ask.timeout ?? 0)
    expect(late, 'I6 a call settles by its time-out').toBeLessThan(SOON)
  }

  async #release(held: Held, twice: boolean): Promise<void> {
    const { lease, released, doubtful } = held
    const live = !released && !doubtful && lease.remaining() > SAFE
    held.released = true
    // Only the first release of a hold is recorded, because the checker expects one release for each hold.
    const first = released ? lease.release() : this.#recorder(held.client).release(lease)
    const answers = await Promise.all(twice ? [first, lease.release()] : [first])
    if (released) expect(answers[0], 'I5 a hold ends once').toBe(false)
    if (live && !held.doubtful) expect(answers[0], 'I5 the release of a live hold ends it').toBe(true)
    if (twice) expect(answers[1], 'I5 a hold ends once').toBe(false)
    expect(lease.held).toBe(false)
  }

  /**
   * I3, and no barging: while a queued waiter waits for its grant, only callers that were ahead of it in the queue are
   * granted. The token of a grant is the server's time of the grant in µs, or up to `AHEAD` µs more. A forced release
   * may end a grant before its waiter learns of it. So may a short lease, if the event loop stalls
   * (docs/decisions/0007-late-grants.md). Such a waiter has had its turn, and has queued again.
   */
  #checkOrder(): void {
    const tokens = new Map<string, number>()
    for (const { lease } of this.#grants) if (lease.via !== 'reentry') tokens.set(lease.id, lease.fencingToken)
    const brief = new Set(this.#grants.filter(({ brief }) => brief).map(({ lease }) => lease.id))
    for (const { key, at, ids } of this.#snapshots) {
      const later = this.#grants.filter(({ lease }) => lease.key === key && (tokens.get(lease.id) ?? 0) > at + AHEAD)
      for (const [place, id] of ids.entries()) {
        const own = tokens.get(id)
        const forced = (this.#forced.get(key) ?? 0) > at
        if (own === undefined || forced || brief.has(id)) continue
        const ahead = new Set(ids.slice(0, place))
        const jumped = later.filter(
          ({ lease }) => lease.fencingToken < own && tokens.has(lease.id) && !ahead.has(lease.id),
        )
        expect(
          jumped.map(({ lease }) => lease.id),
          `I3 granted ahead of ${id}, which was queued`,
        ).toEqual([])
      }
    }
  }

  /** Checks I7: the lock is free, its queue is empty, and every remaining key expires. */
  async #nothingLeft(key: string): Promise<void> {
    const names = await keysWith(this.#redis, key)
    const queue = names.find(name => name.endsWith(':q'))
    await eventually(async () => !(await this.#client(0).isLocked(key)), SOON)
    if (queue) await eventually(async () => (await this.#redis.zcard(queue)) === 0, SOON)
    for (const name of names) expect(await this.#redis.pttl(name), `${name} has an end`).not.toBe(-1)
  }

  #live(key?: string): Held[] {
    return this.#grants.filter(({ lease }) => (key === undefined || lease.key === key) && lease.held)
  }

  #key(choice: number): string {
    return this.#keys[choice % this.#keys.length] as string
  }

  #client(choice: number): LockClient {
    return this.#clients[choice % this.#clients.length] as LockClient
  }

  #recorder(choice: number): RecordedClient {
    return this.#recorded[choice % this.#recorded.length] as RecordedClient
  }

  /** Runs a check in the background, and keeps its failure. */
  #note(check: () => unknown): void {
    new Promise(resolve => resolve(check())).catch(error => this.#failures.push(error))
  }
}

function pick<T>(list: readonly T[], choice: number): T | undefined {
  return list.length > 0 ? list[choice % list.length] : undefined
}

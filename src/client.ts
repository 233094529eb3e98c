/** The composition root: makes the parts, connects them, and offers them as `LockClient`. */
import { EventEmitter } from 'eventemitter3'
import pTimeout from 'p-timeout'
import { systemClock } from './clock.ts'
import { LockArgumentError, LockClosedError, LockConnectionError, LockTimeoutError } from './errors.ts'
import type { ClientEventMap } from './events.ts'
import { inside, type Keeper, Lease } from './lease/lease.ts'
import { Renewal } from './lease/renewal.ts'
import { Inspection } from './locks/inspection.ts'
import { Mutex } from './locks/mutex.ts'
import type { LockState } from './locks/state.ts'
import { Announcer } from './observe/announce.ts'
import { type ClientStats, Stats } from './observe/stats.ts'
import type { ClientOptions, LockOptions, Request, Settings } from './options.ts'
import * as options from './options.ts'
import type { Granted } from './primitive.ts'
import type { RedisSource } from './redis/clients.ts'
import { newHoldId } from './redis/ids.ts'
import { Link } from './redis/link.ts'
import { Reentry } from './reentry.ts'
import { Acquirer } from './wait/acquire.ts'
import type { Waiter } from './wait/waiters.ts'

/** How long `close` waits for Redis to take its releases, in ms; what it did not take ends with its lease. */
const CLOSE_PATIENCE = 2_000

const clock = systemClock

/**
 * Locks of one Redis. One client serves a whole process: any number of keys, waiters and leases share its two
 * connections. It is an eventemitter3 emitter of `ClientEvents`.
 */
export class LockClient extends EventEmitter<ClientEventMap> implements AsyncDisposable {
  readonly #settings: Settings
  readonly #link: Link
  readonly #mutex: Mutex
  readonly #acquirer: Acquirer
  readonly #renewal: Renewal
  readonly #inspection: Inspection
  readonly #reentry = new Reentry()
  readonly #stats = new Stats()
  readonly #announcer: Announcer
  readonly #keeper: Keeper = {
    clock,
    release: lease => this.#release(lease),
    renew: (lease, ms) => this.#renew(lease, ms),
  }
  #closing: Promise<void> | undefined

  /**
   * @param redis an ioredis `Redis` or `Cluster`, its options, or a URL. An instance stays the caller's: the client works
   *   on duplicates of it, and its `keyPrefix` counts for keys and channels.
   * @throws LockArgumentError
   */
  constructor(redis: RedisSource, clientOptions: ClientOptions = {}) {
    super()
    const settings = options.settingsOf(clientOptions)
    this.#settings = settings
    this.#announcer = new Announcer(this)
    this.#link = new Link(redis, settings, clock, {
      granted: (id, token, via, lock) => {
        if (!this.#acquirer.grantedByMessage(id, token, via)) this.#granted(id, lock)
      },
      lost: id => {
        const lease = this.#renewal.find(id)
        if (lease) this.#renewal.check([lease])
      },
      unlocked: key => this.#acquirer.unlocked(key),
      down: error => this.#acquirer.disconnected(error),
      up: () => this.#acquirer.reconnected(),
      heard: () => {
        this.#acquirer.lookAgain()
        this.#renewal.check(this.#renewal.leases)
      },
      disconnected: error => this.#announcer.tell('disconnected', () => ({ error })),
      reconnected: () => this.#announcer.tell('reconnected', () => ({})),
      busy: () => this.#acquirer.waiting > 0 || this.#renewal.size > 0,
    })
    this.#mutex = new Mutex(this.#link.scripts, this.#link.keys, { ...settings, clientId: this.#link.clientId })
    this.#inspection = new Inspection(this.#link, settings.tokenMemory)
    const patience = { waiterTtl: settings.waiterTtl, outage: settings.outageTimeout }
    this.#acquirer = new Acquirer(this.#mutex, this.#link, clock, patience, {
      waiting: waiter => this.#waiting(waiter),
      holds: id => this.#renewal.find(id) !== undefined,
      failed: error => this.#failed(error),
    })
    this.#renewal = new Renewal(this.#mutex, clock, {
      renewed: ({ key, fencingToken }) => {
        this.#stats.renewed += 1
        this.#announcer.tell('renewed', () => ({ key, fencingToken }))
      },
      lost: (lease, error) => {
        const { key, fencingToken } = lease
        this.#stats.lost += 1
        this.#stats.held(clock.now() - inside.terms(lease).since)
        this.#announcer.tell('lost', () => ({ key, fencingToken, error }))
      },
    })
    this.#acquirer.disconnected(new Error('there is no connection yet'))
    this.#link.open()
  }

  /**
   * Waits until the lock is granted.
   * @throws LockTimeoutError after `timeout`
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses
   * @throws LockClosedError, LockArgumentError, or the reason of `signal`
   */
  async lock(key: string, lockOptions: LockOptions = {}): Promise<Lease> {
    const request = this.#request(key, lockOptions)
    const lease = await this.#acquire(key, request, request.timeout === 0)
    if (lease instanceof Lease) return lease
    const { refusal, since } = lease
    throw new LockTimeoutError(key, clock.now() - since, refusal?.holder, refusal?.position || undefined)
  }

  /**
   * One attempt, or with `timeout` as many as fit in it.
   * @returns the lease, or null if it was not granted. Rejects as `lock` does, but for LockTimeoutError.
   */
  async tryLock(key: string, lockOptions: LockOptions = {}): Promise<Lease | null> {
    const request = this.#request(key, lockOptions)
    const lease = await this.#acquire(key, request, !request.timeout)
    return lease instanceof Lease ? lease : null
  }

  /**
   * Runs `fn` under the lock and releases it in any case. Inside `fn`, locks of the same key re-enter.
   * @returns what `fn` returns
   * @throws what `fn` throws; else LockLostError if the hold was lost while it ran; and what `lock` throws
   */
  using<T>(key: string, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  using<T>(key: string, lockOptions: LockOptions, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  async using<T>(key: string, ...rest: unknown[]): Promise<T> {
    const [lockOptions, fn] = (rest.length > 1 ? rest : [{}, rest[0]]) as [LockOptions, (lease: Lease) => T]
    if (typeof fn !== 'function') throw new LockArgumentError('fn', fn, 'a function')
    const lease = await this.lock(key, lockOptions)
    try {
      const result = await this.#reentry.within(lease, () => fn(lease))
      await this.#releaseQuietly(lease)
      if (inside.state(lease) === 'lost') throw lease.signal.reason
      return result
    } catch (error) {
      await this.#releaseQuietly(lease)
      throw error
    }
  }

  /** `fn` as a function that runs under the lock of a fixed key, or of the key that the first argument makes of its arguments. */
  wrap<This, Args extends unknown[], R>(
    keyOrFn: string | ((...args: Args) => string),
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    lockOptions: LockOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    if (typeof keyOrFn !== 'function') options.checkKey(keyOrFn)
    if (typeof fn !== 'function') throw new LockArgumentError('fn', fn, 'a function')
    options.requestOf(lockOptions, this.#settings)
    const client = this
    return async function (...args) {
      const key = typeof keyOrFn === 'function' ? keyOrFn(...args) : keyOrFn
      return client.using(key, lockOptions, () => fn.apply(this, args))
    }
  }

  /** Runs `fn`; every lock taken inside, in its async context, belongs to `owner`, who re-enters from anywhere. */
  runAs<T>(owner: string, fn: () => T): T {
    options.checkOwner(owner)
    return this.#reentry.runAs(owner, fn)
  }

  /** The lock's holder and its fair queue. Rejects with LockConnectionError. */
  async inspect(key: string): Promise<LockState> {
    this.#checkOpen(key)
    return about(key, this.#inspection.inspect(key))
  }

  async isLocked(key: string): Promise<boolean> {
    this.#checkOpen(key)
    return about(key, this.#inspection.isLocked(key))
  }

  /** Held or queued locks whose key matches the pattern (`*`, `?`, `[abc]`), by SCAN. Default: all. */
  async *list(pattern = '*'): AsyncGenerator<LockState, void, undefined> {
    if (typeof pattern !== 'string') throw new LockArgumentError('pattern', pattern, 'a string')
    if (this.#closing) throw new LockClosedError()
    yield* this.#inspection.list(pattern)
  }

  /**
   * Takes the lock from its holder, whose `signal` aborts promptly, and wakes the next. What the holder still does is
   * stopped by the fencing token only.
   * @returns false if the lock was free
   */
  async forceRelease(key: string): Promise<boolean> {
    this.#checkOpen(key)
    return about(key, this.#inspection.forceRelease(key))
  }

  /** Counters and distributions of this client, since it was made. */
  stats(): ClientStats {
    return this.#stats.snapshot(this.#acquirer.waiting, this.#renewal.size)
  }

  /** Rejects waiters with LockClosedError, releases what is held, and ends the connections. May be called again. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    const { up } = this.#link.commands
    const left = [this.#acquirer.close(), ...this.#renewal.leases.map(lease => this.#releaseQuietly(lease))]
    if (up) await pTimeout(Promise.all(left), { milliseconds: CLOSE_PATIENCE, message: false })
    this.#link.close()
    this.#renewal.close()
    await Promise.all(left)
  }

  #request(key: string, lockOptions: LockOptions): Request {
    options.checkKey(key)
    return options.requestOf(lockOptions, this.#settings)
  }

  #checkOpen(key: string): void {
    options.checkKey(key)
    if (this.#closing) throw new LockClosedError(key)
  }

  /** The lease, or the waiter that has to go without. */
  async #acquire(key: string, request: Request, once: boolean): Promise<Lease | Waiter> {
    if (this.#closing) throw new LockClosedError(key)
    request.signal?.throwIfAborted()
    const id = newHoldId(this.#link.clientId)
    const owner = request.owner ?? this.#reentry.ownerOf(key)
    const waiter = this.#acquirer.start({
      claim: { key, id, owner: owner ?? id, lease: request.lease, headStart: request.headStart },
      mode: once ? 'once' : request.fair ? 'queue' : 'line',
      fairAfter: request.fairAfter,
      mayReenter: owner !== undefined,
    })
    let grant: Granted | undefined
    try {
      grant = await about(key, this.#patiently(waiter, request, once))
    } catch (error) {
      this.#stats.failed += 1
      throw error
    }
    if (grant && this.#closing) {
      // Granted while the client was closing: nobody else will release it.
      this.#giveBack(this.#link.keys.of(key).lock, id)
      throw new LockClosedError(key)
    }
    if (grant) return this.#hold(waiter, grant, request)
    this.#stats[once ? 'refused' : 'timedOut'] += 1
    return waiter
  }

  /** The outcome of the wait, or the end of the caller's patience, whichever is first. */
  #patiently(waiter: Waiter, { signal, timeout }: Request, once: boolean): Promise<Granted | undefined> {
    const milliseconds = once || timeout === undefined ? Number.POSITIVE_INFINITY : timeout
    if (!signal && milliseconds === Number.POSITIVE_INFINITY) return waiter.outcome
    const giveUp = () => this.#acquirer.quit(waiter)
    const wait = pTimeout(waiter.outcome, { milliseconds, fallback: giveUp, ...(signal && { signal }) })
    return wait.catch(error => {
      giveUp()
      throw signal?.aborted ? signal.reason : error
    }) as Promise<Granted | undefined>
  }

  #hold(waiter: Waiter, grant: Granted, request: Request): Lease {
    const { claim } = waiter
    const since = clock.now()
    const lease = new Lease(
      {
        hold: { key: claim.key, id: claim.id },
        owner: claim.owner,
        lease: claim.lease,
        renewUntil: request.renew ? since + request.maxHold : since,
        since,
        waited: since - waiter.since,
      },
      grant,
      this.#keeper,
    )
    this.#renewal.add(lease)
    const { key, owner, fencingToken, waited, via } = lease
    this.#stats.acquired(via, waited)
    if (waiter.handoff !== undefined) this.#stats.handedOff(waiter.handoff)
    this.#announcer.tell('acquired', () => ({ key, owner, fencingToken, waited, via }))
    return lease
  }

  async #renew(lease: Lease, ms: number): Promise<void> {
    options.checkRenewal(ms)
    await about(lease.key, this.#renewal.renew(lease, Math.floor(ms)))
  }

  async #release(lease: Lease): Promise<boolean> {
    const { key, fencingToken } = lease
    const { hold, since } = inside.terms(lease)
    this.#acquirer.releasing(key)
    const released = this.#renewal.end(lease, async () => {
      const { ended, successor } = await this.#mutex.release(hold)
      if (successor && !this.#acquirer.grantedByReply(successor.id, successor.grant)) {
        this.#giveBack(this.#link.keys.of(key).lock, successor.id)
      }
      if (ended) {
        const held = clock.now() - since
        this.#stats.released += 1
        this.#stats.held(held)
        this.#announcer.tell('released', () => ({ key, fencingToken, held }))
      }
      return ended
    })
    return about(key, released)
  }

  /** For releases whose failure must not hide something more important. */
  async #releaseQuietly(lease: Lease): Promise<void> {
    await lease.release().catch(error => this.#failed(error))
  }

  /**
   * A grant for an id that nobody waits for. It may be the second telling of a grant that has just been taken, whose
   * lease is made a few microtasks later: so this looks once more after the present turn before it gives the lock back.
   */
  #granted(id: string, lock: string): void {
    if (this.#link.keys.keyOf(lock) === undefined) return
    clock.after(0, () => {
      if (!this.#renewal.find(id)) this.#giveBack(lock, id)
    })
  }

  #giveBack(lock: string, id: string): void {
    this.#mutex.giveBack(lock, id).catch(error => this.#failed(error))
  }

  #waiting({ claim, refusal }: Waiter): void {
    this.#announcer.tell('waiting', () => ({
      key: claim.key,
      owner: claim.owner,
      ...(refusal?.position && { position: refusal.position }),
      ...(refusal && { holder: refusal.holder }),
    }))
  }

  #failed(error: unknown): void {
    if (!(error instanceof LockClosedError)) this.#announcer.tell('error', () => ({ error }))
  }
}

/** The same outcome; an error of the connection says which lock it was about, and has the stack of the call. */
async function about<T>(key: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw error instanceof LockConnectionError || error instanceof LockClosedError ? error.of(key) : error
  }
}

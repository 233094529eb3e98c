/** What a user of the library works with: every call of the contract, its arguments checked, its errors named. */
import { EventEmitter } from 'eventemitter3'
import { Engine } from './engine.ts'
import { about, LockArgumentError, LockClosedError, LockTimeoutError, named } from './errors.ts'
import type { ClientEventMap } from './events.ts'
import { inside, Lease } from './lease/lease.ts'
import type { LockState } from './locks/state.ts'
import { Announcer } from './observe/announce.ts'
import type { ClientStats } from './observe/stats.ts'
import type { ClientOptions, LockOptions, Settings } from './options.ts'
import { checkKey, checkOwner, requestOf, settingsOf } from './options.ts'
import type { RedisSource } from './redis/clients.ts'
import { Reentry } from './reentry.ts'
import type { Waiter } from './wait/waiters.ts'

/**
 * Locks of one Redis. One client serves a whole process: any number of keys, waiters and leases share its two
 * connections. It is an eventemitter3 emitter of `ClientEvents`.
 */
export class LockClient extends EventEmitter<ClientEventMap> implements AsyncDisposable {
  readonly #settings: Settings
  readonly #engine: Engine
  readonly #reentry = new Reentry()

  /**
   * @param redis an ioredis `Redis` or `Cluster`, its options, or a URL. An instance stays the caller's: the client works
   *   on duplicates of it, and its `keyPrefix` counts for keys and channels.
   * @throws LockArgumentError
   */
  constructor(redis: RedisSource, options: ClientOptions = {}) {
    super()
    this.#settings = settingsOf(options)
    this.#engine = new Engine(redis, this.#settings, new Announcer(this))
  }

  /**
   * Waits until the lock is granted.
   * @throws LockTimeoutError after `timeout`
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses
   * @throws LockClosedError, LockArgumentError, or the reason of `signal`
   */
  lock(key: string, options: LockOptions = {}): Promise<Lease> {
    return this.#acquire(key, options, true) as Promise<Lease>
  }

  /**
   * One attempt, or with `timeout` as many as fit in it.
   * @returns the lease, or null if it was not granted. Rejects as `lock` does, but for LockTimeoutError.
   */
  tryLock(key: string, options: LockOptions = {}): Promise<Lease | null> {
    return this.#acquire(key, options, false)
  }

  /**
   * Runs `fn` under the lock and releases it in any case. Inside `fn`, locks of the same key re-enter.
   * @returns what `fn` returns
   * @throws what `fn` throws; else LockLostError if the hold was lost while it ran; and what `lock` throws
   */
  using<T>(key: string, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  using<T>(key: string, options: LockOptions, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  async using<T>(key: string, ...rest: unknown[]): Promise<T> {
    const [options, fn] = (rest.length > 1 ? rest : [{}, rest[0]]) as [LockOptions, (lease: Lease) => T]
    if (typeof fn !== 'function') throw new LockArgumentError('fn', fn, 'a function')
    const lease = await this.lock(key, options)
    try {
      const result = await this.#reentry.within(lease, () => fn(lease))
      await this.#engine.releaseQuietly(lease)
      if (inside.state(lease) === 'lost') throw lease.signal.reason
      return result
    } catch (error) {
      await this.#engine.releaseQuietly(lease)
      throw error
    }
  }

  /** `fn` as a function that runs under the lock of a fixed key, or of the key that `keyOrFn` makes of its arguments. */
  wrap<This, Args extends unknown[], R>(
    keyOrFn: string | ((...args: Args) => string),
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: LockOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    if (typeof keyOrFn !== 'function') checkKey(keyOrFn)
    if (typeof fn !== 'function') throw new LockArgumentError('fn', fn, 'a function')
    requestOf(options, this.#settings)
    const client = this
    return async function (...args) {
      const key = typeof keyOrFn === 'function' ? keyOrFn(...args) : keyOrFn
      return client.using(key, options, () => fn.apply(this, args))
    }
  }

  /** Runs `fn`; every lock taken inside, in its async context, belongs to `owner`, who re-enters from anywhere. */
  runAs<T>(owner: string, fn: () => T): T {
    checkOwner(owner)
    return this.#reentry.runAs(owner, fn)
  }

  /** The lock's holder and its fair queue. Rejects with LockConnectionError. */
  async inspect(key: string): Promise<LockState> {
    this.#checkOpen(key)
    return about(key, this.#engine.inspection.inspect(key))
  }

  /** Whether anybody holds the lock. Rejects with LockConnectionError. */
  async isLocked(key: string): Promise<boolean> {
    this.#checkOpen(key)
    return about(key, this.#engine.inspection.isLocked(key))
  }

  /** Held or queued locks whose key matches the pattern (`*`, `?`, `[abc]`), by SCAN. Default: all. */
  async *list(pattern = '*'): AsyncGenerator<LockState, void, undefined> {
    if (typeof pattern !== 'string') throw new LockArgumentError('pattern', pattern, 'a string')
    if (this.#engine.closed) throw new LockClosedError()
    yield* this.#engine.inspection.list(pattern)
  }

  /**
   * Takes the lock from its holder, whose `signal` aborts promptly, and wakes the next. What the holder still does is
   * stopped by the fencing token only. Rejects with LockConnectionError.
   * @returns false if the lock was free
   */
  async forceRelease(key: string): Promise<boolean> {
    this.#checkOpen(key)
    return about(key, this.#engine.inspection.forceRelease(key))
  }

  /** Counters and distributions of this client, since it was made. */
  stats(): ClientStats {
    return this.#engine.stats()
  }

  /** Rejects waiters with LockClosedError, releases what is held, and ends the connections. May be called again. */
  close(): Promise<void> {
    return this.#engine.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** The lease; without it a blocking call rejects, and another resolves null. The one async frame of a call that waits. */
  async #acquire(key: string, options: LockOptions, blocking: boolean): Promise<Lease | null> {
    checkKey(key)
    const request = requestOf(options, this.#settings)
    const once = blocking ? request.timeout === 0 : !request.timeout
    let outcome: Lease | Waiter
    try {
      outcome = await this.#engine.acquire(key, request.owner ?? this.#reentry.ownerOf(key), request, once)
    } catch (error) {
      this.#engine.without('failed')
      throw named(key, error)
    }
    if (outcome instanceof Lease) return outcome
    this.#engine.without(once ? 'refused' : 'timedOut')
    if (!blocking) return null
    const { refusal, since } = outcome
    const { holder, position } = refusal ?? {}
    throw new LockTimeoutError(key, performance.now() - since, holder, position || undefined, this.#engine.outage)
  }

  #checkOpen(key: string): void {
    checkKey(key)
    if (this.#engine.closed) throw new LockClosedError(key)
  }
}

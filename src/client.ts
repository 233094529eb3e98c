/** What a user of the library works with: every call of the contract, its arguments checked, its errors named. */
import { EventEmitter } from 'eventemitter3'
import { systemClock } from './clock.ts'
import { about, LockArgumentError, LockClosedError, LockTimeoutError, named } from './errors.ts'
import type { ClientEventMap } from './events.ts'
import type { Inspection } from './kind.ts'
import { mutex } from './kinds/mutex/mutex.ts'
import type { LockState } from './kinds/mutex/state.ts'
import type { Lease } from './lease/lease.ts'
import type { Waiter } from './local/waiter.ts'
import type { Locks, Without } from './locks.ts'
import { Announcer } from './observe/announce.ts'
import type { ClientStats } from './observe/stats.ts'
import type { ClientOptions, CloseOptions, LockOptions, Settings } from './options.ts'
import { type CallTerms, callTermsOf, checkKey, checkOwner, drainOf, settingsOf } from './options.ts'
import type { RedisSource } from './redis/clients.ts'
import { Link, type LinkListener } from './redis/link.ts'
import { Reentry } from './reentry.ts'
import { Session } from './session.ts'

/**
 * Locks of one Redis. One client serves a whole process: any number of keys, waiters and leases share its two
 * connections. It is an eventemitter3 emitter of `ClientEvents`.
 * @since 0.1.0
 */
export class LockClient extends EventEmitter<ClientEventMap> implements AsyncDisposable {
  readonly #settings: Settings
  readonly #session: Session
  readonly #locks: Locks<LockState>
  readonly #reentry = new Reentry()
  /** A call without options. */
  readonly #usual: CallTerms
  /** What becomes of a blocking call that ends without a lease, and of another. */
  readonly #rejects = this.#without(true)
  readonly #resolvesNull = this.#without(false)

  /**
   * Connects at once, in the background: calls wait for the connection.
   * @param redis an ioredis `Redis` or `Cluster`, its options, or a URL. An instance stays the caller's: the client works
   *   on duplicates of it, and its `keyPrefix` counts for keys and channels. Of a client of node-redis only the options are read.
   * @param options of the client, and defaults for its calls
   * @throws LockArgumentError when `redis` names no Redis, or an option is wrong
   * @throws LockError when a connection is to be made, and ioredis is not installed
   * @since 0.1.0
   */
  constructor(redis: RedisSource, options: ClientOptions = {}) {
    super()
    const settings = settingsOf(options)
    this.#settings = settings
    this.#usual = callTermsOf({}, settings)
    const connect = (told: LinkListener) => new Link(redis, settings, systemClock, told)
    this.#session = new Session(connect, settings, systemClock, new Announcer(this))
    this.#locks = this.#session.locks(mutex)
  }

  /**
   * Waits until the lock is granted.
   * @param key of 1 to 1024 UTF-8 bytes
   * @returns the lease, to be released
   * @throws LockTimeoutError after `timeout`
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses
   * @throws LockClosedError when the client is closed
   * @throws LockArgumentError when the key or an option is wrong
   * @throws the reason of `signal` when that is aborted
   * @since 0.1.0
   */
  lock(key: string, options?: LockOptions): Promise<Lease> {
    return this.#acquire(key, options, true) as Promise<Lease>
  }

  /**
   * One attempt, or with `timeout` as many as fit in it.
   * @param key of 1 to 1024 UTF-8 bytes
   * @returns the lease, or null if somebody else has the lock
   * @throws LockConnectionError when Redis has answered no attempt within `timeout`, or refuses. Without `timeout`: at once
   *   where the connection is known to be down, else after a second
   * @throws what `lock` throws otherwise, but for LockTimeoutError
   * @since 0.1.0
   */
  tryLock(key: string, options?: LockOptions): Promise<Lease | null> {
    return this.#acquire(key, options, false)
  }

  /**
   * Runs `fn` under the lock and releases it in any case. Inside `fn`, locks of the same key re-enter.
   * @param key of 1 to 1024 UTF-8 bytes
   * @param fn gets the lease; it need not release it
   * @returns what `fn` returns
   * @throws what `fn` throws
   * @throws LockLostError when the hold was lost while `fn` ran, and `fn` did not throw
   * @throws LockClosedError when the client was closed while `fn` ran, and `fn` did not throw
   * @throws what `lock` throws
   * @since 0.1.0
   */
  using<T>(key: string, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  /**
   * The same with options for this call.
   * @param options as for `lock`
   * @returns what `fn` returns
   * @throws as above
   * @since 0.1.0
   */
  using<T>(key: string, options: LockOptions, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  async using<T>(key: string, ...rest: unknown[]): Promise<T> {
    const [options, fn] = (rest.length > 1 ? rest : [undefined, rest[0]]) as [LockOptions?, ((lease: Lease) => T)?]
    if (typeof fn !== 'function') throw new LockArgumentError('fn', fn, 'a function')
    const lease = await this.lock(key, options)
    try {
      const result = await this.#reentry.within(lease, () => fn(lease))
      const live = await this.#locks.releaseQuietly(lease)
      if (!live && lease.signal.aborted) throw lease.signal.reason
      return result
    } catch (error) {
      await this.#locks.releaseQuietly(lease)
      throw error
    }
  }

  /**
   * `fn` as a function that runs under the lock of a fixed key, or of the key that `keyOrFn` makes of its `this` and its
   * arguments.
   * @param options of each call, as for `lock`
   * @returns a function with the parameters of `fn`, whose promise settles as that of `using`
   * @throws LockArgumentError when the key, `fn` or an option is wrong
   * @since 0.1.0
   */
  wrap<This, Args extends unknown[], R>(
    keyOrFn: string | ((this: This, ...args: Args) => string),
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: LockOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    if (typeof keyOrFn !== 'function') checkKey(keyOrFn)
    if (typeof fn !== 'function') throw new LockArgumentError('fn', fn, 'a function')
    callTermsOf(options, this.#settings)
    const client = this
    return async function (...args) {
      const key = typeof keyOrFn === 'function' ? keyOrFn.apply(this, args) : keyOrFn
      return client.using(key, options, () => fn.apply(this, args))
    }
  }

  /**
   * Runs `fn`; every lock taken inside, in its async context, belongs to `owner`, who re-enters from anywhere.
   * @param owner of 1 to 1024 UTF-8 bytes
   * @returns what `fn` returns
   * @throws LockArgumentError when `owner` is wrong
   * @throws what `fn` throws
   * @since 0.1.0
   */
  runAs<T>(owner: string, fn: () => T): T {
    checkOwner(owner)
    return this.#reentry.runAs(owner, fn)
  }

  /**
   * The lock's holder and its fair queue, as Redis has them now. Writes nothing.
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses
   * @throws LockClosedError when the client is closed
   * @throws LockArgumentError when the key is wrong
   * @since 0.1.0
   */
  async inspect(key: string): Promise<LockState> {
    return about(key, this.#inspection(key).inspect(key))
  }

  /**
   * Whether anybody holds the lock. Writes nothing.
   * @throws what `inspect` throws
   * @since 0.1.0
   */
  async isLocked(key: string): Promise<boolean> {
    return about(key, this.#inspection(key).isLocked(key))
  }

  /**
   * Held or queued locks, in no order, each at most once; by SCAN, in a cluster of every master.
   * @param pattern that the key matches: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before what is meant literally. All, without it
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses
   * @throws LockClosedError when the client is closed
   * @throws LockArgumentError when the pattern is wrong
   * @since 0.1.0
   */
  async *list(pattern = '*'): AsyncGenerator<LockState, void, undefined> {
    if (typeof pattern !== 'string') throw new LockArgumentError('pattern', pattern, 'a string')
    if (this.#session.closed) throw new LockClosedError()
    yield* this.#locks.kind.inspection.list(pattern)
  }

  /**
   * Takes the lock from its holder, whose `signal` aborts promptly, and wakes the next. What the holder still does is
   * stopped by the fencing token only.
   * @returns false if the lock was free
   * @throws what `inspect` throws
   * @since 0.1.0
   */
  async forceRelease(key: string): Promise<boolean> {
    return about(key, this.#inspection(key).forceRelease(key))
  }

  /**
   * Counters and distributions of this client, since it was made.
   * @since 0.1.0
   */
  stats(): ClientStats {
    return this.#session.stats()
  }

  /**
   * Refuses new calls and rejects waiters, both with LockClosedError; ends what is held; then ends the connections.
   *
   * With `drain`, what is held is first left to its users to release, and is renewed meanwhile; that is over as soon as
   * nothing is held any more. What is held after that is lost, and told so before anything of it is released in Redis:
   * `held` is false, `signal` aborts and `lost` is emitted, both with LockClosedError, and a `using` whose function still
   * runs rejects with it. May be called again: the soonest end of a drain counts, so `close()` ends it at once.
   * @returns a promise that settles when Redis has nothing of this client any more. What could not be released becomes an
   *   `error` event, and ends with its lease.
   * @throws LockArgumentError when an option is wrong; the client then stays open. Rejects with nothing else
   * @since 0.1.0
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const drain = drainOf(options)
    await this.#session.close(drain)
  }

  /**
   * `close` without `drain`, for `await using`.
   * @returns a promise that does not reject
   * @since 0.1.0
   */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** No async function: thousands of calls may wait, and the frame of each would be kept. */
  #acquire(key: string, options: LockOptions | undefined, blocking: boolean): Promise<Lease | null> {
    try {
      checkKey(key)
      const call = options === undefined ? this.#usual : callTermsOf(options, this.#settings)
      const once = blocking ? call.timeout === 0 : !call.timeout
      const without = blocking ? this.#rejects : this.#resolvesNull
      return this.#locks.acquire(key, call.owner ?? this.#reentry.ownerOf(key), call, once, without)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #without(blocking: boolean): Without<null> {
    const failed = (error: unknown, key: string) => {
      this.#session.without('failed')
      return named(key, error)
    }
    const refused = (waiter: Waiter) => {
      const unanswered = !blocking && this.#locks.acquirer.unanswered(waiter)
      if (unanswered) return failed(unanswered, waiter.claim.key) as Error
      this.#session.without(waiter.wish.mode === 'once' ? 'refused' : 'timedOut')
      return blocking ? this.#outOfTime(waiter) : null
    }
    return { failed, refused }
  }

  #outOfTime(waiter: Waiter): LockTimeoutError {
    const { key } = waiter.claim
    const waited = performance.now() - waiter.since
    const position = waiter.refusal?.position || undefined
    return new LockTimeoutError(key, waited, this.#locks.holder(waiter), position, this.#locks.acquirer.outage)
  }

  /** For a look at this key. */
  #inspection(key: string): Inspection<LockState> {
    checkKey(key)
    if (this.#session.closed) throw new LockClosedError(key)
    return this.#locks.kind.inspection
  }
}

/** What a user of the library works with: every call of the contract, its arguments checked, its errors named. */
import { EventEmitter } from 'eventemitter3'
import { type Caller, Calls } from './calls.ts'
import { systemClock } from './clock.ts'
import { MultiLock } from './compose/all.ts'
import { connect, isSeveral } from './connect.ts'
import { about, LockArgumentError, LockClosedError } from './errors.ts'
import type { ClientEventMap } from './events.ts'
import { mutex } from './kinds/mutex/mutex.ts'
import { reading, writing } from './kinds/permits/read-write.ts'
import { semaphore } from './kinds/permits/semaphore.ts'
import type { LockState } from './kinds/state.ts'
import type { Lease } from './lease/lease.ts'
import { KeyedLock, type Lock, type ReadWriteLock } from './lock.ts'
import { Announcer } from './observe/announce.ts'
import type { ClientStats } from './observe/stats.ts'
import type { ClientOptions, CloseOptions, LockOptions, SemaphoreOptions, Settings } from './options.ts'
import { callTermsOf, checkId, checkKey, checkOwner, checkPermits, drainOf, settingsOf } from './options.ts'
import type { RedisSource } from './redis/clients.ts'
import { Reentry } from './reentry.ts'
import { Session } from './session.ts'
import { type Using, using, wrapped } from './using.ts'
import type { WaysListener } from './ways.ts'

/** What `list` finds. */
const kinds = [mutex, semaphore, writing]
/** The same over a quorum. */
const quorumKinds = [mutex]

/**
 * Locks of one Redis. One client serves a whole process: any number of keys, waiters and leases share its two
 * connections. It is an eventemitter3 emitter of `ClientEvents`.
 * @since 0.1.0
 */
export class LockClient extends EventEmitter<ClientEventMap> implements AsyncDisposable {
  readonly #settings: Settings
  readonly #session: Session
  readonly #caller: Caller
  readonly #mutexes: Calls<LockState>
  readonly #kinds: typeof kinds
  #semaphores: Calls<LockState> | undefined
  #readWrites: { readonly read: Calls<LockState>; readonly write: Calls<LockState> } | undefined

  /**
   * Connects at once, in the background: calls wait for the connection.
   * @param redis an ioredis `Redis` or `Cluster`, its options, or a URL. An instance stays the caller's: the client works
   *   on duplicates of it, and its `keyPrefix` counts for keys and channels. Of a client of node-redis only the options are read.
   *   An array of 3, 5 or 7 of these is a quorum: independent servers, of which more than half have to agree. It has mutexes only
   * @param options of the client, and defaults for its calls
   * @throws LockArgumentError when `redis` names no Redis, or an option is wrong
   * @throws LockError when a connection is to be made, and ioredis is not installed
   * @since 0.1.0
   */
  constructor(redis: RedisSource | readonly RedisSource[], options: ClientOptions = {}) {
    super()
    const settings = settingsOf(options)
    this.#settings = settings
    this.#kinds = isSeveral(redis) ? quorumKinds : kinds
    const ways = (told: WaysListener) => connect(redis, settings, systemClock, told)
    this.#session = new Session(ways, settings, systemClock, new Announcer(this))
    this.#caller = { session: this.#session, settings, reentry: new Reentry() }
    this.#mutexes = new Calls(this.#caller, mutex.name, this.#session.locks(mutex))
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
    return this.#mutexes.acquire(key, options, true) as Promise<Lease>
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
    return this.#mutexes.acquire(key, options, false)
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
  using<T>(key: string, ...rest: Using<Lease, T>): Promise<T> {
    return using(new KeyedLock(this.#mutexes, key), rest)
  }

  /**
   * `fn` as a function that runs under a fixed lock, or under the one that `lockOrFn` makes of its `this` and its arguments: the key of a
   * mutex, or a lock of this client, or several.
   * @param options of each call, as that lock has them
   * @returns a function with the parameters of `fn`, whose promise settles as that of `using`
   * @throws LockArgumentError when the lock, `fn` or an option is wrong
   * @since 0.1.0
   */
  wrap<This, Args extends unknown[], R, L extends string | Lock | MultiLock = string>(
    lockOrFn: L | ((this: This, ...args: Args) => L),
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: L extends Lock<infer Options> ? Options : LockOptions = {} as never,
  ): (this: This, ...args: Args) => Promise<R> {
    if (typeof lockOrFn !== 'function') return this.#usable(lockOrFn).wrap(fn, options)
    // Whether it has permits to be taken is known by each call only.
    callTermsOf(options, this.#settings, Number.MAX_SAFE_INTEGER)
    return wrapped(fn, async (call, self, args) => this.#usable(lockOrFn.apply(self, args)).using(options, call))
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
    return this.#caller.reentry.runAs(owner, fn)
  }

  /**
   * The lock of this key as an object: the same lock as that of `lock(key)` and the other calls by key.
   * @param key of 1 to 1024 UTF-8 bytes
   * @throws LockArgumentError when the key is wrong
   * @since 0.2.0
   */
  mutex(key: string): Lock {
    checkKey(key)
    return new KeyedLock(this.#mutexes, key)
  }

  /**
   * A semaphore: at most `permits` of it are taken at a time, by any number of holders. It has nothing to do with the mutex of
   * the same key. The number belongs to the asker: a call is granted if what is taken and what it wants are within its own
   * number, so that a deployment that raises it works while both are in use. A call that is refused while somebody has asked of
   * another number becomes an `error` event, `ERR_LOCK_PERMITS`, once for each semaphore. Not re-entrant.
   * @param key of 1 to 1024 UTF-8 bytes
   * @param permits how many it has: a whole number from 1
   * @throws LockArgumentError when the key or the number is wrong
   * @since 0.2.0
   */
  semaphore(key: string, permits: number): Lock<SemaphoreOptions> {
    checkKey(key)
    checkPermits(permits)
    // A client that uses none has no scripts of it to ask rights for.
    this.#semaphores ??= new Calls(this.#caller, semaphore.name, this.#session.locks(semaphore))
    return new KeyedLock(this.#semaphores, key, permits)
  }

  /**
   * A read-write lock: any number of readers, or one writer. It has nothing to do with the mutex of the same key. Fair calls
   * are phase-fair: a reader waits for one writer's turn at most, and a writer that ends lets all readers in that wait by then.
   * Who writes may also read, and go on reading after the end of the writing; who only reads and asks to write gets
   * LockDeadlockError.
   * @param key of 1 to 1024 UTF-8 bytes
   * @throws LockArgumentError when the key is wrong
   * @since 0.2.0
   */
  readWrite(key: string): ReadWriteLock {
    checkKey(key)
    const calls = (kind: typeof reading) => new Calls(this.#caller, kind.name, this.#session.locks(kind))
    this.#readWrites ??= { read: calls(reading), write: calls(writing) }
    const { read, write } = this.#readWrites
    return {
      key,
      read: new KeyedLock(read, key),
      write: new KeyedLock(write, key),
      inspect: () => write.inspect(key),
    }
  }

  /**
   * Several locks as one: all of them or none. They are taken in one order, whichever they are given in, so that callers
   * never wait for each other in a circle.
   * @param parts locks of this client, or keys of mutexes. One that is given twice is taken once; of a read-write
   *   lock of which both sides are given, the write lock
   * @throws LockArgumentError when there is none, or one is of another client
   * @since 0.2.0
   */
  all(parts: readonly (string | Lock)[]): MultiLock {
    if (!Array.isArray(parts) || parts.length === 0)
      throw new LockArgumentError('parts', parts, 'an array of at least one key or lock')
    return new MultiLock(
      parts.map(part => this.#lockOf('parts', part)),
      this.#settings,
    )
  }

  /**
   * The lock's holder and its fair queue, as Redis has them now. Writes nothing.
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses
   * @throws LockClosedError when the client is closed
   * @throws LockArgumentError when the key is wrong
   * @since 0.1.0
   */
  async inspect(key: string): Promise<LockState> {
    return this.#mutexes.inspect(key)
  }

  /**
   * Whether anybody holds the lock. Writes nothing.
   * @throws what `inspect` throws
   * @since 0.1.0
   */
  async isLocked(key: string): Promise<boolean> {
    return about(key, this.#mutexes.inspection(key).isLocked(key))
  }

  /**
   * Held or queued locks of every kind (`kind` tells which), in no order, each at most once; by SCAN, in a cluster of every master.
   * @param pattern that the key matches: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before what is meant literally. All, without it
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses
   * @throws LockClosedError when the client is closed
   * @throws LockArgumentError when the pattern is wrong
   * @since 0.1.0
   */
  async *list(pattern = '*'): AsyncGenerator<LockState, void, undefined> {
    if (typeof pattern !== 'string') throw new LockArgumentError('pattern', pattern, 'a string')
    if (this.#session.closed) throw new LockClosedError()
    yield* this.#session.list(this.#kinds, pattern)
  }

  /**
   * Takes the lock from its holders, whose `signal` aborts promptly, and wakes the next. What they still do is stopped by the
   * fencing token only.
   * @param lock of this client; or the key of a mutex. The sides of a read-write lock are one lock
   * @param only the `id` of one holder, as `inspect` shows it: nobody else loses anything. Not given: all that hold it do
   * @returns false if the lock was free, or that holder did not hold it
   * @throws what `inspect` throws
   * @throws LockArgumentError when the lock is none of this client, or the id is none
   * @since 0.1.0
   */
  async forceRelease(lock: string | Lock, ...only: [] | [id: string]): Promise<boolean> {
    const { key, calls } = this.#lockOf('key', lock)
    // An id that is undefined is a mistake, and the other holders must not pay for it.
    if (only.length > 0) checkId(only[0])
    return about(key, calls.inspection(key).forceRelease(key, only[0]))
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

  #usable(lock: string | Lock | MultiLock): Pick<Lock<SemaphoreOptions>, 'using' | 'wrap'> {
    return lock instanceof MultiLock ? (lock as never) : this.#lockOf('key', lock)
  }

  /** `option`: where it was given. */
  #lockOf(option: string, lock: string | Lock): KeyedLock {
    const own = typeof lock === 'string' ? this.mutex(lock) : lock
    if (own instanceof KeyedLock && own.calls.caller === this.#caller) return own
    throw new LockArgumentError(option, lock, 'a key, or a lock made by this client')
  }
}

/** The class that users work with. `LockClient` validates arguments and makes the objects that do the work. */
import { EventEmitter } from 'eventemitter3'
import { MultiLock } from './compose/all.ts'
import { clockOf, connect, isSeveral } from './connect.ts'
import { about, LockArgumentError, LockClosedError, named } from './errors.ts'
import type { ClientEventMap } from './events.ts'
import type { Lease } from './key/lease.ts'
import type { KindClient } from './kind-client.ts'
import { mutex } from './kinds/mutex/mutex.ts'
import { reading, writing } from './kinds/permits/read-write.ts'
import { semaphore } from './kinds/permits/semaphore.ts'
import { KeyedLock, type Lock, type ReadWriteLock } from './lock.ts'
import type { LockState } from './lock-state.ts'
import type { MemoryStore } from './memory/store.ts'
import { Announcer } from './observe/announce.ts'
import type { ClientStats } from './observe/stats.ts'
import type { ClientOptions, CloseOptions, LockOptions, SemaphoreOptions } from './options.ts'
import type { RedisSource } from './redis/clients.ts'
import type { LinkListener } from './redis/link.ts'
import { Session } from './session.ts'
import { callTermsOf, checkFn, checkId, checkPermits, checkText, drainOf, settingsOf } from './settings.ts'
import { type Using, using, wrapped } from './using.ts'

/** Methods of other lock libraries, and what to write instead. They are there only to say so. */
const others = {
  acquire: 'lock(key), or all(keys).lock() for several locks',
  release: 'lease.release(), where lease is what lock(key) resolves to',
  unlock: 'lease.release(), where lease is what lock(key) resolves to',
  quit: 'close()',
  extend: 'lease.renew(ms), where lease is what lock(key) resolves to',
}

/** The kinds of lock that `list` finds. */
const kinds = [mutex, semaphore, writing]
/** The kinds of lock that `list` finds in a quorum. */
const quorumKinds = [mutex]

/**
 * A client for the locks in one Redis. One client serves a whole process: any number of keys, waiters and leases share
 * its two connections. The client is an eventemitter3 emitter of `ClientEvents`.
 * @since 0.1.0
 */
export class LockClient extends EventEmitter<ClientEventMap> implements AsyncDisposable {
  readonly #session: Session
  readonly #mutexes: KindClient<LockState>
  readonly #kinds: typeof kinds
  #semaphores: KindClient<LockState> | undefined
  #readWrites: { readonly read: KindClient<LockState>; readonly write: KindClient<LockState> } | undefined

  /**
   * Starts to connect in the background. A call that is made before the connection is up waits for the connection.
   * @param redis an ioredis `Redis` or `Cluster`, ioredis options, a URL, or a client of node-redis. The lock client
   *   makes connections of its own from duplicates of an ioredis instance, or from the options of a node-redis client,
   *   and never closes what it was given. If an ioredis instance has a `keyPrefix`, the lock client puts this prefix
   *   before its keys and channels. An array of 3, 5 or 7 of these values is a quorum of independent servers: a lock is
   *   granted when a majority of the servers grants it. A quorum supports mutexes only. A store that `memory()` of
   *   `redis-baton/memory` has made keeps the locks in this process, without Redis
   * @param options the options of the client, and the defaults for its calls
   * @throws LockArgumentError when `redis` is of another type, or an option is wrong
   * @throws LockError when ioredis is not installed, and `redis` is not an ioredis instance
   * @since 0.1.0
   */
  constructor(redis: RedisSource | MemoryStore | readonly RedisSource[], options: ClientOptions = {}) {
    super()
    // The client may be written as JSON, and each listener refers to it.
    for (const name of ['_events', '_eventsCount']) Object.defineProperty(this, name, { enumerable: false })
    const settings = settingsOf(options)
    this.#kinds = isSeveral(redis) ? quorumKinds : kinds
    const backend = (listener: LinkListener) => connect(redis, settings, this, listener)
    this.#session = new Session(backend, settings, clockOf(redis), new Announcer(this))
    this.#mutexes = this.#session.locks(mutex)
  }

  /**
   * Waits until the lock is granted.
   * @param key 1 to 1024 UTF-8 bytes
   * @returns the lease. The caller releases it
   * @throws LockTimeoutError when the lock was not granted within `timeout`
   * @throws LockQueueFullError when so many callers wait already as the option `maxWaiters` says
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses the command
   * @throws LockClosedError when the client is closed
   * @throws LockArgumentError when the key or an option is wrong
   * @throws the reason of `signal` when `signal` is aborted
   * @since 0.1.0
   */
  lock(key: string, options?: LockOptions): Promise<Lease> {
    return this.#mutexes.acquire(key, options, true) as Promise<Lease>
  }

  /**
   * Without `timeout`, makes a single attempt to take the lock. With `timeout`, waits for the lock for at most that
   * time.
   * @param key 1 to 1024 UTF-8 bytes
   * @returns the lease, or null if another owner has the lock
   * @throws LockConnectionError when Redis refuses the command, or does not answer. With `timeout`, the call rejects if
   *   Redis has not answered at all within that time, or, if that is shorter and the connection is not known to be down,
   *   within a second. Without `timeout`, it rejects at once if the connection is known to be down, and otherwise after
   *   a second without an answer
   * @throws everything that `lock` throws, except LockTimeoutError
   * @since 0.1.0
   */
  tryLock(key: string, options?: LockOptions): Promise<Lease | null> {
    return this.#mutexes.acquire(key, options, false)
  }

  /**
   * Runs `fn` while holding the lock, and always releases it afterwards. Inside `fn`, calls on the same key re-enter.
   * @param key 1 to 1024 UTF-8 bytes
   * @param fn receives the lease; it need not release it
   * @returns what `fn` returns
   * @throws LockLostError when the hold was lost while `fn` ran, and `fn` returned, or threw the reason of the signal or
   *   an AbortError, which is then the `cause`
   * @throws LockClosedError in the same cases, when the client was closed while `fn` ran
   * @throws what `fn` throws in all other cases
   * @throws what `lock` throws
   * @since 0.1.0
   */
  using<T>(key: string, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  /**
   * Runs `fn` while holding the lock, as `using` without options does.
   * @param options options for this call: those of `lock`
   * @returns what `fn` returns
   * @throws what `using` without options throws
   * @since 0.1.0
   */
  using<T>(key: string, options: LockOptions, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  using<T>(key: string, ...rest: Using<Lease, T>): Promise<T> {
    return using(new KeyedLock(this.#mutexes, key), rest)
  }

  /**
   * Returns a function that runs `fn` under a lock. `lockOrFn` is the lock: the key of a mutex, a lock of this client,
   * or a `MultiLock`. It may also be a function that gets the `this` and the arguments of each call and returns the
   * lock for that call.
   * @param options the options with which each call takes the lock
   * @returns a function with the parameters of `fn`. It returns a promise that settles like the promise of `using`
   * @throws LockArgumentError when the lock, `fn` or an option is wrong
   * @since 0.1.0
   */
  wrap<This, Args extends unknown[], R, L extends string | Lock | MultiLock = string>(
    lockOrFn: L | ((this: This, ...args: Args) => L),
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: L extends Lock<infer Options> ? Options : LockOptions = {} as never,
  ): (this: This, ...args: Args) => Promise<R> {
    if (typeof lockOrFn !== 'function') return this.#usable(lockOrFn).wrap(fn, options)
    // `lockOrFn` may be a function. Then only a call shows whether the lock is a semaphore, and how many permits it
    // has. So this first check accepts any number of permits.
    callTermsOf(options, this.#session.context.settings, Number.MAX_SAFE_INTEGER)
    return wrapped(fn, async (call, self, args) => this.#usable(lockOrFn.apply(self, args)).using(options, call))
  }

  /**
   * Runs `fn`. Every lock that is taken in the async context of `fn` belongs to `owner`. If the owner already holds the
   * lock, in this process or another one, the call that takes the lock re-enters.
   * @param owner 1 to 1024 UTF-8 bytes
   * @returns what `fn` returns
   * @throws LockArgumentError when `owner` or `fn` is wrong
   * @throws what `fn` throws
   * @since 0.1.0
   */
  runAs<T>(owner: string, fn: () => T): T {
    checkText('owner', owner)
    checkFn(fn)
    return this.#session.context.reentry.runAs(owner, fn)
  }

  /**
   * Returns the mutex of this key as an object. `lock(key)` and the other calls by key take the same lock.
   * @param key 1 to 1024 UTF-8 bytes
   * @throws LockArgumentError when the key is wrong
   * @since 0.2.0
   */
  mutex(key: string): Lock {
    checkText('key', key)
    return new KeyedLock(this.#mutexes, key)
  }

  /**
   * Returns a semaphore. Any number of holders may hold it, if they have at most `permits` permits together. It is
   * independent of the mutex of the same key. It is not re-entrant.
   * Clients may use different numbers of permits for the same key. A call is granted if the permits already taken, plus
   * the permits that the call wants, do not exceed the call's own `permits`. So a deployment can raise the number while
   * clients with the old number still run. When a call is refused while callers use different numbers, the client emits
   * an `error` event with code `ERR_LOCK_PERMITS`, once for each semaphore.
   * @param key 1 to 1024 UTF-8 bytes
   * @param permits how many permits the semaphore has: a whole number from 1
   * @throws LockArgumentError when the key or the number is wrong
   * @since 0.2.0
   */
  semaphore(key: string, permits: number): Lock<SemaphoreOptions> {
    checkText('key', key)
    checkPermits(permits)
    // The `Calls` are made on first use. A client without semaphores does not need the Redis rights that the scripts of
    // semaphores need.
    this.#semaphores ??= this.#session.locks(semaphore)
    return new KeyedLock(this.#semaphores, key, permits)
  }

  /**
   * Returns a read-write lock: any number of readers, or one writer. It is independent of the mutex of the same key.
   *
   * Fair calls are phase-fair: a reader waits for at most one writer's turn, and when a writer ends, all readers that
   * are waiting are admitted. The owner of the write lock may also take the read lock, and may keep the read lock after
   * releasing the write lock. An owner that holds only the read lock and asks for the write lock gets
   * LockDeadlockError.
   * @param key 1 to 1024 UTF-8 bytes
   * @throws LockArgumentError when the key is wrong
   * @since 0.2.0
   */
  readWrite(key: string): ReadWriteLock {
    checkText('key', key)
    this.#readWrites ??= { read: this.#session.locks(reading), write: this.#session.locks(writing) }
    const { read, write } = this.#readWrites
    return {
      key,
      read: new KeyedLock(read, key),
      write: new KeyedLock(write, key),
      inspect: () => write.inspect(key),
    }
  }

  /**
   * Combines several locks into one: all of them are taken, or none. `all` always takes locks in the same order,
   * whatever the order of `parts`, so callers of `all` never wait for each other in a circle.
   * @param parts locks of this client, or keys of mutexes. A lock that is given twice is taken once. If both sides of a
   *   read-write lock are given, the write lock is taken
   * @throws LockArgumentError when `parts` is empty, a lock belongs to another client, or a semaphore is given with two
   *   numbers of permits
   * @since 0.2.0
   */
  all(parts: readonly (string | Lock)[]): MultiLock {
    if (!Array.isArray(parts) || parts.length === 0)
      throw new LockArgumentError('parts', parts, 'an array of at least one key or lock')
    return new MultiLock(
      parts.map(part => this.#lockOf('parts', part)),
      this.#session.context,
    )
  }

  /**
   * Reads the lock's holder and its fair queue from Redis. Writes nothing.
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses the command
   * @throws LockClosedError when the client is closed
   * @throws LockArgumentError when the key is wrong
   * @since 0.1.0
   */
  async inspect(key: string): Promise<LockState> {
    return this.#mutexes.inspect(key)
  }

  /**
   * Reads from Redis whether the lock is held. Writes nothing.
   * @throws what `inspect` throws
   * @since 0.1.0
   */
  async isLocked(key: string): Promise<boolean> {
    return about(key, this.#mutexes.inspection(key).isLocked(key))
  }

  /**
   * Finds the locks of every kind that are held or have a queue, in no particular order, each at most once. The `kind`
   * of a state says of which kind the lock is. `list` uses SCAN. In a cluster it scans every master.
   * @param pattern the pattern that keys must match: `*`, `?`, `[abc]`, `[^a-c]`, and `\` before a character that is
   *   meant literally. Default: all keys
   * @throws LockConnectionError when Redis is out of reach for `outageTimeout`, or refuses the command
   * @throws LockClosedError when the client is closed
   * @throws LockArgumentError when the pattern is wrong
   * @since 0.1.0
   */
  async *list(pattern = '*'): AsyncGenerator<LockState, void, undefined> {
    if (typeof pattern !== 'string') throw new LockArgumentError('pattern', pattern, 'a string')
    if (this.#session.closed) throw new LockClosedError()
    try {
      yield* this.#session.list(this.#kinds, pattern)
    } catch (error) {
      throw named(undefined, error)
    }
  }

  /**
   * Takes the lock away from its holders and wakes the next waiter. Each holder's `signal` aborts promptly. A holder
   * may continue to write; only the fencing token then protects the data.
   * @param lock a lock of this client, or the key of a mutex. For the read lock and for the write lock of a read-write
   *   lock, the call does the same: all readers and the writer lose the lock
   * @param only the `id` of one holder, as `inspect` shows it. Only that holder loses the lock. Default: all holders
   * @returns true if a holder lost the lock; false if the lock was free, or the given holder did not hold it
   * @throws what `inspect` throws
   * @throws LockArgumentError when the lock belongs to another client, or the id is not that of a holder
   * @since 0.1.0
   */
  async forceRelease(lock: string | Lock, ...only: [] | [id: string]): Promise<boolean> {
    const { key, client } = this.#lockOf('key', lock)
    // An explicit `undefined` is a mistake of the caller, and must not release all holders.
    if (only.length > 0) checkId(only[0])
    return about(key, client.inspection(key).forceRelease(key, only[0]))
  }

  /**
   * Returns the counters and distributions of this client since it was made.
   * @since 0.1.0
   */
  stats(): ClientStats {
    return this.#session.stats()
  }

  /**
   * Closes the client. New calls and waiting calls reject with LockClosedError. Then the client ends all holds, and
   * closes the connections.
   *
   * With `drain`, holders first get that many ms to release their locks. Their leases are renewed meanwhile, and calls
   * that re-enter a hold of this client are granted as before. The drain ends early when nothing is held any more.
   * After the drain, every remaining lease is lost: `held` is false, `signal` aborts with LockClosedError, and `lost` is
   * emitted with LockClosedError. A `using` whose function still runs rejects with LockClosedError, too. After that, the
   * holds are released in Redis. If `close` is called again during a drain, the second call can make the drain shorter,
   * but not longer. So `close()` without `drain` ends a drain at once.
   * @returns a promise that settles when Redis contains no hold and no waiter of this client any more. If a release
   *   fails, an `error` event reports it. That hold then ends when its lease ends
   * @throws LockArgumentError when an option is wrong; the client then stays open. The promise rejects with no other
   *   error
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

  static {
    for (const [name, instead] of Object.entries(others)) {
      const value = () => {
        throw new TypeError(`a LockClient has no ${name}(); write ${instead}`)
      }
      Object.defineProperty(LockClient.prototype, name, { value })
    }
  }

  #usable(lock: string | Lock | MultiLock): Pick<Lock<SemaphoreOptions>, 'using' | 'wrap'> {
    return lock instanceof MultiLock ? (lock as never) : this.#lockOf('key', lock)
  }

  /**
   * Returns `lock` itself, or the mutex if `lock` is a key. `option`: the name of the argument in which `lock` was
   * passed.
   */
  #lockOf(option: string, lock: string | Lock): KeyedLock {
    const own = typeof lock === 'string' ? this.mutex(lock) : lock
    if (own instanceof KeyedLock && own.client.context === this.#session.context) return own
    const accepted = 'a key, or a lock made by this client (of a read-write lock, its `read` or `write`)'
    throw new LockArgumentError(option, lock, accepted)
  }
}

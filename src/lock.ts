/** A lock as an object. kind-client.ts has the calls behind it. */

import type { TellRefused } from './call.ts'
import type { Lease } from './key/lease.ts'
import type { KindClient } from './kind-client.ts'
import type { LockState } from './kinds/state.ts'
import type { LockOptions, SemaphoreOptions } from './options.ts'
import { type Holdable, type Using, using, wrapped } from './using.ts'

/**
 * One lock: a key and a kind. A `LockClient` makes this object. The object itself holds nothing and needs no closing.
 * @since 0.2.0
 */
export interface Lock<Options extends LockOptions = LockOptions> {
  /** The key, which identifies the lock among those of its kind. @since 0.2.0 */
  readonly key: string
  /**
   * Waits until the lock is granted.
   * @returns the lease. The caller releases it
   * @throws what `LockClient.lock` throws
   * @since 0.2.0
   */
  lock(options?: Options): Promise<Lease>
  /**
   * Without `timeout`, makes a single attempt to take the lock. With `timeout`, waits for at most that time.
   * @returns the lease, or null if another owner has the lock
   * @throws what `LockClient.tryLock` throws
   * @since 0.2.0
   */
  tryLock(options?: Options): Promise<Lease | null>
  /**
   * Runs `fn` while holding the lock, and always releases it afterwards.
   * @param fn receives the lease, and need not release it
   * @returns what `fn` returns
   * @throws what `LockClient.using` throws
   * @since 0.2.0
   */
  using<T>(fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  /**
   * Runs `fn` while holding the lock, and always releases it afterwards. Takes options for this call.
   * @param options options for this call
   * @returns what `fn` returns
   * @throws what `LockClient.using` throws
   * @since 0.2.0
   */
  using<T>(options: Options, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  /**
   * Returns a function that runs `fn` under the lock.
   * @param options the options of each call
   * @returns a function with the parameters of `fn`. It returns a promise that settles like the promise of `using`
   * @throws LockArgumentError when `fn` or an option is wrong
   * @since 0.2.0
   */
  wrap<This, Args extends unknown[], R>(
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options?: Options,
  ): (this: This, ...args: Args) => Promise<R>
  /**
   * Reads the lock's holders and its fair queue from Redis. Writes nothing.
   * @throws what `LockClient.inspect` throws
   * @since 0.2.0
   */
  inspect(): Promise<LockState>
}

/**
 * A lock that any number of readers or one writer may hold. `LockClient.readWrite` makes this object.
 * @since 0.2.0
 */
export interface ReadWriteLock {
  /** The key, which identifies the lock among the read-write locks. @since 0.2.0 */
  readonly key: string
  /** The read lock: any number of owners may hold it while no other owner holds the write lock. @since 0.2.0 */
  readonly read: Lock
  /** The write lock: one owner may hold it while no other owner holds either lock. @since 0.2.0 */
  readonly write: Lock
  /**
   * Reads from Redis the readers and writers that hold the lock or are queued for it. Writes nothing.
   * @throws what `LockClient.inspect` throws
   * @since 0.2.0
   */
  inspect(): Promise<LockState>
}

export class KeyedLock implements Lock<SemaphoreOptions>, Holdable<Lease, SemaphoreOptions> {
  readonly key: string
  readonly #client: KindClient<LockState>
  /** How many permits a semaphore has; undefined for other kinds of lock. */
  readonly permits: number | undefined

  constructor(client: KindClient<LockState>, key: string, permits?: number) {
    this.#client = client
    this.key = key
    this.permits = permits
  }

  /** Not a field, because a lock may be written as JSON. */
  get client(): KindClient<LockState> {
    return this.#client
  }

  lock(options?: SemaphoreOptions): Promise<Lease> {
    return this.client.acquire(this.key, options, true, this.permits) as Promise<Lease>
  }

  /** `refused` is called with the holder before the call resolves to null. */
  tryLock(options?: SemaphoreOptions, refused?: TellRefused): Promise<Lease | null> {
    return this.client.acquire(this.key, options, false, this.permits, refused)
  }

  using<T>(...args: Using<Lease, T, SemaphoreOptions>): Promise<T> {
    return using(this, args)
  }

  wrap<This, Args extends unknown[], R>(
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: SemaphoreOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    this.client.termsOf(options, this.permits)
    return wrapped(fn, call => this.using(options, call))
  }

  inspect(): Promise<LockState> {
    return this.client.inspect(this.key)
  }

  within<T>(lease: Lease, fn: () => T): T {
    return this.client.within(lease, fn)
  }

  giveBack(lease: Lease): Promise<boolean> {
    return this.client.releaseQuietly(lease)
  }

  /** Gives back a lease that nobody has used. */
  giveUp(lease: Lease): Promise<boolean> {
    lease.unused()
    return this.giveBack(lease)
  }

  /**
   * Identifies the lock among the locks of all kinds. A client that takes several locks takes them in the order of
   * these strings.
   */
  get order(): string {
    return `${this.client.name}/${this.key}`
  }
}

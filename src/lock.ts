/** A lock as an object: one key of one kind, with the calls that every kind has. */
import type { Calls } from './calls.ts'
import type { LockState } from './kinds/state.ts'
import type { Lease } from './lease/lease.ts'
import { callTermsOf, type LockOptions, type SemaphoreOptions } from './options.ts'
import { type Holdable, type Using, using, wrapped } from './using.ts'

/**
 * A lock of one key, whichever its kind. Made by a `LockClient`; it holds nothing itself, and need not be closed.
 * @since 0.2.0
 */
export interface Lock<Options extends LockOptions = LockOptions> {
  /** Which lock it is, among those of its kind. @since 0.2.0 */
  readonly key: string
  /**
   * Waits until it is granted.
   * @returns the lease, to be released
   * @throws what `LockClient.lock` throws
   * @since 0.2.0
   */
  lock(options?: Options): Promise<Lease>
  /**
   * One attempt, or with `timeout` as many as fit in it.
   * @returns the lease, or null if somebody else has it
   * @throws what `LockClient.tryLock` throws
   * @since 0.2.0
   */
  tryLock(options?: Options): Promise<Lease | null>
  /**
   * Runs `fn` under the lock, and releases it in any case.
   * @param fn gets the lease; it need not release it
   * @returns what `fn` returns
   * @throws what `LockClient.using` throws
   * @since 0.2.0
   */
  using<T>(fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  /**
   * The same with options for this call.
   * @throws what `LockClient.using` throws
   * @since 0.2.0
   */
  using<T>(options: Options, fn: (lease: Lease) => T | PromiseLike<T>): Promise<T>
  /**
   * `fn` as a function that runs under the lock.
   * @param options of each call
   * @returns a function with the parameters of `fn`, whose promise settles as that of `using`
   * @throws LockArgumentError when `fn` or an option is wrong
   * @since 0.2.0
   */
  wrap<This, Args extends unknown[], R>(
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options?: Options,
  ): (this: This, ...args: Args) => Promise<R>
  /**
   * Who holds it and who is queued for it, as Redis has them now. Writes nothing.
   * @throws what `LockClient.inspect` throws
   * @since 0.2.0
   */
  inspect(): Promise<LockState>
}

/**
 * A lock of one key that many may read, or one may write. Made by `LockClient.readWrite`.
 * @since 0.2.0
 */
export interface ReadWriteLock {
  /** Which lock it is, among the read-write locks. @since 0.2.0 */
  readonly key: string
  /** Held by any number of owners at a time, while nobody writes. @since 0.2.0 */
  readonly read: Lock
  /** Held by one owner, while nobody else reads. @since 0.2.0 */
  readonly write: Lock
  /**
   * Who holds it and who is queued for it, to read or to write, as Redis has them now. Writes nothing.
   * @throws what `LockClient.inspect` throws
   * @since 0.2.0
   */
  inspect(): Promise<LockState>
}

export class KeyedLock implements Lock<SemaphoreOptions>, Holdable<Lease, SemaphoreOptions> {
  readonly key: string
  readonly calls: Calls<LockState>
  /** How many a semaphore has; undefined: it is none. */
  readonly #permits: number | undefined

  constructor(calls: Calls<LockState>, key: string, permits?: number) {
    this.calls = calls
    this.key = key
    this.#permits = permits
  }

  lock(options?: SemaphoreOptions): Promise<Lease> {
    return this.calls.acquire(this.key, options, true, this.#permits) as Promise<Lease>
  }

  tryLock(options?: SemaphoreOptions): Promise<Lease | null> {
    return this.calls.acquire(this.key, options, false, this.#permits)
  }

  using<T>(...args: Using<Lease, T, SemaphoreOptions>): Promise<T> {
    return using(this, args)
  }

  wrap<This, Args extends unknown[], R>(
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: SemaphoreOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    callTermsOf(options, this.calls.caller.settings, this.#permits)
    return wrapped(fn, call => this.using(options, call))
  }

  inspect(): Promise<LockState> {
    return this.calls.inspect(this.key)
  }

  within<T>(lease: Lease, fn: () => T): T {
    return this.calls.within(lease, fn)
  }

  giveBack(lease: Lease): Promise<boolean> {
    return this.calls.releaseQuietly(lease)
  }

  /** Locks with the same text are one lock; by these texts all clients take several locks in the same order. */
  get order(): string {
    return `${this.calls.kind}/${this.key}`
  }
}

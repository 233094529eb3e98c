/**
 * A lock as an object, and the calls behind it. `Calls` has the calls on the locks of one kind: it checks the arguments,
 * adds the key to the errors, and releases the lease when a `using` ends. A client has one `Calls` for each kind in use,
 * which all `Lock` objects of that kind share.
 */
import { toMicros } from './clock.ts'
import { about, type HolderInfo, LockArgumentError, LockClosedError, LockTimeoutError, named } from './errors.ts'
import type { Lease } from './key/lease.ts'
import type { Waiter } from './key/waiter.ts'
import type { Inspection } from './kind.ts'
import type { KindClient, Without } from './kind-client.ts'
import type { LockState } from './kinds/state.ts'
import type { LockOptions, SemaphoreOptions } from './options.ts'
import type { Reentry } from './reentry.ts'
import type { Session } from './session.ts'
import { type CallTerms, callTermsOf, checkLongest, checkText, type Settings } from './settings.ts'
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

/** What all `Calls` objects of one client share. */
export interface Caller {
  readonly session: Session
  readonly settings: Settings
  readonly reentry: Reentry
  /** Observes every call, for tracing. */
  spectator?: Spectator | undefined
}

/** Wraps each call that takes a lock, and each function that runs under a lock. */
export interface Spectator {
  call<T extends Lease | null>(
    on: Pick<Calls, 'kind' | 'shared'>,
    operation: 'lock' | 'tryLock',
    key: string,
    options: LockOptions | undefined,
    make: () => Promise<T>,
  ): Promise<T>
  under<T>(lease: Lease, fn: () => T): () => T
}

/** Receives the holder because of which a call got no lease; undefined if the holder is not known. */
export type Refused = (holder: HolderInfo | undefined) => void

export class Calls<State = unknown> {
  /** The same object for all locks of one client. Another client has another object. */
  readonly caller: Caller
  /** The word for this kind of lock in the names of Redis keys; '' for the mutex. */
  readonly kind: string
  readonly #client: KindClient<State>
  /** The defaults of the client, for a call that passes no options. */
  readonly #usual: CallTerms
  /** Settles a call of `lock` whose wait ended without a lease: the call rejects. */
  readonly #rejects = this.#without(true)
  /**
   * Settles a call of `tryLock` that got no lease: it resolves to null if the lock was refused, and rejects otherwise.
   */
  readonly #resolvesNull = this.#without(false)

  constructor(caller: Caller, kind: string, client: KindClient<State>) {
    this.caller = caller
    this.kind = kind
    this.#client = client
    this.#usual = callTermsOf({}, caller.settings)
  }

  /** Whether several owners may hold the lock at a time. */
  get shared(): boolean {
    return this.#client.kind.shared
  }

  /**
   * Resolves to the lease. If another owner has the lock and the call is not `blocking`, resolves to null. `permits` is
   * how many permits the semaphore has. `refused` is called with the holder before a call resolves to null. `spectator`
   * observes the call. This is not an async function, because thousands of calls may wait, and each would keep an async
   * frame in memory.
   */
  acquire(
    key: string,
    options: SemaphoreOptions | undefined,
    blocking: boolean,
    permits?: number,
    refused?: Refused,
    spectator: Spectator | null | undefined = this.caller.spectator,
  ): Promise<Lease | null> {
    if (spectator) {
      // This is a `bind` and not a closure. For a closure, V8 would copy the arguments to the heap in every call, even
      // if there is no spectator.
      const make = this.acquire.bind(this, key, options, blocking, permits, refused, null)
      return spectator.call(this, blocking ? 'lock' : 'tryLock', key, options, make)
    }
    try {
      checkText('key', key)
      const { reentry } = this.caller
      const usual = options === undefined && permits === undefined
      const call = usual ? this.#usual : this.termsOf(options === undefined ? {} : options, permits)
      const once = blocking ? call.timeout === 0 : !call.timeout
      const without = blocking ? this.#rejects : refused ? this.#without(false, refused) : this.#resolvesNull
      return this.#client.acquire(key, call.owner ?? reentry.ownerOf(this.kind, key), call, once, without)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Checks the options of a call, and completes them with the client's defaults. */
  termsOf(options: SemaphoreOptions, permits?: number): CallTerms {
    const terms = callTermsOf(options, this.caller.settings, permits)
    const { lacks = [], longestLease } = this.#client.kind
    for (const name of lacks) {
      const value = options[name]
      if (value === undefined) continue
      const why = `no option \`${name}\`, because each server of a quorum has its own queue`
      throw new LockArgumentError(name, value, why)
    }
    checkLongest('lease', terms.lease, longestLease)
    return terms
  }

  /** Runs `fn` in an async context in which calls on the lease's key re-enter. */
  within<T>(lease: Lease, fn: () => T): T {
    const { reentry, spectator } = this.caller
    return reentry.within(this.kind, lease, spectator ? spectator.under(lease, fn) : fn)
  }

  /**
   * Releases a lease at the end of the work that needed it. A failed release must not hide the outcome of that work. So
   * if the release fails, an `error` event reports the failure, and the promise resolves to false.
   */
  releaseQuietly(lease: Lease): Promise<boolean> {
    return this.#client.releaseQuietly(lease)
  }

  async inspect(key: string): Promise<State> {
    return about(key, this.inspection(key).inspect(key))
  }

  /** Checks the key and returns the inspection of this kind of lock. */
  inspection(key: string): Inspection<State> {
    checkText('key', key)
    if (this.caller.session.closed) throw new LockClosedError(key)
    return this.#client.kind.inspection
  }

  #without(blocking: boolean, told?: Refused): Without<null> {
    const failed = (error: unknown, key: string) => {
      this.caller.session.without('failed')
      return named(key, error)
    }
    const refused = (waiter: Waiter) => {
      const unanswered = this.#client.io.unanswered(waiter)
      if (unanswered && !blocking) return failed(unanswered, waiter.claim.key) as Error
      this.caller.session.without(waiter.wish.mode === 'once' ? 'refused' : 'timedOut')
      told?.(this.#client.holder(waiter))
      return blocking ? this.#outOfTime(waiter, this.#client.io.outage ?? unanswered) : null
    }
    return { failed, refused }
  }

  #outOfTime(waiter: Waiter, cause: Error | undefined): LockTimeoutError {
    const { key } = waiter.claim
    const waited = toMicros(this.caller.session.clock.now() - waiter.since)
    const position = waiter.refusal?.position || undefined
    return new LockTimeoutError(key, waited, this.#client.holder(waiter), position, cause, this.#client.details(waiter))
  }
}

export class KeyedLock implements Lock<SemaphoreOptions>, Holdable<Lease, SemaphoreOptions> {
  readonly key: string
  readonly #calls: Calls<LockState>
  /** How many permits a semaphore has; undefined for other kinds of lock. */
  readonly permits: number | undefined

  constructor(calls: Calls<LockState>, key: string, permits?: number) {
    this.#calls = calls
    this.key = key
    this.permits = permits
  }

  /** Not a field, because a lock may be written as JSON. */
  get calls(): Calls<LockState> {
    return this.#calls
  }

  lock(options?: SemaphoreOptions): Promise<Lease> {
    return this.calls.acquire(this.key, options, true, this.permits) as Promise<Lease>
  }

  /** `refused` is called with the holder before the call resolves to null. */
  tryLock(options?: SemaphoreOptions, refused?: Refused): Promise<Lease | null> {
    return this.calls.acquire(this.key, options, false, this.permits, refused)
  }

  using<T>(...args: Using<Lease, T, SemaphoreOptions>): Promise<T> {
    return using(this, args)
  }

  wrap<This, Args extends unknown[], R>(
    fn: (this: This, ...args: Args) => R | PromiseLike<R>,
    options: SemaphoreOptions = {},
  ): (this: This, ...args: Args) => Promise<R> {
    this.calls.termsOf(options, this.permits)
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
    return `${this.calls.kind}/${this.key}`
  }
}

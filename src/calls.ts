/**
 * The public calls on the locks of one kind. `Calls` checks the arguments of a call, adds the key to the errors of the
 * call, and releases the lease when a `using` ends. A client has one `Calls` for each kind in use. All `Lock` objects
 * of that kind share this `Calls`.
 */
import { systemClock } from './clock.ts'
import { about, type HolderInfo, LockClosedError, LockTimeoutError, named } from './errors.ts'
import type { Inspection } from './kind.ts'
import type { Lease } from './key/lease.ts'
import type { Waiter } from './key/waiter.ts'
import type { KindClient, Without } from './kind-client.ts'
import {
  type CallTerms,
  callTermsOf,
  checkKey,
  type LockOptions,
  type SemaphoreOptions,
  type Settings,
} from './options.ts'
import type { Reentry } from './reentry.ts'
import type { Session } from './session.ts'

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
  readonly #locks: KindClient<State>
  /** The defaults of the client, for a call that passes no options. */
  readonly #usual: CallTerms
  /** Settles a call of `lock` whose wait ended without a lease: the call rejects. */
  readonly #rejects = this.#without(true)
  /**
   * Settles a call of `tryLock` that got no lease: it resolves to null if the lock was refused, and rejects otherwise.
   */
  readonly #resolvesNull = this.#without(false)

  constructor(caller: Caller, kind: string, locks: KindClient<State>) {
    this.caller = caller
    this.kind = kind
    this.#locks = locks
    this.#usual = callTermsOf({}, caller.settings)
  }

  /** Whether several owners may hold the lock at a time. */
  get shared(): boolean {
    return this.#locks.kind.shared
  }

  /**
   * Resolves to the lease. If another owner has the lock and the call is not `blocking`, resolves to null. `permits` is
   * how many permits the semaphore has. `refused` is called with the holder before a call resolves to null. This is not
   * an async function, because thousands of calls may wait, and each would keep an async frame in memory.
   */
  acquire(
    key: string,
    options: SemaphoreOptions | undefined,
    blocking: boolean,
    permits?: number,
    refused?: Refused,
  ): Promise<Lease | null> {
    const { spectator } = this.caller
    if (!spectator) return this.#acquire(key, options, blocking, permits, refused)
    // This is a `bind` and not a closure. For a closure, V8 would copy the arguments to the heap in every call, even if
    // there is no spectator.
    const make = this.#acquire.bind(this, key, options, blocking, permits, refused)
    return spectator.call(this, blocking ? 'lock' : 'tryLock', key, options, make)
  }

  #acquire(
    key: string,
    options: SemaphoreOptions | undefined,
    blocking: boolean,
    permits: number | undefined,
    refused: Refused | undefined,
  ): Promise<Lease | null> {
    try {
      checkKey(key)
      const { settings, reentry } = this.caller
      const usual = options === undefined && permits === undefined
      const call = usual ? this.#usual : callTermsOf(options === undefined ? {} : options, settings, permits)
      const once = blocking ? call.timeout === 0 : !call.timeout
      const without = blocking ? this.#rejects : refused ? this.#without(false, refused) : this.#resolvesNull
      return this.#locks.acquire(key, call.owner ?? reentry.ownerOf(this.kind, key), call, once, without)
    } catch (error) {
      return Promise.reject(error)
    }
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
    return this.#locks.releaseQuietly(lease)
  }

  async inspect(key: string): Promise<State> {
    return about(key, this.inspection(key).inspect(key))
  }

  /** Checks the key and returns the inspection of this kind of lock. */
  inspection(key: string): Inspection<State> {
    checkKey(key)
    if (this.caller.session.closed) throw new LockClosedError(key)
    return this.#locks.kind.inspection
  }

  #without(blocking: boolean, told?: Refused): Without<null> {
    const failed = (error: unknown, key: string) => {
      this.caller.session.without('failed')
      return named(key, error)
    }
    const refused = (waiter: Waiter) => {
      const unanswered = this.#locks.io.unanswered(waiter)
      if (unanswered && !blocking) return failed(unanswered, waiter.claim.key) as Error
      this.caller.session.without(waiter.wish.mode === 'once' ? 'refused' : 'timedOut')
      told?.(this.#locks.holder(waiter))
      return blocking ? this.#outOfTime(waiter, this.#locks.io.outage ?? unanswered) : null
    }
    return { failed, refused }
  }

  #outOfTime(waiter: Waiter, cause: Error | undefined): LockTimeoutError {
    const { key } = waiter.claim
    const waited = systemClock.now() - waiter.since
    const position = waiter.refusal?.position || undefined
    return new LockTimeoutError(key, waited, this.#locks.holder(waiter), position, cause, this.#locks.details(waiter))
  }
}

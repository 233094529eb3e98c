/**
 * The calls of the contract on the locks of one kind: their arguments checked, their errors named, and what a call has taken
 * given back. `LockClient` has them for mutexes by key, and a `Lock` for one key of any kind.
 */
import { about, LockClosedError, LockTimeoutError, named } from './errors.ts'
import type { Inspection } from './kind.ts'
import type { Lease } from './lease/lease.ts'
import type { Waiter } from './local/waiter.ts'
import type { Locks, Without } from './locks.ts'
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

/** What the calls of all kinds of one client have in common. */
export interface Caller {
  readonly session: Session
  readonly settings: Settings
  readonly reentry: Reentry
  /** Undefined: nobody looks on. */
  spectator?: Spectator | undefined
}

/** Stands around each call that takes a lock, and around what runs under one. */
export interface Spectator {
  call<T extends Lease | null>(
    on: Pick<Calls, 'kind' | 'shared'>,
    operation: 'lock' | 'tryLock',
    key: string,
    options: LockOptions | undefined,
    make: () => Promise<T>,
  ): Promise<T>
  /** What is to run in the place of `fn`. */
  under<T>(lease: Lease, fn: () => T): () => T
}

export class Calls<State = unknown> {
  /** The client's own: locks of other clients have another one. */
  readonly caller: Caller
  /** As it stands in names in Redis; '' of the mutex. */
  readonly kind: string
  readonly #locks: Locks<State>
  /** A call without options. */
  readonly #usual: CallTerms
  /** What becomes of a blocking call that ends without a lease, and of another. */
  readonly #rejects = this.#without(true)
  readonly #resolvesNull = this.#without(false)

  constructor(caller: Caller, kind: string, locks: Locks<State>) {
    this.caller = caller
    this.kind = kind
    this.#locks = locks
    this.#usual = callTermsOf({}, caller.settings)
  }

  /** Whether several may hold at a time. */
  get shared(): boolean {
    return this.#locks.kind.shared
  }

  /**
   * Null, unless the call is `blocking`: somebody else has the lock. No async function: thousands of calls may wait, and the
   * frame of each would be kept. `permits`: how many the semaphore has.
   */
  acquire(
    key: string,
    options: SemaphoreOptions | undefined,
    blocking: boolean,
    permits?: number,
  ): Promise<Lease | null> {
    const { spectator } = this.caller
    if (!spectator) return this.#acquire(key, options, blocking, permits)
    // Bound: for a closure V8 would keep the arguments apart in every call, also where nobody looks on.
    const make = this.#acquire.bind(this, key, options, blocking, permits)
    return spectator.call(this, blocking ? 'lock' : 'tryLock', key, options, make)
  }

  #acquire(
    key: string,
    options: SemaphoreOptions | undefined,
    blocking: boolean,
    permits: number | undefined,
  ): Promise<Lease | null> {
    try {
      checkKey(key)
      const { settings, reentry } = this.caller
      const usual = options === undefined && permits === undefined
      const call = usual ? this.#usual : callTermsOf(options === undefined ? {} : options, settings, permits)
      const once = blocking ? call.timeout === 0 : !call.timeout
      const without = blocking ? this.#rejects : this.#resolvesNull
      return this.#locks.acquire(key, call.owner ?? reentry.ownerOf(this.kind, key), call, once, without)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Runs `fn` inside the lease, in whose async context locks of its key re-enter. */
  within<T>(lease: Lease, fn: () => T): T {
    const { reentry, spectator } = this.caller
    return reentry.within(this.kind, lease, spectator ? spectator.under(lease, fn) : fn)
  }

  /** For releases whose failure must not hide something more important: it becomes an event, and resolves false. */
  releaseQuietly(lease: Lease): Promise<boolean> {
    return this.#locks.releaseQuietly(lease)
  }

  async inspect(key: string): Promise<State> {
    return about(key, this.inspection(key).inspect(key))
  }

  /** For a look at this key. */
  inspection(key: string): Inspection<State> {
    checkKey(key)
    if (this.caller.session.closed) throw new LockClosedError(key)
    return this.#locks.kind.inspection
  }

  #without(blocking: boolean): Without<null> {
    const failed = (error: unknown, key: string) => {
      this.caller.session.without('failed')
      return named(key, error)
    }
    const refused = (waiter: Waiter) => {
      const unanswered = !blocking && this.#locks.acquirer.unanswered(waiter)
      if (unanswered) return failed(unanswered, waiter.claim.key) as Error
      this.caller.session.without(waiter.wish.mode === 'once' ? 'refused' : 'timedOut')
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
}

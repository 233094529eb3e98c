/**
 * What the caller holds, and its states:
 *
 *      held ──release()──▶ releasing ──▶ released
 *        └──────────────────────┴─────▶ lost     its deadline passed, or Redis said that the hold is gone
 *
 * `held` is read from the clock at each look, so it is true to the moment even where timers cannot run (a blocked event
 * loop, a process that was stopped). Losing is a separate step, taken by the scheduler, because it has to be told.
 */
import type { Clock } from '../clock.ts'
import type { LockClosedError, LockLostError } from '../errors.ts'
import type { Granted, Hold, Via } from '../kind.ts'
import { checkRenewal } from '../options.ts'
import type { Tenure } from './tenure.ts'

/** Why a hold was lost: by itself, or because its client was closed. */
export type Loss = LockLostError | LockClosedError

/** What a lease asks of the client that granted it. */
export interface Keeper {
  readonly clock: Clock
  /** Ends the hold in Redis; whether that ended a live hold. Rejects with LockConnectionError. */
  release(lease: Lease): Promise<boolean>
  /** Prolongs the hold by `ms` from now. Rejects with LockLostError or LockConnectionError. */
  renew(lease: Lease, ms: number): Promise<void>
}

export interface Terms {
  /** Unguessable; that of the waiter before it. */
  readonly id: string
  /** What Redis knows: its id is the lease's own, unless the lock came from another lease of this client. */
  readonly hold: Hold
  /** The run of hand-offs within this client that the lease may continue. */
  readonly tenure?: Tenure | undefined
  readonly owner: string
  /** What others are shown of who holds. */
  readonly label: string
  /** Length of the lease, in ms. */
  readonly lease: number
  /** Until when (monotonic ms) it is renewed automatically; before its start: never. */
  readonly renewUntil: number
  /** When it was granted, monotonic ms. */
  readonly since: number
  /** ms between the call and the grant. */
  readonly waited: number
}

/** The other side of a lease: what its client and the scheduler may do with it, and its user may not. */
export interface Inside {
  terms(lease: Lease): Terms
  state(lease: Lease): State
  deadline(lease: Lease): number
  /** Raises the deadline; it never falls. */
  prolong(lease: Lease, deadline: number): void
  /** From held to releasing. False if it was not held any more. */
  leave(lease: Lease): boolean
  /** From releasing to released. */
  finish(lease: Lease): void
  /** From held or releasing to lost. False if it had ended. */
  lose(lease: Lease, error: Loss): boolean
  /** Why it was lost, if it was. */
  loss(lease: Lease): Loss | undefined
}

export type State = 'held' | 'releasing' | 'released' | 'lost'

export let inside: Inside

const no = () => false

/**
 * One hold of a lock, from its grant to its end. Made by a `LockClient`; `await using` releases it.
 * @since 0.1.0
 */
export class Lease implements AsyncDisposable {
  /** The key of the lock. @since 0.1.0 */
  readonly key: string
  /** Who holds: leases of one owner re-enter each other. @since 0.1.0 */
  readonly owner: string
  /** Unguessable id of this one hold. @since 0.1.0 */
  readonly id: string
  /**
   * A number that is strictly larger than that of any earlier grant of the key; equal for re-entrant holds. To be checked
   * by what the lock protects.
   * @since 0.1.0
   */
  readonly fencingToken: number
  /** ms between the call and the grant. @since 0.1.0 */
  readonly waited: number
  /** How the grant came about. @since 0.1.0 */
  readonly via: Via
  readonly #keeper: Keeper
  readonly #terms: Terms
  #deadline: number
  #state: State = 'held'
  #error: Loss | undefined
  /** Made when somebody asks for the signal: most leases end without. */
  #controller: AbortController | undefined
  #releasing: Promise<boolean> | undefined

  /** @internal */
  constructor(terms: Terms, grant: Granted, keeper: Keeper) {
    this.key = terms.hold.key
    this.owner = terms.owner
    this.id = terms.id
    this.fencingToken = grant.token
    this.waited = terms.waited
    this.via = grant.via
    this.#terms = terms
    this.#keeper = keeper
    this.#deadline = grant.deadline
  }

  /**
   * Whether the hold is surely still ours; false once the lease may have ended. Synchronous, local, conservative.
   * @since 0.1.0
   */
  get held(): boolean {
    return this.remaining() > 0
  }

  /**
   * For how long the hold is surely still ours.
   * @returns ms; 0 when it is not held
   * @since 0.1.0
   */
  remaining(): number {
    return this.#state === 'held' ? Math.max(0, this.#deadline - this.#keeper.clock.now()) : 0
  }

  /**
   * Aborts when the hold is lost, before anyone else can own the lock. Its reason is a `LockLostError`, or where `close` of
   * the client ended the hold, a `LockClosedError`.
   * @since 0.1.0
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#error) this.#controller.abort(this.#error)
    }
    return this.#controller.signal
  }

  /**
   * Prolongs the hold.
   * @param ms from now on; default: the length of its lease. A shorter time than it has left changes nothing.
   * @throws LockLostError when it is not held any more; if it was lost, `cause` is the reason of `signal`
   * @throws LockConnectionError when Redis could not be asked in time
   * @throws LockArgumentError when `ms` is no number of ms from 1
   * @since 0.1.0
   */
  async renew(ms: number = this.#terms.lease): Promise<void> {
    checkRenewal(ms)
    await this.#keeper.renew(this, Math.floor(ms))
  }

  /**
   * Ends the hold. May be called late and repeatedly: it never ends anything but this hold.
   * @returns true: this call ended a live hold; false: it had ended already (released, expired, lost)
   * @throws LockConnectionError when Redis could not be reached; the lock is then free at the end of the lease
   * @since 0.1.0
   */
  release(): Promise<boolean> {
    if (this.#releasing) return this.#releasing.then(no, no)
    this.#releasing = this.#keeper.release(this)
    return this.#releasing
  }

  /**
   * `release`, for `await using`.
   * @throws LockConnectionError as `release` does
   * @since 0.1.0
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  static {
    inside = {
      terms: lease => lease.#terms,
      state: lease => lease.#state,
      deadline: lease => lease.#deadline,
      prolong(lease, deadline) {
        if (deadline > lease.#deadline) lease.#deadline = deadline
      },
      leave(lease) {
        if (lease.#state !== 'held') return false
        lease.#state = 'releasing'
        return true
      },
      finish(lease) {
        if (lease.#state === 'releasing') lease.#state = 'released'
      },
      lose(lease, error) {
        if (lease.#state === 'released' || lease.#state === 'lost') return false
        lease.#state = 'lost'
        lease.#error = error
        lease.#controller?.abort(error)
        return true
      },
      loss: lease => lease.#error,
    }
  }
}

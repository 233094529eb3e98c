/** The hold of a lock as its holder sees it: what can be read of the record, and the calls that prolong and end it. */
import type { Via } from '../kind.ts'
import type { Hold } from '../local/hold.ts'
import { checkRenewal } from '../options.ts'
import type { Holds } from './holds.ts'

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
  readonly #hold: Hold
  readonly #holds: Pick<Holds, 'remaining' | 'renew' | 'release'>
  #releasing: Promise<boolean> | undefined

  /** @internal */
  constructor(hold: Hold, holds: Pick<Holds, 'remaining' | 'renew' | 'release'>) {
    this.key = hold.key
    this.owner = hold.owner
    this.id = hold.claim.id
    this.fencingToken = hold.token
    this.waited = hold.waited
    this.via = hold.via
    this.#hold = hold
    this.#holds = holds
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
    return this.#holds.remaining(this.#hold)
  }

  /**
   * Aborts when the hold is lost, before anyone else can own the lock. Its reason is a `LockLostError`, or where `close` of
   * the client ended the hold, a `LockClosedError`.
   * @since 0.1.0
   */
  get signal(): AbortSignal {
    return this.#hold.signal
  }

  /**
   * Prolongs the hold.
   * @param ms from now on; default: the length of its lease. A shorter time than it has left changes nothing.
   * @throws LockLostError when it is not held any more; if it was lost, `cause` is the reason of `signal`
   * @throws LockConnectionError when Redis could not be asked in time
   * @throws LockArgumentError when `ms` is no number of ms from 1
   * @since 0.1.0
   */
  async renew(ms: number = this.#hold.length): Promise<void> {
    checkRenewal(ms)
    await this.#holds.renew(this.#hold, Math.floor(ms))
  }

  /**
   * Ends the hold. May be called late and repeatedly: it never ends anything but this hold.
   * @returns true: this call ended a live hold; false: it had ended already (released, expired, lost)
   * @throws LockConnectionError when Redis could not be reached; the lock is then free at the end of the lease
   * @since 0.1.0
   */
  release(): Promise<boolean> {
    if (this.#releasing) return this.#releasing.then(no, no)
    this.#releasing = this.#holds.release(this.#hold)
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
}

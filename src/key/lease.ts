/** One hold of a lock as its holder sees it: its data, and the calls that prolong and end it. */
import type { Via } from '../kind.ts'
import { checkRenewal } from '../settings.ts'
import type { Hold } from './hold.ts'

const no = () => false

/**
 * One hold of a lock, from its grant to its end. Made by a `LockClient`; `await using` releases it.
 * @since 0.1.0
 */
export class Lease implements AsyncDisposable {
  /** The key of the lock. @since 0.1.0 */
  readonly key: string
  /** The owner that holds the lock. A call of the same owner for the same key re-enters. @since 0.1.0 */
  readonly owner: string
  /** Unguessable id of this one hold. @since 0.1.0 */
  readonly id: string
  /**
   * A token that is larger than the token of every earlier grant of the key. Re-entrant holds share one token. The
   * resource that the lock protects should check the token.
   * @since 0.1.0
   */
  readonly fencingToken: number
  /** ms between the call and the grant. @since 0.1.0 */
  readonly waited: number
  /** How the grant came about. @since 0.1.0 */
  readonly via: Via
  /**
   * The numbers of the permits, in ascending order: each is less than the semaphore's number of permits, and no other
   * live hold with the option `slots` has it. Undefined unless the call has given the option `slots`.
   * @since 0.2.0
   */
  readonly slots: readonly number[] | undefined
  /** The smallest of `slots`: the number of the first permit, from 0. @since 0.2.0 */
  readonly slot: number | undefined
  readonly #hold: Hold
  #releasing: Promise<boolean> | undefined

  /** @internal */
  constructor(hold: Hold) {
    this.key = hold.key
    this.owner = hold.owner
    this.id = hold.claim.id
    this.fencingToken = hold.token
    this.waited = hold.waited
    this.via = hold.via
    this.slots = hold.slots
    this.slot = hold.slots?.[0]
    this.#hold = hold
  }

  /**
   * Whether you can rely on the hold; false once the lease may have ended. Computed locally, with a margin: the value
   * turns false before another owner can get the lock.
   * @since 0.1.0
   */
  get held(): boolean {
    return this.remaining() > 0
  }

  /** Whether a call inside this hold may re-enter. Redis decides if the hold is in doubt. @internal */
  get lasts(): boolean {
    return this.#hold.keeper.lasts(this.#hold)
  }

  /**
   * For how long you can still rely on the hold.
   * @returns ms; 0 when the hold may have ended
   * @since 0.1.0
   */
  remaining(): number {
    // Rounded down, so that it is never more than is left.
    return Math.floor(this.#hold.keeper.remaining(this.#hold) * 1_000) / 1_000
  }

  /**
   * Aborts when the hold is lost, before anyone else can own the lock. Its reason is a `LockLostError`, or a
   * `LockClosedError` if `close` of the client ended the hold.
   * @since 0.1.0
   */
  get signal(): AbortSignal {
    return this.#hold.signal
  }

  /**
   * Prolongs the hold.
   * @param ms how many ms the hold lasts from now; default: the length of its lease. If the hold has more time left
   * than that, nothing changes.
   * @throws LockLostError when the hold has ended; if it was lost, `cause` is the reason of `signal`
   * @throws LockConnectionError when Redis did not answer in time
   * @throws LockArgumentError when `ms` is not a number of at least 1; over a quorum, also when it is more than the
   * client's option `lease`
   * @since 0.1.0
   */
  async renew(ms: number = this.#hold.length): Promise<void> {
    checkRenewal(ms)
    await this.#hold.keeper.renew(this.#hold, Math.floor(ms))
  }

  /**
   * Ends the hold. May be called late and repeatedly, because it never ends any other hold.
   * @returns true: this call ended a live hold; false: the hold had ended before (released, expired, lost)
   * @throws LockConnectionError when Redis could not be reached; the lock then becomes free when the lease ends
   * @since 0.1.0
   */
  release(): Promise<boolean> {
    if (this.#releasing) return this.#releasing.then(no, no)
    this.#releasing = this.#hold.keeper.release(this.#hold)
    return this.#releasing
  }

  /** Said before the release of a lease that nobody has used: the option `minHold` does not count. @internal */
  unused(): void {
    this.#hold.unused()
  }

  /**
   * Calls `release`, for `await using`.
   * @throws LockConnectionError as `release` does
   * @since 0.1.0
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

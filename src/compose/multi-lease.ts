import type { Lease } from '../key/lease.ts'
import { Follower } from './follower.ts'

/**
 * A hold of several locks that were granted together. Made by a `MultiLock`; `await using` releases it.
 * @since 0.2.0
 */
export class MultiLease implements AsyncDisposable {
  /** The leases of the locks, in the order in which they were taken. @since 0.2.0 */
  readonly leases: readonly Lease[]
  /** The fencing token of each lock, by its key. @since 0.2.0 */
  readonly fencingTokens: ReadonlyMap<string, number>
  #lost: Follower | undefined

  /** @internal */
  constructor(leases: readonly Lease[]) {
    this.leases = leases
    this.fencingTokens = new Map(leases.map(({ key, fencingToken }) => [key, fencingToken]))
  }

  /** Whether all of the locks are certainly still held. @since 0.2.0 */
  get held(): boolean {
    return this.remaining() > 0
  }

  /**
   * For how long all of the locks are certainly still held.
   * @returns ms; 0 when one of the locks is no longer held
   * @since 0.2.0
   */
  remaining(): number {
    return Math.min(...this.leases.map(lease => lease.remaining()))
  }

  /** Aborts as soon as one of the leases is lost, with the abort reason of that lease. @since 0.2.0 */
  get signal(): AbortSignal {
    if (!this.#lost) {
      this.#lost = new Follower()
      for (const { signal } of this.leases) this.#lost.follow(signal)
    }
    return this.#lost.signal
  }

  /**
   * Renews all of the leases.
   * @param ms how long each lease lasts from now, in ms; default: the length of that lease
   * @throws what `Lease.renew` throws for the first lease that cannot be renewed, after trying to renew all of them
   * @since 0.2.0
   */
  async renew(ms?: number): Promise<void> {
    await all(this.leases.map(lease => lease.renew(ms)))
  }

  /**
   * Releases all of the locks. May be called after a hold has ended, and more than once.
   * @returns true: this call ended a live hold of each lock; false: at least one hold had ended already
   * @throws what `Lease.release` throws for the first lease that cannot be released, after trying to release all
   *   of them
   * @since 0.2.0
   */
  async release(): Promise<boolean> {
    const ended = await all(this.leases.map(lease => lease.release()))
    return ended.every(Boolean)
  }

  /**
   * `release`, for `await using`.
   * @throws what `release` throws
   * @since 0.2.0
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

/** Works like `Promise.all`, but settles only when all calls have settled. */
async function all<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(calls)
  return Promise.all(calls)
}

import type { Lease } from '../lease/lease.ts'

/**
 * One hold of several locks, from their grant to their end. Made by a `MultiLock`; `await using` releases it.
 * @since 0.2.0
 */
export class MultiLease implements AsyncDisposable {
  /** One for each lock, in the order in which they were taken. @since 0.2.0 */
  readonly leases: readonly Lease[]
  /** Of each lock, by its key. @since 0.2.0 */
  readonly fencingTokens: ReadonlyMap<string, number>
  /** Made when somebody asks for it. */
  #signal: AbortSignal | undefined

  /** @internal */
  constructor(leases: readonly Lease[]) {
    this.leases = leases
    this.fencingTokens = new Map(leases.map(({ key, fencingToken }) => [key, fencingToken]))
  }

  /** Whether all of them are surely still ours. @since 0.2.0 */
  get held(): boolean {
    return this.remaining() > 0
  }

  /**
   * For how long all of them are surely still ours.
   * @returns ms; 0 when one is not held
   * @since 0.2.0
   */
  remaining(): number {
    return Math.min(...this.leases.map(lease => lease.remaining()))
  }

  /** Aborts when the first of them is lost, with its reason. @since 0.2.0 */
  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any(this.leases.map(({ signal }) => signal))
    return this.#signal
  }

  /**
   * Prolongs all of them.
   * @param ms from now on; default: the length of each lease
   * @throws what `Lease.renew` throws, of the first that cannot be prolonged, when all have been tried
   * @since 0.2.0
   */
  async renew(ms?: number): Promise<void> {
    await all(this.leases.map(lease => lease.renew(ms)))
  }

  /**
   * Ends all of them. May be called late and repeatedly.
   * @returns true: this call ended a live hold of each; false: at least one had ended already
   * @throws what `Lease.release` throws, of the first that cannot be released, when all have been tried
   * @since 0.2.0
   */
  async release(): Promise<boolean> {
    const ended = await all(this.leases.map(lease => lease.release()))
    return ended.every(Boolean)
  }

  /**
   * `release`, for `await using`.
   * @throws as `release` does
   * @since 0.2.0
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

/** When all have settled. */
async function all<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(calls)
  return Promise.all(calls)
}

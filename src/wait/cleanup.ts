/**
 * Cleanup after callers that have given up. Their promises have settled already. In the background, this class removes
 * the waiter from Redis, or releases its grant, and repeats the request until Redis answers (I7). It stops when the sum
 * of the claim's lease and the waiter's expiry has passed, because by then everything has expired in Redis.
 */
import type { Clock } from '../clock.ts'
import type { Claim, Kind } from '../kind.ts'

/** The pause between attempts while Redis refuses or is out of reach, in ms. */
const PAUSE = 1_000

export class Cleanup {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #waiterTtl: number
  readonly #failed: (error: unknown) => void
  readonly #pending = new Set<Promise<void>>()
  #closed = false

  constructor(kind: Kind, clock: Clock, waiterTtl: number, failed: (error: unknown) => void) {
    this.#kind = kind
    this.#clock = clock
    this.#waiterTtl = waiterTtl
    this.#failed = failed
  }

  /** Calls `left` when nothing of the claim is left in Redis, or when the cleanup gives up. */
  start(claim: Claim, left: () => void): void {
    const done = this.#leave(claim).then(() => {
      this.#pending.delete(done)
      left()
    })
    this.#pending.add(done)
  }

  /** Stops repeating attempts. Resolves when all attempts under way are done. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#pending)
  }

  async #leave(claim: Claim): Promise<void> {
    const pointless = this.#clock.now() + claim.lease + this.#waiterTtl
    for (;;) {
      try {
        return await this.#kind.leave(claim)
      } catch (error) {
        if (this.#closed || this.#clock.now() >= pointless) return this.#failed(error)
      }
      await new Promise<void>(resolve => this.#clock.after(PAUSE, resolve))
    }
  }
}

/**
 * Cleanup after callers that have given up. Their promises have settled already. In the background, this class asks
 * Redis to remove such a caller's waiter, or to release its grant, and repeats the request until Redis answers (I7).
 * The waiter may be granted the lock just before it expires, and its hold then lasts for one lease. When this much time
 * has passed since the cleanup began, everything of the caller has expired in Redis, and this class stops.
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

  /** Removes the waiter and the hold of this claim from Redis. Calls `left` when that is done or was given up. */
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

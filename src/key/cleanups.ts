/** The cleanup after callers that have given up (I7). */
import type { Clock } from '../clock.ts'
import type { Kind } from '../kind.ts'
import type { Waiter } from './waiter.ts'

/** The pause between attempts to clean up while Redis refuses or is out of reach, in ms. */
const PAUSE = 1_000

export class Cleanups {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #waiterTtl: number
  readonly #failed: (error: unknown) => void
  /** Cleanups that run in the background. */
  readonly #running = new Set<Promise<void>>()
  #closed = false

  /**
   * `waiterTtl`: the expiry of a queued waiter, in ms. `failed` receives the failure of a cleanup that was given up, once
   * for each waiter, unless its call was rejected for such a failure.
   */
  constructor(kind: Kind, clock: Clock, waiterTtl: number, failed: (error: unknown) => void) {
    this.#kind = kind
    this.#clock = clock
    this.#waiterTtl = waiterTtl
    this.#failed = failed
  }

  /**
   * Removes the waiter and its hold from Redis in the background, and repeats that until Redis answers.
   * Calls `left` when that is done or was given up. The waiter may be granted the lock just before it expires, and its
   * hold then lasts for one lease. When this much time has passed, everything of the claim has expired in Redis.
   */
  begin(waiter: Waiter, left: () => void): void {
    const done = this.#withdraw(waiter).then(() => {
      this.#running.delete(done)
      left()
    })
    this.#running.add(done)
  }

  /** Makes no further attempts. Resolves when the last ones have ended. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#running)
  }

  async #withdraw(waiter: Waiter): Promise<void> {
    const { claim } = waiter
    const pointless = this.#clock.now() + claim.lease + this.#waiterTtl
    for (;;) {
      try {
        return await this.#kind.leave(claim)
      } catch (error) {
        if (this.#closed || this.#clock.now() >= pointless) {
          if (!waiter.reported) this.#failed(error)
          waiter.reported = true
          return
        }
      }
      await new Promise<void>(resolve => this.#clock.after(PAUSE, resolve))
    }
  }
}

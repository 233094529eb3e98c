/**
 * Limits the time of single attempts, which share one timer. A single attempt does not wait for the end of an outage.
 */
import { awake, type Clock, type Timer } from '../clock.ts'
import type { Waiter } from '../local/waiter.ts'

/** How long a single attempt may go unanswered, in ms. */
const LIMIT = 1_000

export class SingleAttempts {
  readonly #clock: Clock
  readonly #limit: number
  readonly #unanswered: (waiter: Waiter, limit: number) => void
  /** The waiters whose single attempt is unanswered, oldest first. */
  readonly #waiters = new Set<Waiter>()
  #timer: Timer | undefined

  /**
   * Calls `unanswered` with each waiter whose attempt got no answer in `limit` ms: 1 s, or `patience` if that is less.
   */
  constructor(clock: Clock, patience: number, unanswered: (waiter: Waiter, limit: number) => void) {
    this.#clock = awake(clock)
    this.#limit = Math.min(LIMIT, patience)
    this.#unanswered = unanswered
  }

  asked(waiter: Waiter): void {
    this.#waiters.add(waiter)
    this.#arm()
  }

  answered(waiter: Waiter): void {
    if (this.#waiters.delete(waiter) && this.#waiters.size === 0) this.#sleep()
  }

  close(): void {
    this.#waiters.clear()
    this.#sleep()
  }

  #sleep(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    const [oldest] = this.#waiters
    if (this.#timer || !oldest) return
    this.#timer = this.#clock.after(oldest.begun + this.#limit - this.#clock.now(), () => {
      this.#timer = undefined
      const now = this.#clock.now()
      for (const waiter of this.#waiters) {
        if (now - waiter.begun < this.#limit) break
        this.#waiters.delete(waiter)
        this.#unanswered(waiter, this.#limit)
      }
      this.#arm()
    })
  }
}

/**
 * Limits the time for the answer to a single attempt, which does not wait for the end of an outage. The first attempt
 * of every other call has this time as well: a `timeout` that is over earlier ends only the waiting. All attempts share
 * one timer.
 */
import { awake, type Clock, type Timer } from '../clock.ts'
import type { Waiter } from '../local/waiter.ts'

/** How long a single attempt may go unanswered, in ms. */
const LIMIT = 1_000
const NEVER = Number.POSITIVE_INFINITY

export class SingleAttempts {
  readonly #clock: Clock
  readonly #limit: number
  readonly #unanswered: (waiter: Waiter, limit: number) => void
  /** The waiters that wait only for the answer to an attempt. */
  readonly #waiters = new Set<Waiter>()
  #timer: Timer | undefined
  #wakeAt = NEVER

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
    this.#wakeBy(waiter.begun + this.#limit)
  }

  has(waiter: Waiter): boolean {
    return this.#waiters.has(waiter)
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
    this.#wakeAt = NEVER
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakeAt) return
    this.#timer?.cancel()
    this.#wakeAt = at
    this.#timer = this.#clock.after(at - this.#clock.now(), () => {
      this.#wakeAt = NEVER
      const due = this.#clock.now() - this.#limit
      let next = NEVER
      for (const waiter of this.#waiters) {
        if (waiter.begun > due) next = Math.min(next, waiter.begun + this.#limit)
        else if (this.#waiters.delete(waiter)) this.#unanswered(waiter, this.#limit)
      }
      this.#wakeBy(next)
    })
  }
}

/**
 * Unfair waiters that join the queue when they have waited for long enough (`fairAfter`), which bounds starvation.
 *
 * That is so by default, and most waiters are granted the lock long before. So none has a timer of its own: those with the
 * same `fairAfter` come due in the order in which they have parked, and share one, which is set for the first of them. (One
 * whose first answer took longer than that of others has parked behind them, and joins the queue later by so much.)
 */
import type { Clock, Timer } from '../clock.ts'
import type { Waiter } from '../local/waiter.ts'

interface Generation {
  readonly waiters: Set<Waiter>
  timer: Timer
}

export class FairAfter {
  readonly #clock: Clock
  readonly #due: (waiter: Waiter) => void
  /** By `fairAfter`. */
  readonly #generations = new Map<number, Generation>()

  /** `due`: it has waited for long enough. */
  constructor(clock: Clock, due: (waiter: Waiter) => void) {
    this.#clock = clock
    this.#due = due
  }

  /** It has parked. */
  add(waiter: Waiter): void {
    const { mode, fairAfter } = waiter.wish
    if (mode !== 'line' || fairAfter === undefined) return
    const generation = this.#generations.get(fairAfter)
    if (generation) generation.waiters.add(waiter)
    else this.#generations.set(fairAfter, { waiters: new Set([waiter]), timer: this.#arm(waiter, fairAfter) })
  }

  /** Its wait is over. */
  delete(waiter: Waiter): void {
    const { fairAfter } = waiter.wish
    const generation = fairAfter === undefined ? undefined : this.#generations.get(fairAfter)
    if (!generation?.waiters.delete(waiter) || generation.waiters.size > 0) return
    generation.timer.cancel()
    this.#generations.delete(fairAfter as number)
  }

  #arm({ since }: Waiter, fairAfter: number): Timer {
    return this.#clock.after(since + fairAfter - this.#clock.now(), () => this.#wake(fairAfter))
  }

  #wake(fairAfter: number): void {
    const generation = this.#generations.get(fairAfter)
    if (!generation) return
    const { waiters } = generation
    const old = this.#clock.now() - fairAfter
    const due: Waiter[] = []
    for (const waiter of waiters) {
      if (waiter.since > old) break
      due.push(waiter)
    }
    for (const waiter of due) waiters.delete(waiter)
    const [next] = waiters
    if (next) generation.timer = this.#arm(next, fairAfter)
    else this.#generations.delete(fairAfter)
    for (const waiter of due) this.#due(waiter)
  }
}

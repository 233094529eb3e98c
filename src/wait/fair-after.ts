/**
 * Unfair waiters that join the queue after they have waited for `fairAfter` ms. This bounds starvation.
 *
 * Most waiters have a `fairAfter`, because it has a default, and most are granted the lock long before that time is
 * over. So waiters have no timers of their own. Waiters with the same `fairAfter` join the queue in the order in which
 * they parked, and share one timer for the first of them. So a waiter may join later than its `fairAfter` says: if
 * Redis answers its first request slowly, it parks after waiters that came later, and joins the queue after them.
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
  /** The parked waiters, by their `fairAfter`, in ms. */
  readonly #generations = new Map<number, Generation>()

  /** `due` is called with each waiter that has waited for its `fairAfter`. */
  constructor(clock: Clock, due: (waiter: Waiter) => void) {
    this.#clock = clock
    this.#due = due
  }

  /** Adds a waiter that has parked. */
  add(waiter: Waiter): void {
    const { mode, fairAfter } = waiter.wish
    if (mode !== 'line' || fairAfter === undefined) return
    const generation = this.#generations.get(fairAfter)
    if (generation) generation.waiters.add(waiter)
    else this.#generations.set(fairAfter, { waiters: new Set([waiter]), timer: this.#arm(waiter, fairAfter) })
  }

  /** Removes a waiter whose wait is over. */
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

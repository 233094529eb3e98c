/** Unfair waiters that join the queue when they have waited for their `fairAfter`. This bounds starvation. */
import type { Due, Schedule } from './schedule.ts'
import type { Waiter } from './waiter.ts'

export class FairAfter {
  /** The parked waiters, by their `fairAfter`, in ms. */
  readonly generations = new Map<number, Generation>()
  readonly #schedule: Schedule
  readonly #queue: (waiter: Waiter, now: number) => void

  /** Calls `queue` with each waiter when its time has come. */
  constructor(schedule: Schedule, queue: (waiter: Waiter, now: number) => void) {
    this.#schedule = schedule
    this.#queue = queue
  }

  /** Called when an unfair waiter has parked. */
  add(waiter: Waiter, fairAfter: number): void {
    let generation = this.generations.get(fairAfter)
    if (!generation) {
      generation = new Generation(fairAfter, this.#schedule, this.#queue, () => this.generations.delete(fairAfter))
      this.generations.set(fairAfter, generation)
    }
    generation.add(waiter)
  }
}

/**
 * Parked unfair waiters with the same `fairAfter`, in the order in which they parked. Most waiters are granted the lock long before that time is over, so only the first of them
 * is on the agenda. A waiter may join later than its `fairAfter` says: if Redis answers its first request slowly, it
 * parks after waiters that came later, and joins the queue after them.
 */
class Generation implements Due {
  slot = -1
  dueAt = Number.POSITIVE_INFINITY
  readonly #fairAfter: number
  readonly #schedule: Schedule
  readonly #queue: (waiter: Waiter, now: number) => void
  readonly #emptied: () => void
  readonly #waiters = new Set<Waiter>()

  constructor(
    fairAfter: number,
    schedule: Schedule,
    queue: (waiter: Waiter, now: number) => void,
    emptied: () => void,
  ) {
    this.#fairAfter = fairAfter
    this.#schedule = schedule
    this.#queue = queue
    this.#emptied = emptied
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter)
    if (this.slot < 0) this.#next()
  }

  delete(waiter: Waiter): void {
    if (this.#waiters.delete(waiter) && this.#waiters.size === 0) this.#schedule.delete(this)
  }

  due(now: number): void {
    const old = now - this.#fairAfter
    const due: Waiter[] = []
    for (const waiter of this.#waiters) {
      if (waiter.since > old) break
      due.push(waiter)
    }
    for (const waiter of due) this.#waiters.delete(waiter)
    this.#next()
    for (const waiter of due) this.#queue(waiter, now)
  }

  #next(): void {
    for (const { since } of this.#waiters) return this.#schedule.set(this, since + this.#fairAfter)
    this.#emptied()
  }
}

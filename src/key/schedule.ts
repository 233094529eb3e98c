/**
 * The agenda of a client: what is due, and when. It has one timer for everything, set for the earliest item: looks at
 * locks, waiters that join the queue, renewals, deadlines of holds, time limits of attempts.
 *
 * The agenda is a heap, because nearly every item is removed or moved before it is due. Then the timer is not set anew,
 * unless nothing is left: if it fires too early, it finds nothing due.
 */
import type { Clock, Timer } from '../clock.ts'
import { Heap, type Item } from '../heap.ts'

const NEVER = Number.POSITIVE_INFINITY

/** Something that acts when it is due, or a little later. It is on the agenda again only if it asks for it. */
export interface Due extends Item {
  due(now: number): void
}

export class Schedule extends Heap<Due> {
  readonly clock: Clock
  #timer: Timer | undefined

  constructor(clock: Clock) {
    super()
    this.clock = clock
    this.wakeAt = NEVER
  }

  /** Takes everything off the agenda. */
  close(): void {
    this.clear()
    this.wakeBy(NEVER)
  }

  protected override wakeBy(at: number): void {
    if (this.wakeAt < NEVER) this.#timer?.cancel()
    this.wakeAt = at
    if (at < NEVER) this.#timer = this.clock.after(at - this.clock.now(), () => this.#wake())
  }

  #wake(): void {
    this.wakeAt = NEVER
    const now = this.clock.now()
    const due: Due[] = []
    for (let { first } = this; first && first.dueAt <= now; first = this.first) {
      due.push(first)
      const { dueAt } = first
      this.delete(first)
      first.dueAt = dueAt
    }
    for (const item of due) {
      // What was due before this item may have taken it off the agenda, or put it on the agenda again.
      if (item.slot >= 0 || item.dueAt > now) continue
      item.dueAt = NEVER
      item.due(now)
    }
    const next = this.first?.dueAt ?? NEVER
    if (next < this.wakeAt) this.wakeBy(next)
  }
}

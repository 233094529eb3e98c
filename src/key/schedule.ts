/**
 * The agenda of a client: what is due, and when. It has one timer for everything, set for the earliest item: looks at
 * locks, waiters that join the queue, renewals, deadlines of holds, time limits of attempts.
 *
 * The agenda is a heap (a binary heap, whose smallest item is the first), and each item knows its place in it. So an
 * item can be moved or removed cheaply. That matters, because nearly every item is removed or moved before it is due.
 * Then the timer is not set anew, unless nothing is left: if it fires too early, it finds nothing due.
 */
import type { Clock, Timer } from '../clock.ts'

const NEVER = Number.POSITIVE_INFINITY

export interface Item {
  /** The item's place in the heap; -1 while it is not on the agenda. Only the agenda changes it. */
  slot: number
  /** When the item is due, in ms of the agenda's clock. Only the agenda changes it. */
  dueAt: number
}

/** The items, earliest first. */
export class Heap<T extends Item> {
  readonly #items: T[] = []
  /** For when the timer is set; infinity while it is not set. A heap without a timer keeps −infinity. */
  protected wakeAt = -NEVER

  /** Sets the timer for this time; infinity: stops it. */
  protected wakeBy?(at: number): void

  get first(): T | undefined {
    return this.#items[0]
  }

  /** Sets the time at which the item is due. This replaces the time that was set before. Infinity: removes the item. */
  set(item: T, at: number): void {
    if (at === NEVER) return this.delete(item)
    const later = item.slot >= 0 && at > item.dueAt
    if (item.slot < 0) item.slot = this.#items.length
    item.dueAt = at
    if (later) this.#sink(item)
    else this.#rise(item)
    if (at < this.wakeAt) this.wakeBy?.(at)
  }

  delete(item: T): void {
    const { slot } = item
    item.dueAt = NEVER
    if (slot < 0) return
    item.slot = -1
    const last = this.#items.pop() as T
    if (last !== item) {
      last.slot = slot
      this.#rise(last)
      this.#sink(last)
    } else if (slot === 0 && this.wakeAt < NEVER) {
      // The timer would keep the process alive.
      this.wakeBy?.(NEVER)
    }
  }

  clear(): void {
    for (const item of this.#items) item.slot = -1
    this.#items.length = 0
  }

  #rise(item: T): void {
    let { slot } = item
    while (slot > 0) {
      const above = this.#items[(slot - 1) >> 1] as T
      if (above.dueAt <= item.dueAt) break
      above.slot = slot
      this.#items[slot] = above
      slot = (slot - 1) >> 1
    }
    item.slot = slot
    this.#items[slot] = item
  }

  #sink(item: T): void {
    let { slot } = item
    for (;;) {
      let child = 2 * slot + 1
      const [left, right] = [this.#items[child], this.#items[child + 1]]
      if (left && right && right.dueAt < left.dueAt) child += 1
      const below = this.#items[child]
      if (!below || below.dueAt >= item.dueAt) break
      below.slot = slot
      this.#items[slot] = below
      slot = child
    }
    item.slot = slot
    this.#items[slot] = item
  }
}

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

/**
 * A binary heap, whose smallest item is the first. Each item knows its place in it, so an item can be moved or removed
 * cheaply.
 */
const NEVER = Number.POSITIVE_INFINITY

export interface Item {
  /** The item's place in the heap; -1 while it is not in it. Only the heap changes it. */
  slot: number
  /** By this number, the items are in order. Only the heap changes it. */
  dueAt: number
}

export class Heap<T extends Item> {
  readonly #items: T[] = []
  /** For when the timer is set; infinity while it is not set. A heap without a timer keeps −infinity. */
  protected wakeAt = -NEVER

  /** Sets the timer for this time; infinity: stops it. */
  protected wakeBy?(at: number): void

  /** Whether an item comes before another one. */
  protected before(a: T, b: T): boolean {
    return a.dueAt < b.dueAt
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  /** All items, in the order of the heap. */
  get items(): readonly T[] {
    return this.#items
  }

  /** Sets the time at which the item is due. This replaces the time that was set before. Infinity: removes the item. */
  set(item: T, at: number): void {
    if (at === NEVER) return this.delete(item)
    const isNew = item.slot < 0
    if (isNew) item.slot = this.#items.length
    item.dueAt = at
    this.#rise(item)
    if (!isNew) this.#sink(item)
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
      if (!this.before(item, above)) break
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
      if (left && right && this.before(right, left)) child += 1
      const below = this.#items[child]
      if (!below || !this.before(below, item)) break
      below.slot = slot
      this.#items[slot] = below
      slot = child
    }
    item.slot = slot
    this.#items[slot] = item
  }
}

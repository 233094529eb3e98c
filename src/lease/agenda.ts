/**
 * A list of items, each with the time at which it is due. The agenda knows the earliest item at once, and can move or
 * remove any item. It is a heap that stores the place of every item, so removal is cheap. Most leases end, and are
 * removed from the agenda, long before they are due.
 */
export class Agenda<T extends object> {
  readonly #heap: { at: number; readonly item: T }[] = []
  readonly #places = new Map<T, number>()

  /** The time of the earliest item; Infinity if there is no item. */
  get next(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY
  }

  /**
   * Sets the time at which the item is due. This replaces the time that was set before. If the time is Infinity, the
   * item is removed.
   */
  set(item: T, at: number): void {
    const place = this.#places.get(item)
    if (at === Number.POSITIVE_INFINITY) return this.delete(item)
    if (place === undefined) return this.#rise(this.#heap.length, { at, item })
    const before = this.#heap[place]?.at as number
    if (at <= before) this.#rise(place, { at, item })
    else this.#sink(place, { at, item })
  }

  delete(item: T): void {
    const place = this.#places.get(item)
    if (place === undefined) return
    this.#places.delete(item)
    const last = this.#heap.pop() as { at: number; item: T }
    if (place === this.#heap.length) return
    const { at } = this.#heap[place] as { at: number }
    if (last.at <= at) this.#rise(place, last)
    else this.#sink(place, last)
  }

  /** Removes the items that are due at `now`, and returns them, earliest first. */
  due(now: number): T[] {
    const items: T[] = []
    for (let first = this.#heap[0]; first && first.at <= now; first = this.#heap[0]) {
      items.push(first.item)
      this.delete(first.item)
    }
    return items
  }

  clear(): void {
    this.#heap.length = 0
    this.#places.clear()
  }

  #rise(from: number, entry: { at: number; readonly item: T }): void {
    let place = from
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = this.#heap[parent] as { at: number; item: T }
      if (above.at <= entry.at) break
      this.#put(place, above)
      place = parent
    }
    this.#put(place, entry)
  }

  #sink(from: number, entry: { at: number; readonly item: T }): void {
    let place = from
    for (;;) {
      let child = 2 * place + 1
      const [left, right] = [this.#heap[child], this.#heap[child + 1]]
      if (left && right && right.at < left.at) child += 1
      const below = this.#heap[child]
      if (!below || below.at >= entry.at) break
      this.#put(place, below)
      place = child
    }
    this.#put(place, entry)
  }

  #put(place: number, entry: { at: number; readonly item: T }): void {
    this.#heap[place] = entry
    this.#places.set(entry.item, place)
  }
}

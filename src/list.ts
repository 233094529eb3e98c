/**
 * A list of objects in the order in which they were added, from which each of them can be removed at once. The objects
 * themselves are linked, so nothing is allocated when they come and go (lookup.ts says why that matters). An object is in
 * one list at a time.
 */
export interface Listed<T> {
  /** The list that the object is in. These three fields are written only by the list. */
  list: object | undefined
  before: T | undefined
  after: T | undefined
}

export class List<T extends Listed<T>> {
  first: T | undefined
  size = 0
  #last: T | undefined

  add(item: T): void {
    if (item.list === this) return
    item.list = this
    item.before = this.#last
    if (this.#last) this.#last.after = item
    else this.first = item
    this.#last = item
    this.size += 1
  }

  /** Returns whether the object was in this list. */
  delete(item: T): boolean {
    if (item.list !== this) return false
    const { before, after } = item
    if (before) before.after = after
    else this.first = after
    if (after) after.before = before
    else this.#last = before
    item.list = item.before = item.after = undefined
    this.size -= 1
    return true
  }

  has(item: T): boolean {
    return item.list === this
  }

  /** If the object at which a loop stands is removed, the loop ends. So a loop that may remove objects takes a copy. */
  *[Symbol.iterator](): Generator<T> {
    for (let item = this.first; item; item = item.after) yield item
  }
}

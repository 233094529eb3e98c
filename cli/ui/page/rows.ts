/**
 * Manages the rows of a table. Each thing in the table (a lock, a holder or a waiter) is identified by a text. It keeps
 * its row element while it is in the table, even if the row moves.
 */

export interface RowOf<T> {
  readonly element: HTMLElement
  update(thing: T): void
}

/** Only this many rows, counted from the top, move with an animation. A move across more rows would only flicker. */
const MOVING = 60
const MOVE = { duration: 250, easing: 'ease-out' }
const still = matchMedia('(prefers-reduced-motion: reduce)')

export class Rows<T> {
  readonly #body: HTMLElement
  readonly #keyOf: (thing: T) => string
  readonly #make: (thing: T) => RowOf<T>
  readonly #moving: boolean
  readonly #rows = new Map<string, RowOf<T>>()

  /** With `moving`, a row's change of place is animated. */
  constructor(body: HTMLElement, keyOf: (thing: T) => string, make: (thing: T) => RowOf<T>, moving = false) {
    this.#body = body
    this.#keyOf = keyOf
    this.#make = make
    this.#moving = moving
  }

  show(things: readonly T[]): void {
    const before = this.#places()
    // Moving a row in the document removes the focus from it, so the focus is set again below.
    const focused = document.activeElement
    const keys = new Set(things.map(this.#keyOf))
    for (const [key, { element }] of this.#rows) {
      if (keys.has(key)) continue
      element.remove()
      this.#rows.delete(key)
    }
    let next = this.#body.firstElementChild
    for (const thing of things) {
      const row = this.#rowOf(thing)
      row.update(thing)
      if (row.element === next) next = next.nextElementSibling
      else this.#body.insertBefore(row.element, next)
    }
    if (focused instanceof HTMLElement && focused !== document.activeElement && this.#body.contains(focused)) {
      focused.focus({ preventScroll: true })
    }
    this.#move(before)
  }

  #rowOf(thing: T): RowOf<T> {
    const key = this.#keyOf(thing)
    const row = this.#rows.get(key) ?? this.#make(thing)
    this.#rows.set(key, row)
    return row
  }

  #places(): ReadonlyMap<HTMLElement, number> {
    if (!this.#moving || still.matches) return new Map()
    return new Map(this.#first().map(element => [element, element.offsetTop]))
  }

  #move(before: ReadonlyMap<HTMLElement, number>): void {
    if (before.size === 0) return
    const places = this.#first().map(element => [element, element.offsetTop] as const)
    for (const [element, top] of places) {
      const way = (before.get(element) ?? top) - top
      if (way !== 0) element.animate([{ transform: `translateY(${way}px)` }, { transform: 'none' }], MOVE)
    }
  }

  #first(): HTMLElement[] {
    return [...this.#body.children].slice(0, MOVING) as HTMLElement[]
  }
}

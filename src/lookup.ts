/**
 * A table of objects by name, whose arrays stay when objects come and go.
 *
 * V8's Map cannot be used where each call adds an entry and removes it again: whenever the table of a Map is full of
 * deleted entries, the Map makes a new table, and links the old one to it. Once an old table has survived long enough to
 * count as old, everything to which it links survives, too, so nearly every call costs work of the garbage collector.
 *
 * The table has open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, 6.4, algorithm L),
 * and closes the gap when an entry is removed (algorithm R). The hash has a random seed, because users choose the keys
 * of locks.
 */
const SMALLEST = 16
const seed = (Math.random() * 2 ** 32) | 0

export class Lookup<T> {
  #names: (string | undefined)[] = new Array(SMALLEST).fill(undefined)
  #values: (T | undefined)[] = new Array(SMALLEST).fill(undefined)
  #mask = SMALLEST - 1
  #size = 0
  /** The largest number of entries, and the number of removals, since the arrays were last made, or left as they are. */
  #peak = 0
  #removals = 0

  get size(): number {
    return this.#size
  }

  /** For how many entries there are places. */
  get room(): number {
    return this.#mask + 1
  }

  get(name: string): T | undefined {
    return this.#values[this.#find(name)]
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  set(name: string, value: T): void {
    const at = this.#find(name)
    if (this.#names[at] === undefined) {
      this.#size += 1
      if (this.#size > this.#peak) this.#peak = this.#size
      this.#names[at] = name
    }
    this.#values[at] = value
    if (this.#size * 2 > this.#mask) this.#resize((this.#mask + 1) * 2)
  }

  /** Returns whether there was an entry of this name. */
  delete(name: string): boolean {
    const names = this.#names
    const values = this.#values
    const mask = this.#mask
    let gap = this.#find(name)
    if (names[gap] === undefined) return false
    for (let at = (gap + 1) & mask; names[at] !== undefined; at = (at + 1) & mask) {
      // An entry may fill the gap if the search for it passes there.
      const home = hashOf(names[at] as string) & mask
      if (((at - home) & mask) < ((at - gap) & mask)) continue
      names[gap] = names[at]
      values[gap] = values[at]
      gap = at
    }
    names[gap] = values[gap] = undefined
    this.#size -= 1
    if (++this.#removals > 4 * mask) this.#shrink()
    return true
  }

  /** Makes the arrays small again after a burst: if most of them was not needed while so many entries came and went. */
  #shrink(): void {
    const length = this.#mask + 1
    if (length > SMALLEST && this.#peak * 8 <= length) this.#resize(length / 4)
    this.#peak = this.#size
    this.#removals = 0
  }

  /** Returns the objects, in no particular order. Later changes of the table do not change the list. */
  values(): T[] {
    return this.#values.filter(value => value !== undefined)
  }

  /** Returns the place of the entry with this name, or else the place where it would be added. */
  #find(name: string): number {
    const names = this.#names
    const mask = this.#mask
    let at = hashOf(name) & mask
    while (names[at] !== undefined && names[at] !== name) at = (at + 1) & mask
    return at
  }

  #resize(length: number): void {
    const names = this.#names
    const values = this.#values
    this.#names = new Array(length).fill(undefined)
    this.#values = new Array(length).fill(undefined)
    this.#mask = length - 1
    for (const [i, name] of names.entries()) {
      if (name === undefined) continue
      const at = this.#find(name)
      this.#names[at] = name
      this.#values[at] = values[i]
    }
  }
}

/** FNV-1a, begun with the seed; the last steps spread the high bits, because a table uses the low ones. */
function hashOf(name: string): number {
  let hash = seed
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b3c6d)
  return hash ^ (hash >>> 12)
}

/** Choices that follow from a seed. Mulberry32: fast, and good enough to spread interleavings. */
export class Random {
  #state: number

  /** Each part of a history has a stream of its own, so that what one part draws does not change another. */
  constructor(seed: number, stream = 0) {
    this.#state = (seed ^ Math.imul(stream + 1, 0x9e3779b1)) | 0
    for (let i = 0; i < 3; i++) this.fraction()
  }

  /** From 0 to below 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number, both ends included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1))
  }

  /** Any number between the two. */
  between(least: number, most: number): number {
    return least + this.fraction() * (most - least)
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)] as T
  }
}

/** Random choices that are determined by a seed. */
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'

export class Random {
  readonly #generator: ReturnType<typeof xoroshiro128plus>

  /**
   * Each user of random numbers in a run, for example a process, makes its own generator, with its own `stream`. So the
   * numbers that one of them draws do not depend on how many the others draw.
   */
  constructor(seed: number, stream = 0) {
    this.#generator = xoroshiro128plus((seed + Math.imul(stream, 0x9e3779b1)) | 0)
    // Similar seeds give similar first numbers, so skip the first ones.
    for (let i = 0; i < 16; i++) this.#generator.next()
  }

  /** Returns a number from 0 to below 1. */
  fraction(): number {
    return (this.#generator.next() >>> 0) / 2 ** 32
  }

  /** Returns a whole number from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1))
  }

  /** Returns any number between `least` and `most`. */
  between(least: number, most: number): number {
    return least + this.fraction() * (most - least)
  }

  /** Returns true with this probability, from 0 to 1. */
  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)] as T
  }

  shuffled<T>(list: readonly T[]): T[] {
    const left = [...list]
    return list.map(() => left.splice(this.int(0, left.length - 1), 1)[0] as T)
  }

  /** Picks one of the names, with a probability in proportion to its weight. */
  weighted<N extends string>(weights: Readonly<Record<N, number>>): N {
    const entries = Object.entries(weights) as [N, number][]
    let left = this.int(
      1,
      entries.reduce((sum, [, weight]) => sum + weight, 0),
    )
    for (const [name, weight] of entries) {
      left -= weight
      if (left <= 0) return name
    }
    throw new Error('there is nothing to choose from')
  }
}

/** Choices that follow from a seed. */
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'

export class Random {
  readonly #generator: ReturnType<typeof xoroshiro128plus>

  /** Each part of a run has a stream of its own, so that what one part draws does not change another. */
  constructor(seed: number, stream: number) {
    this.#generator = xoroshiro128plus((seed + Math.imul(stream, 0x9e3779b1)) | 0)
  }

  /** A whole number, both ends included. */
  int(least: number, most: number): number {
    return uniformInt(this.#generator, least, most)
  }

  chance(percent: number): boolean {
    return this.int(1, 100) <= percent
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)] as T
  }

  shuffled<T>(list: readonly T[]): T[] {
    const left = [...list]
    return list.map(() => left.splice(this.int(0, left.length - 1), 1)[0] as T)
  }

  /** One of the names, each as often as its weight says. */
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

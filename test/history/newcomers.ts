/** The grants of one key, searchable by the time of their requests. */
import type { Hold } from './history.ts'
import { lowerBound } from './lists.ts'

export class Newcomers {
  readonly #requested: readonly number[]
  /**
   * The holds are sorted by the time of their requests. At each index, this list has the hold that Redis granted first
   * among the holds from this index to the end.
   */
  readonly #first: readonly Hold[]

  constructor(holds: readonly Hold[]) {
    const list = holds.filter(({ request }) => request).sort((a, b) => a.request!.t - b.request!.t)
    this.#requested = list.map(({ request }) => request!.t)
    for (let i = list.length - 2; i >= 0; i--) {
      if (list[i + 1]!.grant.token < list[i]!.grant.token) list[i] = list[i + 1]!
    }
    this.#first = list
  }

  /** Returns the hold that Redis granted first among the holds that were requested after this time. */
  firstAfter(t: number): Hold | undefined {
    return this.#first[lowerBound(this.#requested, t, requested => requested)]
  }
}

/** A ZSET: members ordered by score; with the same score, by their bytes. */
export interface Member {
  readonly member: string
  readonly score: number
}

/** A range of scores; each end may be exclusive. */
export interface Between {
  readonly min: number
  readonly max: number
  readonly aboveMin: boolean
  readonly belowMax: boolean
}

export class SortedSet {
  readonly #scores = new Map<string, number>()
  readonly #sorted: Member[] = []

  get size(): number {
    return this.#scores.size
  }

  /** All members, in order. */
  get members(): readonly Member[] {
    return this.#sorted
  }

  score(member: string): number | undefined {
    return this.#scores.get(member)
  }

  /** Returns the rank of a member, or -1 if the member is not in the set. */
  rank(member: string): number {
    const score = this.#scores.get(member)
    return score === undefined ? -1 : this.#place({ member, score })
  }

  set(member: string, score: number): void {
    this.delete(member)
    this.#scores.set(member, score)
    const added = { member, score }
    this.#sorted.splice(this.#place(added), 0, added)
  }

  delete(member: string): boolean {
    const rank = this.rank(member)
    if (rank < 0) return false
    this.removeRanks(rank, 1)
    return true
  }

  removeRanks(start: number, count: number): Member[] {
    const removed = this.#sorted.splice(start, count)
    for (const { member } of removed) this.#scores.delete(member)
    return removed
  }

  /** Returns the rank of the first member in the range, and the number of members in it. */
  within({ min, max, aboveMin, belowMax }: Between): { start: number; count: number } {
    const below = (score: number) => (aboveMin ? score <= min : score < min)
    const above = (score: number) => (belowMax ? score >= max : score > max)
    const start = this.#sorted.findIndex(({ score }) => !below(score))
    if (start < 0) return { start: 0, count: 0 }
    const end = this.#sorted.findIndex(({ score }, rank) => rank >= start && above(score))
    return { start, count: (end < 0 ? this.size : end) - start }
  }

  /** Returns the rank that this member has, or would have. */
  #place({ member, score }: Member): number {
    let [low, high] = [0, this.#sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.#sorted[middle]!
      if (other.score < score || (other.score === score && other.member < member)) low = middle + 1
      else high = middle
    }
    return low
  }
}

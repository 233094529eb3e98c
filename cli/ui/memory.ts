/** What the page shows that no single picture has: how waits have developed, and how long a lease is. */
import { type LockName, type Picture, type SeenLock, textOf } from '../live/picture.ts'
import type { TrendLines } from './page/messages.ts'
import { Trend } from './trend.ts'

export class Memory {
  readonly #all = new Trend()
  readonly #each = new Map<string, Trend>()
  /** Of each hold, by its id: the longest that was left of its lease, in ms. */
  #leases = new Map<string, number>()
  #now = 0

  /** `gap`: longest rest between two pictures while somebody looks, in ms. */
  add({ locks }: Picture, gap: number): void {
    this.#now = performance.now()
    this.#all.add(
      this.#now,
      locks.flatMap(lock => waitsOf(lock)),
      gap,
    )
    this.#addToEach(locks, gap)
    this.#leases = new Map(
      locks.flatMap(({ holders }) =>
        holders.map(({ id, ttl }) => [id, Math.max(this.#leases.get(id) ?? 0, ttl)] as const),
      ),
    )
  }

  /** How much is left of the lease that ends first, 0..1: of the longest seen, for a lease does not tell its length. */
  shareLeft({ holders, timeLeft }: SeenLock): number | undefined {
    const first = holders.find(({ ttl }) => ttl === timeLeft)
    const longest = first && this.#leases.get(first.id)
    if (!first || longest === undefined) return undefined
    return longest === 0 ? 0 : Math.round((100 * first.ttl) / longest) / 100
  }

  trend(): TrendLines {
    return this.#all.drawn(this.#now)
  }

  trendOf(lock: LockName): TrendLines {
    return (this.#each.get(textOf(lock)) ?? new Trend()).drawn(this.#now)
  }

  #addToEach(locks: readonly SeenLock[], gap: number): void {
    const queued = locks.filter(({ waiters }) => waiters.length > 0)
    const waited = new Map(queued.map(lock => [textOf(lock), waitsOf(lock)]))
    for (const lock of waited.keys()) {
      if (!this.#each.has(lock)) this.#each.set(lock, new Trend())
    }
    for (const [lock, trend] of this.#each) {
      trend.add(this.#now, waited.get(lock) ?? [], gap)
      if (trend.empty) this.#each.delete(lock)
    }
  }
}

function waitsOf({ waiters }: SeenLock): number[] {
  return waiters.map(({ waited }) => waited)
}

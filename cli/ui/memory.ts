/** What the page shows that no single picture has: how waits have developed, and how long a lease is. */
import type { Picture, SeenLock } from '../live/picture.ts'
import type { TrendLines } from './page/messages.ts'
import { Trend } from './trend.ts'

export class Memory {
  readonly #all = new Trend()
  readonly #each = new Map<string, Trend>()
  /** Of each grant that is in force: the longest that was left of its lease, in ms. */
  #leases = new Map<string, { readonly token: number; readonly longest: number }>()
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
      locks.flatMap(({ key, fencingToken: token, ttl }) => {
        if (token === undefined || ttl === undefined) return []
        const before = this.#leases.get(key)
        return [[key, { token, longest: before?.token === token ? Math.max(before.longest, ttl) : ttl }]]
      }),
    )
  }

  /** How much of its lease is left, 0..1: of the longest seen, for a lease does not tell its length. */
  shareLeft({ key, ttl }: SeenLock): number | undefined {
    const lease = this.#leases.get(key)
    if (!lease || ttl === undefined) return undefined
    return lease.longest === 0 ? 0 : Math.round((100 * ttl) / lease.longest) / 100
  }

  trend(): TrendLines {
    return this.#all.drawn(this.#now)
  }

  trendOf(key: string): TrendLines {
    return (this.#each.get(key) ?? new Trend()).drawn(this.#now)
  }

  #addToEach(locks: readonly SeenLock[], gap: number): void {
    const waited = new Map(locks.filter(({ waiters }) => waiters.length > 0).map(lock => [lock.key, waitsOf(lock)]))
    for (const key of waited.keys()) {
      if (!this.#each.has(key)) this.#each.set(key, new Trend())
    }
    for (const [key, trend] of this.#each) {
      trend.add(this.#now, waited.get(key) ?? [], gap)
      if (trend.empty) this.#each.delete(key)
    }
  }
}

function waitsOf({ waiters }: SeenLock): number[] {
  return waiters.map(({ waited }) => waited)
}

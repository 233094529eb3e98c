/**
 * Remembers what the latest reading of all locks does not contain: the waits at earlier readings, and the full length
 * of each lease.
 */
import { type LockName, type Picture, type SeenLock, textOf } from '../live/picture.ts'
import type { TrendLines } from './page/messages.ts'
import { Trend } from './trend.ts'

export class Memory {
  readonly #all = new Trend()
  readonly #each = new Map<string, Trend>()
  /** For each hold, by its id: the longest remaining lease time seen, in ms. */
  #leases = new Map<string, number>()
  #now = 0

  /**
   * Adds a new picture of all locks. While there are viewers, at most `gap` ms pass between two pictures. A longer
   * pause is shown as a gap in the charts.
   */
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

  /**
   * Returns the part of the lease that is left, 0..1, for the lease that ends first. Redis does not report a lease's
   * full length, so this uses the longest remaining time seen so far.
   */
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

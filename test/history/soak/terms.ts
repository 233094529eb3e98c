/** What a run is told, and the times that its processes, its faults and the checker's bounds are made of. All in ms. */

export interface Terms {
  readonly seed: number
  readonly minutes: number
  readonly keys: number
  readonly processes: number
  /** Folder of the history and of the witness's files. */
  readonly folder: string
}

export const WAITER_TTL = 3_000
export const LONGEST_LEASE = 3_000
export const OUTAGE_TIMEOUT = 4_000
/** Short, so that the end of a run can see that locks leave nothing at all. */
export const TOKEN_MEMORY = 2_000

/** Faults come in storms, each followed by a calm that is long enough for the checker's bound on stillness. */
export const STORM = 16_000
export const CALM = 8_000

/** After the last fault was healed, everybody who waits gets on with it, one short hold after another. */
export const DRAIN_BOUND = 12_000

/** The lock that one caller of each process wants all the time, without a queue: no fault is aimed at it. */
export const LOOPED = 'looped'

export function keyNames(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `key-${i}`)
}

/** The name of a lock in Redis; `src/redis/keys.ts` has the cases of odd keys. */
export function lockName(key: string): string {
  return `lock:{${key}}`
}

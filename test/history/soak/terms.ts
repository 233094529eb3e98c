/** What a run is told, and the times that its processes, its faults and the checker's bounds are made of. All in ms. */

/** What the locks of a run are made with, all in ms. */
export interface Times {
  readonly waiterTtl: number
  /** The longest that anybody asks for. */
  readonly longestLease: number
  /** Of a call that names none. */
  readonly lease: number
  readonly outageTimeout: number
  readonly tokenMemory: number
}

export interface Terms {
  readonly seed: number
  readonly minutes: number
  /** Names of the locks. */
  readonly keys: readonly string[]
  readonly processes: number
  /** How many callers each process has, besides the one that loops. */
  readonly callers: number
  /** Folder of the history and of the witness's files. */
  readonly folder: string
  readonly times: Times
}

/** Short, so that the end of a run can see that locks leave nothing at all. */
export const TOKEN_MEMORY = 2_000
/** Of locks that have one server. */
export const TIMES: Times = {
  waiterTtl: 3_000,
  longestLease: 3_000,
  lease: 1_500,
  outageTimeout: 4_000,
  tokenMemory: TOKEN_MEMORY,
}

/** Faults come in storms, each followed by a calm that is long enough for the checker's bound on stillness. */
export const STORM = 16_000
export const CALM = 8_000

/** After the last fault was healed, everybody who waits gets on with it, one short hold after another. */
export const DRAIN_BOUND = 12_000

/** The lock that one caller of each process wants all the time, without a queue: no fault is aimed at it. */
export const LOOPED = 'looped'

/** A key's name says of which kind its lock is: no two kinds have a key in common. Half of the calls go to the first four. */
const KINDS = ['mutex', 'semaphore', 'readWrite', 'mutex'] as const
type Kind = (typeof KINDS)[number]

export function keyNames(count: number, kinds: readonly Kind[] = KINDS): string[] {
  return Array.from({ length: count }, (_, i) => `${kinds[i % kinds.length]}-${i}`)
}

export function kindOf(key: string): Kind {
  return KINDS.find(kind => key.startsWith(`${kind}-`)) ?? 'mutex'
}

/** How many permits most askers of a semaphore say that it has. */
const SIZES = [3, 5, 1, 8, 2]

export function sizeOf(key: string): number {
  const number = Number(key.slice(key.indexOf('-') + 1))
  return SIZES[(number >> 2) % SIZES.length] as number
}

/** The name of a lock in Redis; `src/redis/keys.ts` has the cases of odd keys. */
export function lockName(key: string): string {
  const kind = kindOf(key)
  return kind === 'mutex' ? `lock:{${key}}` : `lock:%${kind}/{${key}}`
}

/** The names of the queues of a lock, with what belongs to them. */
export function queueNames(key: string): string[] {
  const lock = lockName(key)
  const names = [`${lock}:queue`, `${lock}:expiry`]
  return kindOf(key) === 'readWrite' ? [...names, `${lock}:readers`] : names
}

/** The names of all that says who holds a lock. */
export function holdNames(key: string): string[] {
  const lock = lockName(key)
  return kindOf(key) === 'mutex' ? [lock] : [lock, `${lock}:deadlines`]
}

/** The stream of the plan; those of the processes are far from it. */
export const PLAN = 1_000_000

/** When the last key of a lock has expired at the latest: lua/shared/life.lua, enqueue.lua; and Redis may be slow to see it. In ms. */
export function runOut({ longestLease, waiterTtl, tokenMemory }: Times): number {
  return Math.max(longestLease, 2 * waiterTtl) + 1.25 * tokenMemory + 1_500
}

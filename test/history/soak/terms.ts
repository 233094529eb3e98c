/**
 * The parameters of a run, and the times from which its processes, its faults and the checker's bounds are derived. All
 * times are in ms.
 */

/** The options of the run's locks, in ms. */
export interface Times {
  readonly waiterTtl: number
  /** The longest lease that any caller requests. */
  readonly longestLease: number
  /** The lease of a call that requests none. */
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

/**
 * The clients' `tokenMemory`, in ms. It is short, so that the end of a run can show that locks leave nothing behind.
 */
export const TOKEN_MEMORY = 2_000
/** The times of a run with locks on one server. */
export const TIMES: Times = {
  waiterTtl: 3_000,
  longestLease: 3_000,
  lease: 1_500,
  outageTimeout: 4_000,
  tokenMemory: TOKEN_MEMORY,
}

/**
 * The lengths of a storm of faults and of the calm that follows it, in ms. A calm is longer than the bound within which
 * the checker expects progress.
 */
export const STORM = 16_000
export const CALM = 8_000

/**
 * All waiting callers are served within this time after the last fault was healed, in ms. Each of them holds the lock
 * only for a short time.
 */
export const DRAIN_BOUND = 12_000

/** The lock that one caller of each process constantly wants without queuing. No fault targets it. */
export const LOOPED = 'looped'

/**
 * A key's name determines the kind of its lock, so no two kinds share a key. Half of the calls go to the first four
 * keys.
 */
const KINDS = ['mutex', 'semaphore', 'readWrite', 'mutex'] as const
type Kind = (typeof KINDS)[number]

export function keyNames(count: number, kinds: readonly Kind[] = KINDS): string[] {
  return Array.from({ length: count }, (_, i) => `${kinds[i % kinds.length]}-${i}`)
}

export function kindOf(key: string): Kind {
  return KINDS.find(kind => key.startsWith(`${kind}-`)) ?? 'mutex'
}

/** The total numbers of permits that most callers of a semaphore give. */
const SIZES = [3, 5, 1, 8, 2]

export function sizeOf(key: string): number {
  const number = Number(key.slice(key.indexOf('-') + 1))
  return SIZES[(number >> 2) % SIZES.length] as number
}

/** Returns the name of a lock in Redis, for the plain keys of a run. `src/redis/keys.ts` also handles odd keys. */
export function lockName(key: string): string {
  const kind = kindOf(key)
  return kind === 'mutex' ? `lock:{${key}}` : `lock:%${kind}/{${key}}`
}

/** Returns the names of a lock's queues, and of the keys that belong to them. */
export function queueNames(key: string): string[] {
  const lock = lockName(key)
  const names = [`${lock}:queue`, `${lock}:expiry`]
  return kindOf(key) === 'readWrite' ? [...names, `${lock}:readers`] : names
}

/** Returns the names of all keys that record the holders of a lock. */
export function holdNames(key: string): string[] {
  const lock = lockName(key)
  return kindOf(key) === 'mutex' ? [lock] : [lock, `${lock}:deadlines`]
}

/**
 * The number of the stream of random numbers from which the plan is made. It is far larger than the numbers of the
 * processes' streams.
 */
export const PLAN = 1_000_000

/**
 * Returns how many ms after a lock's last use all its keys are certainly gone: they have expired (lua/shared/life.lua,
 * enqueue.lua), and Redis has had time to remove them.
 */
export function runOut({ longestLease, waiterTtl, tokenMemory }: Times): number {
  return Math.max(longestLease, 2 * waiterTtl) + 1.25 * tokenMemory + 1_500
}

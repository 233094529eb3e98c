/**
 * The parameters of a run, and the times from which its processes, its faults and the checker's bounds are derived. All
 * times are in ms.
 */

/** The options of the run's locks, in ms. */
export interface Times {
  readonly waiterTtl: number
  /** The longest lease that any caller requests. */
  readonly longestLease: number
  /** The lease of calls that do not set the option `lease`. */
  readonly lease: number
  readonly outageTimeout: number
  readonly tokenMemory: number
}

export interface Terms {
  readonly seed: number
  readonly minutes: number
  /** Names of the locks. */
  readonly keys: readonly string[]
  /** The number of servers of the locks. */
  readonly servers: number
  /** Whether a minority of the servers is dead for the whole run: killed if the seed is even, stopped if it is odd. */
  readonly dead: boolean
  /** Whether servers that come back empty report that they persist (server.ts). */
  readonly disksLost: boolean
  readonly processes: number
  /**
   * Number of callers in each process. One more caller of the process only acquires the lock `LOOPED`, again and again.
   */
  readonly callers: number
  /** Folder for the history, and for the files by which holders find each other (test/history/witnesses.ts). */
  readonly folder: string
  readonly times: Times
}

/**
 * The clients' `tokenMemory`, in ms. It is short, so that the end of a run can show that locks leave nothing behind.
 */
export const TOKEN_MEMORY = 2_000
/**
 * Over a quorum, all leases are short, so that the votes of a server that has come back empty count again within a
 * storm. A client does not count these votes until the client's own longest lease has passed. All clients have the same
 * longest lease, so by then the leases of all clients have ended.
 */
const QUORUM_LEASE = 2_000

/** Returns the times of a run with locks on so many servers. */
export function timesOf(servers: number): Times {
  const leases =
    servers === 1 ? { longestLease: 3_000, lease: 1_500 } : { longestLease: QUORUM_LEASE, lease: QUORUM_LEASE }
  return { waiterTtl: 3_000, outageTimeout: 4_000, tokenMemory: TOKEN_MEMORY, ...leases }
}

/**
 * How long a server that has come back empty must be up before all clients certainly count its votes, in ms. This
 * includes a margin, because servers report their uptime in whole seconds.
 */
export const STANDING = QUORUM_LEASE + 2_500

/** Returns how many of the servers have to agree. */
export function majorityOf(servers: number): number {
  return Math.floor(servers / 2) + 1
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

/**
 * In each process, one unfair caller acquires this lock again and again, and never queues. No fault targets this lock.
 */
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

/**
 * Total numbers of permits of the semaphores. About one call in ten passes a total that differs by one (choices.ts).
 */
const SIZES = [3, 5, 1, 8, 2]

export function sizeOf(key: string): number {
  const number = Number(key.slice(key.indexOf('-') + 1))
  return SIZES[(number >> 2) % SIZES.length] as number
}

/** Returns the name of a lock's main key in Redis. For keys with braces, which no run uses, see src/redis/keys.ts. */
export function lockName(key: string): string {
  const kind = kindOf(key)
  return kind === 'mutex' ? `lock:{${key}}` : `lock:%${kind}/{${key}}`
}

/** Returns the names of a lock's queues. */
export function queueNames(key: string): string[] {
  const lock = lockName(key)
  return kindOf(key) === 'readWrite' ? [`${lock}:q`, `${lock}:r`] : [`${lock}:q`]
}

/** Returns the names of all keys that record the holders of a lock. */
export function holdNames(key: string): string[] {
  const lock = lockName(key)
  return kindOf(key) === 'mutex' ? [lock] : [lock, `${lock}:d`]
}

/**
 * The number of the random stream from which the plan of faults is made. The streams of the processes have far smaller
 * numbers, so the plan and a process never share a stream.
 */
export const PLAN = 1_000_000

/** For this long, in ms, after the last lease or queue has ended, the keys of a lock still exist (lua/lock.lua). */
const LINGER = 5_000

/**
 * Returns how long, in ms after its last use, a lock may still have keys in Redis: until the keys have expired
 * (lua/lock.lua, enqueue.lua), and Redis has had time to remove them.
 */
export function runOut({ longestLease, waiterTtl, tokenMemory }: Times): number {
  return Math.max(Math.max(longestLease, 2 * waiterTtl) + LINGER, tokenMemory) + 0.1 * tokenMemory + 1_500
}

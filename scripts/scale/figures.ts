/** What a run of `npm run scale` writes to benchmarks/results/scale.json. CPU times are µs, sizes bytes. */
import type { Machine } from '../../benchmarks/harness/machine.ts'

export interface Scale extends Measured {
  readonly machine: Machine & { readonly redis: string }
  readonly runs: Readonly<Record<Part, Run>>
}

/** One part is measured. */
export interface Run {
  readonly date: string
  /** The share of all cores, 0..1, that others used meanwhile. */
  readonly usedByOthers?: number | undefined
  /** The servers went ahead of whatever else the machine had to do. If not, times by SLOWLOG are those of others, too. */
  readonly serversFirst: boolean
}

export interface Measured {
  readonly scripts: readonly ScriptTime[]
  readonly parked: readonly Parked[]
  readonly held: Held
  readonly fleet: readonly Fleet[]
  readonly masters: readonly Masters[]
  readonly chores: Chores
}

export type Part = keyof Measured

/** How long one script call held the server, µs by SLOWLOG. */
export interface ScriptTime {
  readonly what: string
  /** How many waiters were in the queue of the one key, how many holds its owner had, or how many clients listened. */
  readonly size: number
  readonly calls: number
  readonly least: number
  readonly median: number
  readonly most: number
}

/** The case whose size is a number of clients, not of waiters. */
export const HEARD = 'acquire and release, heard by so many clients'

/** The longest script call that the server ran meanwhile, and how many it ran, of which some were longer than 5 ms. */
export interface Longest {
  readonly micros: number
  readonly calls: number
  readonly tooLong: number
}

/** What one process spent, and its server. */
export interface Spent {
  readonly client: number
  readonly server: number
}

/** One process, with waiters parked. */
export interface Parked {
  readonly what: string
  readonly waiters: number
  readonly keys: number
  /** Memory of one waiter. */
  readonly bytes: Spent
  /** CPU to park one. */
  readonly parking: Spent
  /** CPU of all waiters together, a second, while nothing happens. */
  readonly idling: Spent
  readonly commandsPerSecond: number
  /** From the first wait until the heartbeats have been watched. */
  readonly longest: Longest
  /** `close()` of the client with all of them: CPU of all, ms until it returned, and the longest script call. */
  readonly closing: Spent & { readonly ms: number; readonly longest: Longest }
}

/** One process that holds locks. */
export interface Held {
  readonly locks: number
  /** Memory of one held lock. */
  readonly bytes: Spent
  /** Memory of the server for one lock that was held before. */
  readonly freeBytes: number
  /** CPU to take one, and to release it. */
  readonly taking: Spent
  readonly releasing: Spent
  /** CPU of all together, a second, while they are renewed. */
  readonly renewing: Spent
  readonly renewalsPerSecond: number
  /** CPU of the longest turn of the process's event loop, ms, while they were renewed. */
  readonly longestTurn: number
  readonly lost: number
  readonly longest: Longest
}

/** Many clients of one server. */
export interface Fleet {
  readonly what: string
  readonly clients: number
  readonly connections: number
  /** Memory of one client more. */
  readonly bytes: Spent
  /** CPU of all, a second, while nothing happens. */
  readonly idling: Spent
  readonly commandsPerSecond: number
  /** CPU of one lock and release. */
  readonly cycle?: Spent
  readonly longest: Longest
}

/** A cluster, with keys spread over its masters. */
export interface Masters {
  readonly masters: number
  readonly acquisitions: number
  /** CPU of one lock and release: of all clients, and of the masters. */
  readonly cycle: Spent
  /** The same of each master, for those that it served; and the part of it that scripts took. */
  readonly each: readonly { readonly acquisitions: number; readonly server: number; readonly inScripts: number }[]
  /** CPU of a master while nothing happens, a second. */
  readonly idle: number
}

/** What the library does besides, CPU of the client. */
export interface Chores {
  /** One `tryLock` and release, and one `lock` and release, by a single caller. */
  readonly tryLock: number
  readonly lock: number
  /** One `stats()` of a client with so many locks. */
  readonly stats: readonly { readonly locks: number; readonly micros: number }[]
  /** `close()` of a client with so many waiters of one key. */
  readonly close: { readonly waiters: number; readonly client: number; readonly ms: number }
  /** So many holds of one owner: to take one, to release one, on one server and in a cluster. */
  readonly holds: readonly {
    readonly where: string
    readonly holds: number
    readonly taking: number
    readonly releasing: number
  }[]
}

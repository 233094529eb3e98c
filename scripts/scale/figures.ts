/** What a run of `npm run scale` writes to benchmarks/results/scale.json. CPU times are in µs, sizes in bytes. */
import type { Machine } from '../../benchmarks/harness/machine.ts'

export interface Scale extends Measured {
  readonly machine: Machine & { readonly redis: string }
  readonly runs: Readonly<Record<Part, Run>>
}

/** When one part of the figures was measured, and under which conditions. */
export interface Run {
  readonly date: string
  /** The share of all cores, 0..1, that other programs used during the measurement. */
  readonly usedByOthers?: number | undefined
  /**
   * Whether the servers had priority over everything else on the machine. If not, the times that SLOWLOG reports
   * include the time of other programs.
   */
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

/** How long one script call occupied the server, in µs by SLOWLOG. */
export interface ScriptTime {
  readonly what: string
  /**
   * What is counted depends on the case: the waiters in the queue, the holds of one owner, or, in the case `HEARD`, the
   * clients that are subscribed to the unlock message.
   */
  readonly size: number
  readonly calls: number
  readonly least: number
  readonly median: number
  readonly most: number
}

/** The name of the case in which `size` is the number of subscribed clients. */
export const HEARD = 'acquire and release, heard by so many clients'

/** The longest script call during the measurement, the number of calls, and how many calls took longer than 5 ms. */
export interface Longest {
  readonly micros: number
  readonly calls: number
  readonly tooLong: number
}

/** What the client processes used, and what the servers used: CPU or memory. */
export interface Spent {
  readonly client: number
  readonly server: number
}

/** The figures of one process with parked waiters. */
export interface Parked {
  readonly what: string
  readonly waiters: number
  readonly keys: number
  /** Memory per waiter. */
  readonly bytes: Spent
  /** CPU to park one waiter. */
  readonly parking: Spent
  /** CPU per second of all waiters together, while nothing happens. */
  readonly idling: Spent
  readonly commandsPerSecond: number
  /** Covers two phases: the waiters are being parked, and then nothing happens. */
  readonly longest: Longest
  /**
   * What it costs to close a client that has all of these waiters: CPU per waiter, the ms until `close()` resolved, and
   * the longest script call.
   */
  readonly closing: Spent & { readonly ms: number; readonly longest: Longest }
}

/** The figures of one process that holds locks. */
export interface Held {
  readonly locks: number
  /** Memory per held lock. */
  readonly bytes: Spent
  /** The server's memory for one lock that is free again. */
  readonly freeBytes: number
  /** CPU to take and release one lock. */
  readonly taking: Spent
  readonly releasing: Spent
  /** CPU per second for all locks together, while they are renewed. */
  readonly renewing: Spent
  readonly renewalsPerSecond: number
  /** CPU of the longest turn of the process's event loop while the locks were renewed, in ms. */
  readonly longestTurn: number
  readonly lost: number
  readonly longest: Longest
}

/** The figures of many clients of one server. */
export interface Fleet {
  readonly what: string
  readonly clients: number
  readonly connections: number
  /** Memory per additional client. */
  readonly bytes: Spent
  /** CPU per second of all clients, while nothing happens. */
  readonly idling: Spent
  readonly commandsPerSecond: number
  /** CPU to take and release one lock. */
  readonly cycle?: Spent
  readonly longest: Longest
}

/** The figures of a cluster, with keys spread over its masters. */
export interface Masters {
  readonly masters: number
  readonly acquisitions: number
  /**
   * CPU per acquisition with its release: the CPU of all clients, and that of all masters, divided by `acquisitions`.
   */
  readonly cycle: Spent
  /**
   * For each master: the acquisitions that it served, its CPU for one acquisition, and the part of this CPU that
   * scripts used.
   */
  readonly each: readonly { readonly acquisitions: number; readonly server: number; readonly inScripts: number }[]
  /** CPU of a master while nothing happens, per second. */
  readonly idle: number
}

/** What single calls cost the client: CPU in µs, and for `close` also the time in ms. */
export interface Chores {
  /** CPU for one `tryLock` and release, and for one `lock` and release, by a single caller. */
  readonly tryLock: number
  readonly lock: number
  /** CPU for one `stats()` of a client with this many locks. */
  readonly stats: readonly { readonly locks: number; readonly micros: number }[]
  /** The cost of `close()` for a client with this many waiters for one key. */
  readonly close: { readonly waiters: number; readonly client: number; readonly ms: number }
  /** The cost of taking, and of releasing, one hold of an owner. The number of the owner's holds is in `holds`. */
  readonly holds: readonly {
    readonly where: string
    readonly holds: number
    readonly taking: number
    readonly releasing: number
  }[]
}

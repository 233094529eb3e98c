/**
 * What the parts of the benchmark say to each other. A run is many *trials*: one rival in one scenario in one round.
 *
 *      runner ──JSON lines on stdin──▶ worker processes (benchmarks/worker, or benchmarks/redisson in Java)
 *             ◀─JSON lines on stdout──
 *             ◀─samples in a file, one record of five float64 (little endian) an acquisition
 *
 * All times in a sample are ms of the machine's one monotonic clock (CLOCK_MONOTONIC: `process.hrtime` in Node,
 * `System.nanoTime` in Java), so those of several processes can be compared. A worker sees only its own rival's library.
 */

import type { Tally } from './harness/tally.ts'

/** A quorum is a mutex over several independent servers. */
export type LockKind = 'mutex' | 'semaphore' | 'readWrite' | 'quorum'

/** What is asked for under a key. Without any of these, a mutex. */
export interface Sharing {
  readonly lock?: LockKind
  /** Permits of the semaphore. */
  readonly permits?: number
  /** Of the waiters of each process, every so many-th writes and the others read. Without it, all waiters read. */
  readonly writerEvery?: number
}

export function lockOf({ lock = 'mutex' }: Sharing): LockKind {
  return lock
}

/** Which waiters of a process ask for the read lock. */
export function reads({ lock, writerEvery }: Sharing, waiter: number): boolean {
  return lock === 'readWrite' && !(writerEvery !== undefined && waiter % writerEvery === 0)
}

/** A lock under test, as the worker uses it. One per worker process. */
export interface RivalClient {
  /**
   * The waiter `index` of this process: has whatever one user of the library would have for himself. Where the library
   * shares one client, all waiters share it. `reading`: of a read-write lock it wants the read lock.
   */
  contender(index: number, reading: boolean): Contender | Promise<Contender>
  /** Of a lock over several servers, where its library tells. */
  tally?(): Tally
  close(): Promise<void>
}

export interface Contender {
  /** Resolves when the lock of `key` is held; the result ends the hold. */
  acquire(key: string): Promise<Release>
}

export type Release = () => Promise<unknown>

/** One adapter a rival: its documented best use, and its defaults. */
export interface Rival {
  /** As on the command line and in the reports, for example 'redis-semaphore'. */
  readonly name: string
  readonly kind: 'baton' | 'rival' | 'floor'
  /** Whether it promises first come, first served. */
  readonly fair: boolean
  /** The kinds of lock that it has. Without it, only a mutex. */
  readonly locks?: readonly LockKind[]
  /** The package whose version the report names; undefined: written by hand. */
  readonly package: string | undefined
  /** One sentence: which use of it this is. */
  readonly note: string
  /** 'node': by benchmarks/worker. 'java': by benchmarks/redisson. */
  readonly runtime: 'node' | 'java'
  /** Scenarios that make no sense for it, with the reason that is shown. */
  readonly skips?: Readonly<Partial<Record<string, string>>>
  /** Its callers of one key may be fair and unfair: those of `asksFair` ask so, in a scenario that is mixed. */
  readonly mixes?: boolean
  /** It does not count a server that has been up for less than this, ms: until then it is not measured on several. */
  readonly countsServersAfter?: number
  /** Why it cannot run here (not installed, no Java); undefined: it can. */
  missing(): Promise<string | undefined>
  /** In the worker only: imports the library and connects. */
  open?(setting: Setting): Promise<RivalClient>
}

/** Whether a rival has the kind of lock that a scenario is about. */
export function takesPart({ locks = ['mutex'] }: Pick<Rival, 'locks'>, scenario: Scenario): boolean {
  return locks.includes(lockOf(scenario))
}

/** What a worker is told first. `permits`: all that the semaphore has, those in use by others included. */
export interface Setting extends Sharing {
  readonly rival: string
  readonly url: string
  /** Of a quorum: the URLs of all its servers, of which `url` is the first. */
  readonly servers?: readonly string[]
  /** Each waiter has a client of its own. */
  readonly apart?: boolean
  /** First part of every key of this trial: nothing of an earlier one is in the way. */
  readonly namespace: string
  readonly process: number
  readonly processes: number
  /** Waiters of this process. */
  readonly waiters: number
  /** Lease of the locks in ms; undefined: the library's default. */
  readonly lease: number | undefined
}

/** Runner to worker. Each is answered by one `Report` with the same `op`, or by `failed`. */
export type Order =
  | { readonly op: 'open'; readonly setting: Setting }
  /**
   * Closed loop: the first waiter asks at `startAt` (monotonic ms), then one every `gap` ms (0: all at once, in order).
   * Until `endAt` each holds for `hold` ms, releases, and asks again; whoever has the lock before `openAt` keeps it until
   * then. Waiter i uses key i % keys. Calls under way at the end may finish until `giveUpAt`.
   */
  | {
      readonly op: 'loop'
      readonly startAt: number
      readonly gap: number
      readonly openAt: number
      readonly endAt: number
      readonly giveUpAt: number
      readonly hold: number
      readonly keys: number
      readonly file: string
    }
  /** Extra contenders, `count` or one, take the lock of key 0 and keep it; of a read-write lock, the write lock. */
  | { readonly op: 'hold'; readonly count?: number }
  /** They let go. */
  | { readonly op: 'drop' }
  /**
   * Each waiter asks once for key 0, the first at `startAt`, then one every `gap` ms (0: all at once, in order); answered
   * when all have asked. Each holds for `hold` ms and releases.
   */
  | { readonly op: 'queue'; readonly startAt: number; readonly gap: number; readonly hold: number }
  /** Waits until all that were queued have had their turn, or `giveUpAt`, and writes the samples. */
  | { readonly op: 'collect'; readonly giveUpAt: number; readonly file: string }
  /** Collects garbage where it can, and tells the memory. */
  | { readonly op: 'memory' }
  | { readonly op: 'close' }

export type Report =
  | { readonly op: 'open' }
  | Drained
  | { readonly op: 'hold'; readonly at: number }
  | { readonly op: 'drop'; readonly calledAt: number; readonly returnedAt: number }
  | { readonly op: 'queue'; readonly at: number }
  | { readonly op: 'memory'; readonly resident: number; readonly heap: number }
  | { readonly op: 'close' }
  | { readonly op: 'failed'; readonly error: string }

/** Answer to `loop` and `collect`. */
export interface Drained {
  readonly op: 'loop' | 'collect'
  readonly samples: number
  /** Calls that had not returned by `giveUpAt`. */
  readonly unfinished: number
  /** Calls that rejected, and the text of the first of them. */
  readonly errors: number
  readonly error?: string
  /** Of all clients of the process, since they were opened. */
  readonly tally?: Tally
  /** User and system time of the process between start and end, in µs. */
  readonly cpu: number
}

/**
 * The numbers of a sample, which is one acquisition, in their order in the file. Times are monotonic ms; `released` is when
 * release was called, `done` when it returned.
 */
export const sampleFields = ['waiter', 'asked', 'acquired', 'released', 'done'] as const

/** `permits`: those that its waiters share. */
export interface Scenario extends Sharing {
  /** As on the command line, for example '2x8'. */
  readonly name: string
  readonly title: string
  readonly kind: 'loop' | 'burst' | 'drain' | 'admission' | 'crash-holder' | 'crash-waiters' | 'idle'
  readonly processes: number
  /** Waiters a process. */
  readonly waiters: number
  readonly keys: number
  /** ms for which each holds the lock. */
  readonly hold: number
  /** Half of the waiters of each process ask fair, the others unfair. Only for those who can mix. */
  readonly mixed?: boolean
  /** Permits of the semaphore that another process holds meanwhile, beside those that the waiters share. */
  readonly inUse?: number
  /** Servers of the quorum. */
  readonly servers?: number
  /** How many of them are frozen from the warm-up on. */
  readonly frozen?: number
  /** Each waiter has a client of its own, as if it were in a process of its own. */
  readonly apart?: boolean
}

/** Which waiters of a process ask fair in a mixed scenario: every other one. */
export function asksFair(waiter: number): boolean {
  return waiter % 2 === 0
}

/** The measures of one trial; docs/benchmarks.md defines each. Absent: it does not apply, or could not be taken. */
export type Figures = Partial<Record<Measure, number>>

export const measures = [
  'acquisitions', // in the trial
  'throughput', // acquisitions a second
  'handoffP50', // µs
  'handoffP90',
  'handoffP99',
  'handoffMax',
  'crossP50', // µs, hand-offs to another process only
  'crossShare', // share of hand-offs that went to another process, 0..1
  'backToReleaser', // share of acquisitions that went to the waiter that released last, 0..1
  'cycleP50', // µs from asking to the return of release
  'cycleP99',
  'waitP50', // ms
  'waitMax', // ms
  'waitMaxFair', // ms, of the fair half of a mixed crowd
  'waitMaxUnfair', // ms, of its other half
  'waitMaxReaders', // ms, of those who read
  'waitMaxWriters', // ms, of those who write
  'attempts', // an acquisition: times that the servers of a quorum were asked
  'secondRounds', // share of grants that took a second round trip, 0..1
  'commands', // Redis commands an acquisition, as clients sent them
  'bytes', // network bytes an acquisition, both ways, as the server counts
  'serverCpu', // µs an acquisition, of the server's process
  'commandTime', // µs of the server for one command, by its own command statistics
  'clientCpu', // µs an acquisition, of all workers
  'releaseCost', // µs of the server for one release, by its own command statistics
  'jain', // Jain's index of acquisitions a waiter, 0..1
  'overtaken', // by how many later requests one was overtaken at the most
  'starved', // waiters without any acquisition
  'overlaps', // must be 0
  'unfinished', // calls that did not return
  'errors', // calls that rejected
  'admission', // ms from a writer's release to the last of the readers that waited for it
  'messages', // that clients received because of the writer's release
  'drain', // ms from the first release to the last acquisition
  'inversions', // share of pairs granted against the order of asking, 0..1
  'nextGrant', // ms from the crash (or the release after it) to the next grant
  'ordinaryHandoff', // ms, the same without the crash
  'commandsPerSecond', // while all are parked
  'residentPerWaiter', // bytes of the client
  'heapPerWaiter', // bytes of the client's heap
  'redisPerWaiter', // bytes of the server
] as const
export type Measure = (typeof measures)[number]

/** One rival in one scenario in one round. */
export interface Trial {
  readonly rival: string
  readonly scenario: string
  readonly round: number
  /** Skipped: not tried in this scenario, or not again after a round that failed or left calls that did not return. */
  readonly outcome: 'measured' | 'failed' | 'skipped'
  /** Why it failed or was skipped. */
  readonly reason?: string
  readonly figures: Figures
  /** Hand-off gaps in µs: counts in buckets of equal width on a log axis (`Distribution`). */
  readonly handoffs?: Distribution
  /** Acquisitions of each waiter in tenths of the trial, for the plot of fairness over time: Jain's index of each. */
  readonly fairness?: readonly number[]
  /** Share of the cores' time used by others during the trial, 0..1, where the system tells. */
  readonly busy?: number
}

/** `counts[i]` values lie in [low × step^i, low × step^(i+1)). */
export interface Distribution {
  readonly low: number
  readonly step: number
  readonly counts: readonly number[]
}

/** The raw result of `npm run bench`: what --json writes and the reports read. */
export interface Results {
  readonly format: 1
  readonly date: string
  readonly machine: {
    readonly cpu: string
    readonly cores: number
    readonly memory: number
    readonly system: string
    readonly node: string
    readonly redis: string
    readonly warmCores: boolean
    /** ms added between clients and server, there and back. */
    readonly rtt: number
  }
  readonly options: { readonly rounds: number; readonly seconds: number }
  readonly scenarios: readonly Scenario[]
  readonly rivals: readonly (Pick<Rival, 'name' | 'kind' | 'fair' | 'locks' | 'note'> & { readonly version?: string })[]
  readonly trials: readonly Trial[]
  /** What the project wants to reach and this run tells of. Runs from before they were recorded have none. */
  readonly goals?: readonly Attainment[]
  /** Anything the reader has to know: a busy machine, a rival that is missing. */
  readonly notes: readonly string[]
}

/** A goal, and what a run says of it. */
export interface Attainment {
  readonly what: string
  /** As in '≤ 1.15'. */
  readonly goal: string
  /** Medians of the rounds with their range, in words. */
  readonly measured: string
  readonly verdict: 'reached' | 'missed'
}

/**
 * The messages and data that the parts of the benchmark exchange. A run consists of many *trials*: one rival in one
 * scenario in one round.
 *
 *      runner ──JSON lines on stdin──▶ worker processes (benchmarks/worker, or benchmarks/redisson in Java)
 *             ◀─JSON lines on stdout──
 *             ◀─samples in a file, one record of five float64 (little endian) per acquisition
 *
 * All times in a sample are ms of the machine's one monotonic clock (CLOCK_MONOTONIC: `process.hrtime` in Node,
 * `System.nanoTime` in Java), so times of several processes can be compared. A worker loads only its own rival's
 * library.
 */

import type { Tally } from './harness/tally.ts'

/** A quorum is a mutex over several independent servers. */
export type LockKind = 'mutex' | 'semaphore' | 'readWrite' | 'quorum'

/** What waiters request under a key. Without any of these fields, a mutex. */
export interface Sharing {
  readonly lock?: LockKind
  /** The number of permits of the semaphore. */
  readonly permits?: number
  /** Every `writerEvery`-th waiter of each process writes, and the others read. Without it, all waiters read. */
  readonly writerEvery?: number
}

export function lockOf({ lock = 'mutex' }: Sharing): LockKind {
  return lock
}

/** Whether this waiter of a process asks for the read lock. */
export function reads({ lock, writerEvery }: Sharing, waiter: number): boolean {
  return lock === 'readWrite' && !(writerEvery !== undefined && waiter % writerEvery === 0)
}

/** A lock under test, as the worker uses it. One per worker process. */
export interface RivalClient {
  /**
   * The waiter `index` of this process. It has whatever one user of the library would have alone; where the library
   * shares one client, all waiters share it. With `reading`, it wants the read lock of a read-write lock.
   */
  contender(index: number, reading: boolean): Contender | Promise<Contender>
  /** For a lock over several servers, if its library reports this. */
  tally?(): Tally
  close(): Promise<void>
}

export interface Contender {
  /** Resolves when the lock of `key` is held. Calling the result ends the hold. */
  acquire(key: string): Promise<Release>
}

export type Release = () => Promise<unknown>

/** One adapter per rival: its documented best use, with its defaults. */
export interface Rival {
  /** The name on the command line and in the reports, for example 'redis-semaphore'. */
  readonly name: string
  readonly kind: 'baton' | 'rival' | 'floor'
  /** Whether it promises first come, first served. */
  readonly fair: boolean
  /** The kinds of locks that it has. Default: only a mutex. */
  readonly locks?: readonly LockKind[]
  /** The package whose version the report names; undefined if the rival is hand-written. */
  readonly package: string | undefined
  /** One sentence: how the library is used here. */
  readonly note: string
  /** 'node': run by benchmarks/worker. 'java': run by benchmarks/redisson. */
  readonly runtime: 'node' | 'java'
  /** Scenarios that make no sense for it, with the reason to show. */
  readonly skips?: Readonly<Partial<Record<string, string>>>
  /** Callers of one key may be both fair and unfair. In a mixed scenario, `asksFair` selects the fair ones. */
  readonly mixes?: boolean
  /**
   * In ms: it ignores servers that have been up for less than this. Until then it is not measured on several servers.
   */
  readonly countsServersAfter?: number
  /** Why it cannot run here (not installed, no Java); undefined if it can. */
  missing(): Promise<string | undefined>
  /** Only in the worker: imports the library and connects. */
  open?(setting: Setting): Promise<RivalClient>
}

/** Whether a rival has the kind of lock that a scenario needs. */
export function takesPart({ locks = ['mutex'] }: Pick<Rival, 'locks'>, scenario: Scenario): boolean {
  return locks.includes(lockOf(scenario))
}

/** The first message to a worker. `permits` is the semaphore's total, including permits in use by others. */
export interface Setting extends Sharing {
  readonly rival: string
  readonly url: string
  /** For a quorum: the URLs of all its servers; `url` is the first. */
  readonly servers?: readonly string[]
  /** Each waiter has its own client. */
  readonly apart?: boolean
  /** The first part of every key of this trial, so that nothing of an earlier trial interferes. */
  readonly namespace: string
  readonly process: number
  readonly processes: number
  /** Number of waiters in this process. */
  readonly waiters: number
  /** Lease of the locks in ms; undefined for the library's default. */
  readonly lease: number | undefined
}

/** From the runner to a worker. Each order is answered by one `Report` with the same `op`, or by `failed`. */
export type Order =
  | { readonly op: 'open'; readonly setting: Setting }
  /**
   * Closed loop: the first waiter asks at `startAt` (monotonic ms), then one every `gap` ms (0: all at once, in order).
   * Until `endAt`, each waiter holds for `hold` ms, releases, and asks again. A waiter that gets the lock before
   * `openAt` keeps it until then. Waiter i uses key i % keys. Calls under way at the end may finish until `giveUpAt`.
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
  /**
   * Extra contenders, `count` of them (default: one), take the lock of key 0 and keep it. For a read-write lock, the
   * write lock.
   */
  | { readonly op: 'hold'; readonly count?: number }
  /** The extra contenders release. */
  | { readonly op: 'drop' }
  /**
   * Each waiter asks once for key 0, the first at `startAt`, then one every `gap` ms (0: all at once, in order).
   * Answered when all have asked. Each waiter holds for `hold` ms and releases.
   */
  | { readonly op: 'queue'; readonly startAt: number; readonly gap: number; readonly hold: number }
  /** Waits until all queued waiters have had their turns, or until `giveUpAt`, and writes the samples. */
  | { readonly op: 'collect'; readonly giveUpAt: number; readonly file: string }
  /** Collects garbage if possible, and reports the memory in use. */
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

/** The answer to `loop` and `collect`. */
export interface Drained {
  readonly op: 'loop' | 'collect'
  readonly samples: number
  /** Calls that had not returned by `giveUpAt`. */
  readonly unfinished: number
  /** The number of calls that rejected, and the text of the first rejection. */
  readonly errors: number
  readonly error?: string
  /** For all clients of the process, since they were opened. */
  readonly tally?: Tally
  /** User and system time of the process between start and end, in µs. */
  readonly cpu: number
}

/**
 * The numbers of a sample (one acquisition), in their order in the file. Times are monotonic ms. `released` is when
 * release was called, `done` when it returned.
 */
export const sampleFields = ['waiter', 'asked', 'acquired', 'released', 'done'] as const

/** `permits` are those that its waiters share. */
export interface Scenario extends Sharing {
  /** The name on the command line, for example '2x8'. */
  readonly name: string
  readonly title: string
  readonly kind: 'loop' | 'burst' | 'drain' | 'admission' | 'crash-holder' | 'crash-waiters' | 'idle'
  readonly processes: number
  /** Waiters per process. */
  readonly waiters: number
  readonly keys: number
  /** How long each waiter holds the lock, in ms. */
  readonly hold: number
  /** Half of the waiters of each process are fair, the others unfair. Only for rivals that can mix. */
  readonly mixed?: boolean
  /** Permits of the semaphore that another process holds meanwhile, in addition to those that the waiters share. */
  readonly inUse?: number
  /** Number of servers of the quorum. */
  readonly servers?: number
  /** How many servers are frozen from the warm-up on. */
  readonly frozen?: number
  /** Each waiter has its own client, as if it were in its own process. */
  readonly apart?: boolean
}

/** Whether this waiter of a process is fair in a mixed scenario: every other one is. */
export function asksFair(waiter: number): boolean {
  return waiter % 2 === 0
}

/**
 * The measures of one trial, as docs/benchmarks.md defines them. A measure is absent if it does not apply or could not
 * be taken.
 */
export type Figures = Partial<Record<Measure, number>>

export const measures = [
  'acquisitions', // in the trial
  'throughput', // acquisitions per second
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
  'waitMaxFair', // ms, for the fair half of a mixed crowd
  'waitMaxUnfair', // ms, for its unfair half
  'waitMaxReaders', // ms, for readers
  'waitMaxWriters', // ms, for writers
  'attempts', // per acquisition: how often the servers of a quorum were asked
  'secondRounds', // share of grants that needed a second round trip, 0..1
  'commands', // Redis commands per acquisition, as clients sent them
  'bytes', // network bytes per acquisition, both ways, as counted by the server
  'serverCpu', // µs per acquisition, of the server's process
  'commandTime', // µs of the server per command, by its own command statistics
  'clientCpu', // µs per acquisition, of all workers
  'releaseCost', // µs of the server per release, by its own command statistics
  'jain', // Jain's index of acquisitions per waiter, 0..1
  'overtaken', // the most later requests that were granted ahead of one request
  'starved', // waiters without any acquisition
  'overlaps', // must be 0
  'unfinished', // calls that did not return
  'errors', // calls that rejected
  'admission', // ms from a writer's release to the last of the readers that waited for it
  'messages', // messages that clients received because of the writer's release
  'drain', // ms from the first release to the last acquisition
  'inversions', // share of pairs granted against the order of asking, 0..1
  'nextGrant', // ms from the crash (or the release after it) to the next grant
  'ordinaryHandoff', // ms, the same without a crash
  'commandsPerSecond', // while all waiters are parked
  'residentPerWaiter', // bytes of the client process
  'heapPerWaiter', // bytes of the client's heap
  'redisPerWaiter', // bytes of the server
] as const
export type Measure = (typeof measures)[number]

/** One rival in one scenario in one round. */
export interface Trial {
  readonly rival: string
  readonly scenario: string
  readonly round: number
  /**
   * 'skipped': not tried in this scenario, or not repeated after a round that failed or left calls that did not return.
   */
  readonly outcome: 'measured' | 'failed' | 'skipped'
  /** Why it failed or was skipped. */
  readonly reason?: string
  readonly figures: Figures
  /** Hand-off gaps in µs: counts in buckets of equal width on a log axis (`Distribution`). */
  readonly handoffs?: Distribution
  /** Jain's index of the waiters' acquisitions in each tenth of the trial, for the plot of fairness over time. */
  readonly fairness?: readonly number[]
  /** Share of the cores' time that other programs used during the trial, 0..1, if the system reports it. */
  readonly busy?: number
}

/** `counts[i]` values are in [low × step^i, low × step^(i+1)). */
export interface Distribution {
  readonly low: number
  readonly step: number
  readonly counts: readonly number[]
}

/** The raw result of `npm run bench`: --json writes it and the reports read it. */
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
    /** ms added to the round trip between clients and server. */
    readonly rtt: number
  }
  readonly options: { readonly rounds: number; readonly seconds: number }
  readonly scenarios: readonly Scenario[]
  readonly rivals: readonly (Pick<Rival, 'name' | 'kind' | 'fair' | 'locks' | 'note'> & { readonly version?: string })[]
  readonly trials: readonly Trial[]
  /** The project's goals that this run can judge. Absent in runs from before goals were recorded. */
  readonly goals?: readonly Attainment[]
  /** Whatever the reader has to know: a busy machine, a missing rival. */
  readonly notes: readonly string[]
}

/** A goal, and what a run shows about it. */
export interface Attainment {
  readonly what: string
  /** For instance '≤ 1.15'. */
  readonly goal: string
  /** Medians of the rounds with their ranges, in words. */
  readonly measured: string
  readonly verdict: 'reached' | 'missed'
}

/**
 * The messages and data that the parts of the benchmark exchange. A run consists of many *trials*. A trial is one rival
 * in one scenario in one round.
 *
 *      runner ──JSON lines on stdin──▶ worker processes (benchmarks/worker, or benchmarks/redisson in Java)
 *             ◀─JSON lines on stdout──
 *             ◀─samples in a file, one record of five float64 (little endian) per acquisition
 *
 * All times in a sample are in ms of the machine's monotonic clock (CLOCK_MONOTONIC: `process.hrtime` in Node,
 * `System.nanoTime` in Java), so times of different processes can be compared. A worker loads only the library of its
 * own rival.
 */

import type { Tally } from './harness/tally.ts'

/** `quorum` is a mutex over several independent servers; `groups` is a semaphore whose waiters belong to groups. */
export type LockKind = 'mutex' | 'semaphore' | 'readWrite' | 'quorum' | 'groups'

/** Describes the lock that the waiters of a key share. Without these fields, the lock is a mutex. */
export interface Sharing {
  readonly lock?: LockKind
  /** The number of permits of the semaphore. */
  readonly permits?: number
  /**
   * Every `writerEvery`-th waiter of each process is a writer, and the others are readers. Without this field, all
   * waiters are readers.
   */
  readonly writerEvery?: number
  /** How many groups of equal size there are, or how many waiters each group has. The first group is the largest. */
  readonly groups?: number | readonly number[]
  /** How many permits the holders of one group may have at a time. */
  readonly groupLimit?: number
}

export function lockOf({ lock = 'mutex' }: Sharing): LockKind {
  return lock
}

/** Returns whether this waiter of a process asks for the read lock. */
export function reads({ lock, writerEvery }: Sharing, waiter: number): boolean {
  return lock === 'readWrite' && !(writerEvery !== undefined && waiter % writerEvery === 0)
}

/** Returns the group of a waiter, from 0. In the order of asking, the processes take turns, and so do equal groups. */
export function groupOf({ groups = 1 }: Sharing, processes: number, process: number, waiter: number): number {
  const place = waiter * processes + process
  if (typeof groups === 'number') return place % groups
  let end = 0
  return groups.findIndex(size => {
    end += size
    return place < end
  })
}

/**
 * The client of a rival's library. A worker opens one client for all its waiters, or one for each waiter if
 * `Setting.apart` is set.
 */
export interface RivalClient {
  /**
   * Returns the waiter with the number `index` in this process. All waiters of a `RivalClient` share one connection if
   * the rival's library is designed for this. If `reading` is true, the waiter asks for the read lock of a read-write
   * lock.
   */
  contender(index: number, reading: boolean): Contender | Promise<Contender>
  /**
   * Returns what the client has counted since it was opened. Absent if the lock is on one server, or if the rival
   * counts nothing.
   */
  tally?(): Tally
  close(): Promise<void>
}

export interface Contender {
  /** Resolves when the lock of `key` is held. The result is a function that releases the lock. */
  acquire(key: string): Promise<Release>
  /**
   * Only if any process may run the waiter's job: has a job run that takes `hold` ms. Resolves when the job has ended,
   * with the moments at which it began and ended.
   */
  run?(key: string, hold: number): Promise<{ readonly acquired: number; readonly released: number }>
}

export type Release = () => Promise<unknown>

/** The adapter of a rival. The adapter uses the rival's default settings, as the rival's documentation recommends. */
export interface Rival {
  /** The name on the command line and in the reports, for example 'redis-semaphore'. */
  readonly name: string
  readonly kind: 'baton' | 'rival' | 'floor'
  /** Whether the rival promises first come, first served. */
  readonly fair: boolean
  /** The kinds of locks that the rival has. Default: only a mutex. */
  readonly locks?: readonly LockKind[]
  /** The npm package of the rival, whose version the report shows. Undefined if the rival has no package. */
  readonly package: string | undefined
  /** How the benchmark uses the rival. Reports show this text. */
  readonly note: string
  /** The program that runs the rival: 'node' is benchmarks/worker, and 'java' is benchmarks/redisson. */
  readonly runtime: 'node' | 'java'
  /** The names of scenarios to skip, each with the reason that reports show. */
  readonly skips?: Readonly<Partial<Record<string, string>>>
  /** Whether fair and unfair callers may share one key. In a mixed scenario, `asksFair` selects the fair callers. */
  readonly mixes?: boolean
  /**
   * How long a server must have been up before the rival accepts its vote in a quorum, in ms. The run waits until all
   * servers have been up for this long.
   */
  readonly countsServersAfter?: number
  /** Why the rival cannot run here (not installed, no Java); undefined if the rival can run. */
  missing(): Promise<string | undefined>
  /** Imports the rival's library and connects to the servers. Called only in workers. */
  open?(setting: Setting): Promise<RivalClient>
}

/** Returns whether a rival has the kind of lock that a scenario needs. */
export function takesPart({ locks = ['mutex'] }: Pick<Rival, 'locks'>, scenario: Scenario): boolean {
  return locks.includes(lockOf(scenario))
}

/**
 * The first message to a worker. Here `permits` includes the permits that an additional process holds during the trial
 * (`Scenario.inUse`).
 */
export interface Setting extends Sharing {
  readonly rival: string
  readonly url: string
  /** The URLs of all servers of a quorum. `url` is the first of these URLs. */
  readonly servers?: readonly string[]
  /** Whether each waiter has its own client. */
  readonly apart?: boolean
  /** The prefix of all keys of this trial. It is unique, so trials do not interfere. */
  readonly namespace: string
  readonly process: number
  readonly processes: number
  /** Number of waiters in this process. */
  readonly waiters: number
  /** Lease of the locks in ms; undefined for the rival's default. */
  readonly lease: number | undefined
}

/**
 * What the runner orders a worker to do. The worker answers each order with one `Report`. The report has the same `op`
 * as the order, or the `op` 'failed'.
 */
export type Order =
  | { readonly op: 'open'; readonly setting: Setting }
  /**
   * Runs a loop. Until `endAt`, each waiter asks for the lock, holds it for `hold` ms, releases it, and asks again. The
   * first waiter asks at `startAt` (monotonic ms), and each next waiter asks `gap` ms later. If `gap` is 0, the waiters
   * ask one right after another. If a waiter gets the lock before `openAt`, it holds the lock until `openAt`. Waiter i
   * uses key i % keys. Calls that have not returned at `endAt` may still return until `giveUpAt`.
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
   * Adds `count` waiters (default: 1), which take the lock of key 0 and keep it until the order 'drop'. If the lock is
   * a read-write lock, they take the write lock.
   */
  | { readonly op: 'hold'; readonly count?: number }
  /** Ends the order 'hold': the waiters that it added release the lock. */
  | { readonly op: 'drop' }
  /**
   * Makes each waiter ask once for the lock of key 0, hold it for `hold` ms, and release it. The first waiter asks at
   * `startAt`, and each next waiter asks `gap` ms later. If `gap` is 0, the waiters ask one right after another. The
   * worker sends its report as soon as all waiters have asked, and does not wait for their turns.
   */
  | { readonly op: 'queue'; readonly startAt: number; readonly gap: number; readonly hold: number }
  /** Waits until all queued waiters have had their turns, or until `giveUpAt`. Then writes the samples to `file`. */
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
  /** The number of waiters that still waited for the lock or for their release at `giveUpAt`. */
  readonly unfinished: number
  /** How many calls of `acquire` and `release` rejected. `error`: the text of the first rejection. */
  readonly errors: number
  readonly error?: string
  /** The sum of `RivalClient.tally` over all clients of the process. */
  readonly tally?: Tally
  /** The processor time (user and system) that the process used during the order, in µs. */
  readonly cpu: number
}

/**
 * The five numbers of a sample (one acquisition), in their order in the file. Times are in monotonic ms. `released` is
 * the time at which release was called, and `done` is the time at which it returned.
 */
export const sampleFields = ['waiter', 'asked', 'acquired', 'released', 'done'] as const

/** What all trials of a scenario have in common. `permits` is the number of permits that the waiters share. */
export interface Scenario extends Sharing {
  /** The name on the command line, for example '2x8'. */
  readonly name: string
  readonly title: string
  readonly kind: 'loop' | 'burst' | 'drain' | 'admission' | 'crash-holder' | 'crash-waiters' | 'idle'
  readonly processes: number
  /** The number of waiters per process. */
  readonly waiters: number
  readonly keys: number
  /** How long each waiter holds the lock, in ms. */
  readonly hold: number
  /**
   * Whether each process has both fair and unfair waiters, half of each. Only rivals with `mixes` run such a scenario.
   */
  readonly mixed?: boolean
  /**
   * The number of permits that an additional process holds during the trial. The semaphore has these permits in
   * addition to `permits`.
   */
  readonly inUse?: number
  /** Number of servers of the quorum. */
  readonly servers?: number
  /** Number of servers that the trial freezes during the warm-up. They stay frozen until the trial ends. */
  readonly frozen?: number
  /** Whether each waiter has its own client, as if it were in its own process. */
  readonly apart?: boolean
}

/** Returns whether a waiter is fair in a mixed scenario. Waiters with even numbers are fair. */
export function asksFair(waiter: number): boolean {
  return waiter % 2 === 0
}

/**
 * The measures of one trial, as benchmarks/README.md defines them. A measure is absent if it does not apply or could not
 * be taken.
 */
export type Figures = Partial<Record<Measure, number>>

export const measures = [
  'acquisitions', // the number of acquisitions in the trial
  'throughput', // acquisitions per second
  'handoffP50', // µs: the median time of a hand-off
  'handoffP90',
  'handoffP99',
  'handoffMax',
  'crossP50', // µs: the median time of a hand-off to another process
  'crossShare', // share of hand-offs that went to another process, 0..1
  'backToReleaser', // share of acquisitions by the waiter that had just released the lock, 0..1
  'cycleP50', // µs: the median time from the request for a lock until the release of the lock has returned
  'cycleP99',
  'waitP50', // ms: the median wait
  'waitMax', // ms: the longest wait
  'waitMaxFair', // ms: the longest wait of a fair waiter in a mixed scenario
  'waitMaxUnfair', // ms: the longest wait of an unfair waiter in a mixed scenario
  'waitMaxReaders', // ms: the longest wait of a reader
  'waitMaxWriters', // ms: the longest wait of a writer
  'waitMaxSmall', // ms: the longest wait in a group other than the largest, from the release of the first holders on
  'mostAtOnce', // the largest number of holders at a time
  'mostOfGroup', // the largest number of holders of one group at a time
  'attempts', // how many times a client asked all servers of a quorum for the lock, per acquisition
  'secondRounds', // share of a quorum's grants that took a second round trip after a majority had voted, 0..1
  'commands', // Redis commands that clients sent, per acquisition
  'bytes', // bytes that the server received and sent, per acquisition
  'serverCpu', // CPU of the server's process, in µs per acquisition
  'commandTime', // µs of server time per command, from INFO commandstats
  'clientCpu', // CPU of all workers, in µs per acquisition
  'releaseCost', // µs of server time per release, from INFO commandstats
  'releaseP50', // µs: the median time of the script that releases, from SLOWLOG
  'jain', // Jain's fairness index of the acquisitions per waiter, 0..1
  'overtaken', // the largest number of later requests that overtook one request
  'starved', // waiters without any acquisition
  'overlaps', // acquisitions that violated mutual exclusion; must be 0
  'unfinished', // calls that did not return
  'errors', // calls that rejected
  'admission', // ms from a writer's release until the last waiting reader holds the lock
  'messages', // messages that clients received because of the writer's release
  'drain', // ms from the first release to the last acquisition
  'inversions', // share of pairs of requests in which the later request was granted first, 0..1
  'nextGrant', // ms to the next grant: after the holder has crashed, or, if waiters crashed, after the holder's release
  'ordinaryHandoff', // ms from a release to the next grant, without a crash
  'commandsPerSecond', // Redis commands per second while all waiters are parked
  'residentPerWaiter', // memory of the client process, in bytes per waiter
  'heapPerWaiter', // heap of the client process, in bytes per waiter
  'redisPerWaiter', // memory of the server, in bytes per waiter
] as const
export type Measure = (typeof measures)[number]

/** The outcome of one rival in one scenario in one round. */
export interface Trial {
  readonly rival: string
  readonly scenario: string
  readonly round: number
  /** 'skipped': the rival cannot run this scenario, or an earlier round failed or had calls that never returned. */
  readonly outcome: 'measured' | 'failed' | 'skipped'
  readonly reason?: string
  readonly figures: Figures
  /** The distribution of the hand-off times in µs. */
  readonly handoffs?: Distribution
  /** Jain's fairness index of the acquisitions per waiter in each tenth of the trial. It is plotted over time. */
  readonly fairness?: readonly number[]
  /** The share of all cores that other programs used, 0..1. Absent if the system does not report it. */
  readonly busy?: number
}

/** A histogram with logarithmic buckets. `counts[i]` is the number of values in [low × step^i, low × step^(i+1)). */
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
  /** The project's goals for which this run has figures. Absent in results of older versions of the benchmark. */
  readonly goals?: readonly Attainment[]
  /** Notes that the reports show, for example about a busy machine or a missing rival. */
  readonly notes: readonly string[]
}

/** A goal, and whether a run reached it. */
export interface Attainment {
  readonly what: string
  /** The limit as text, for instance '≤ 1.15'. */
  readonly goal: string
  /** What the run measured, as text, for instance '1.29 (1.10–1.40)': the median of the rounds and their range. */
  readonly measured: string
  /** 'not steady': this run reached the goal, but another run on the same machine missed it. */
  readonly verdict: 'reached' | 'not steady' | 'missed'
}

/**
 * Takes the measures of a trial from the merged samples of all its workers. benchmarks/README.md has the definitions.
 *
 * Samples are in the order of `acquired`, so the holders of one key follow each other in that order. For a mutex:
 *
 *      asked      acquired   released
 *   A    ├───────────┼══════════┤                      hand-off A → B: from A's `released` to B's `acquired`. It
 *   B          ├─────────────────·──┼═══════┤          counts only if B asked before A's release.
 *   C             ├──────────┼··                       overlap: C acquired before A released
 *
 * `released` is the moment at which release was *called*, so the hand-off includes the time that the release takes. If
 * several callers hold at a time, admissions.ts decides whose release admitted a holder.
 *
 * A request is overtaken by each later request that is granted before it. So the number of requests that overtook a
 * sample is the number of samples before it with a greater `asked`. A trial has up to a million samples, so a Fenwick
 * tree over the ranks of `asked` counts them, in O(log n) for each sample.
 */
import { asksFair, type Distribution, type Figures, groupOf, type Scenario } from '../contract.ts'
import { admissions, overlap } from './admissions.ts'
import type { Samples } from './samples.ts'

export interface Window {
  readonly from: number
  readonly to: number
}

/** The durations of hand-offs in µs, in the order of the acquisitions. */
export interface Handoffs {
  readonly all: Float64Array
  /** Only the hand-offs to another process. */
  readonly cross: Float64Array
  /**
   * Among the acquisitions that follow a release by some waiter: the share in which the waiter that acquires the lock is
   * the one that has just released it.
   */
  readonly backToReleaser: number
  /** The number of acquisitions that violated mutual exclusion, inside or outside the measured window. */
  readonly overlaps: number
}

export function handoffs(samples: Samples, window: Window): Handoffs {
  const { length, waiter, process, asked, acquired, released } = samples
  const by = admissions(samples)
  const all = new Float64Array(length)
  const cross = new Float64Array(length)
  let gaps = 0
  let crossings = 0
  let pairs = 0
  let back = 0
  let overlaps = 0
  for (let i = 0; i < length; i++) {
    const before = by[i]!
    if (before === overlap) overlaps += 1
    if (before < 0 || !inside(acquired[i]!, window)) continue
    pairs += 1
    if (waiter[before] === waiter[i]) back += 1
    if (asked[i]! > released[before]!) continue
    const gap = (acquired[i]! - released[before]!) * 1_000
    all[gaps++] = gap
    if (process[before] !== process[i]) cross[crossings++] = gap
  }
  const backToReleaser = pairs === 0 ? Number.NaN : back / pairs
  return { all: all.subarray(0, gaps), cross: cross.subarray(0, crossings), backToReleaser, overlaps }
}

/**
 * Counts how often requests were overtaken. `most` is the largest number of requests that overtook a single request.
 * `share` is the share of pairs that were granted in reverse order, among all pairs of requests for the same key.
 */
export function overtaking(samples: Samples): { readonly most: number; readonly share: number } {
  let most = 0
  let inverted = 0
  let pairs = 0
  for (const members of byKey(samples)) {
    const asked = members.map(i => samples.asked[i]!)
    const { largest, sum } = greaterBefore(asked)
    most = Math.max(most, largest)
    inverted += sum
    pairs += (members.length * (members.length - 1)) / 2
  }
  return { most, share: pairs === 0 ? 0 : inverted / pairs }
}

/** Counts, for each value, the greater values before it. Returns the largest of these counts and their sum. */
function greaterBefore(values: readonly number[]): { largest: number; sum: number } {
  const sorted = Float64Array.from(values).sort()
  const tree = new Int32Array(values.length + 1)
  let largest = 0
  let sum = 0
  for (const [seen, value] of values.entries()) {
    const rank = countUpTo(sorted, value)
    let notGreater = 0
    for (let node = rank; node > 0; node -= node & -node) notGreater += tree[node]!
    largest = Math.max(largest, seen - notGreater)
    sum += seen - notGreater
    for (let node = rank; node < tree.length; node += node & -node) tree[node]! += 1
  }
  return { largest, sum }
}

/** Returns how many of the sorted numbers are at most `value`. */
function countUpTo(sorted: Float64Array, value: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! <= value) low = middle + 1
    else high = middle
  }
  return low
}

function byKey({ length, key }: Samples): Iterable<number[]> {
  const members = new Map<number, number[]>()
  for (let i = 0; i < length; i++) {
    const list = members.get(key[i]!)
    if (list) list.push(i)
    else members.set(key[i]!, [i])
  }
  return members.values()
}

/** Returns each waiter's number of acquisitions in the measured window. */
export function shares({ length, waiter, acquired }: Samples, waiters: number, window: Window): Int32Array {
  const counts = new Int32Array(waiters)
  for (let i = 0; i < length; i++) if (inside(acquired[i]!, window)) counts[waiter[i]!]! += 1
  return counts
}

/** Computes Jain's index: 1 if all of the n counts are equal, 1/n if all counts except one are 0. */
export function jain(counts: Int32Array): number {
  let sum = 0
  let squares = 0
  for (const count of counts) {
    sum += count
    squares += count * count
  }
  return squares === 0 ? Number.NaN : (sum * sum) / (counts.length * squares)
}

/** Computes Jain's index in each tenth of the measured window. */
export function fairnessOverTime(samples: Samples, waiters: number, { from, to }: Window): number[] {
  const tenth = (to - from) / 10
  return Array.from({ length: 10 }, (_, i) => {
    const index = jain(shares(samples, waiters, { from: from + i * tenth, to: from + (i + 1) * tenth }))
    return Number.isNaN(index) ? 0 : index
  })
}

/**
 * Returns `later` minus `earlier` for each sample that was acquired in the measured window. Leaves out results that are
 * NaN.
 */
export function differences(samples: Samples, later: Float64Array, earlier: Float64Array, window: Window) {
  const values = new Float64Array(samples.length)
  let count = 0
  for (let i = 0; i < samples.length; i++) {
    const difference = later[i]! - earlier[i]!
    if (inside(samples.acquired[i]!, window) && !Number.isNaN(difference)) values[count++] = difference
  }
  return values.subarray(0, count)
}

/**
 * Returns the durations of all cycles that overlap the measured window, in ms. A cycle lasts from the request until the
 * release has returned. Counting only cycles that begin or end in the window would miss a cycle that is longer than the
 * window.
 */
function cyclesIn({ length, asked, done }: Samples, { from, to }: Window): Float64Array {
  const values = new Float64Array(length)
  let count = 0
  for (let i = 0; i < length; i++) if (asked[i]! <= to && done[i]! >= from) values[count++] = done[i]! - asked[i]!
  return values.subarray(0, count)
}

/** Returns the quantile by nearest rank; NaN if there are no values. Sorts `values` in place. */
export function quantile(values: Float64Array, share: number): number {
  values.sort()
  return values[Math.min(values.length - 1, Math.floor(share * values.length))] ?? Number.NaN
}

const low = 1
/**
 * The upper limit of a bucket divided by its lower limit: about 1.12, because 20 buckets cover a factor of ten. Smaller
 * buckets would show nothing more, because the times of two rounds usually differ by more than 12 %.
 */
const step = 10 ** (1 / 20)
const buckets = 160

export function distribution(values: Float64Array): Distribution {
  const counts = new Array<number>(buckets).fill(0)
  for (const value of values) {
    const bucket = Math.floor(Math.log(Math.max(value, low) / low) / Math.log(step))
    counts[Math.min(bucket, buckets - 1)]! += 1
  }
  return { low, step, counts: counts.slice(0, counts.findLastIndex(count => count > 0) + 1) }
}

/**
 * Returns, for each sample, the moment from which its wait counts: `asked`, but never before `openAt`. Until `openAt`,
 * the first waiter of a loop keeps the lock while the others queue up.
 */
function countedFrom({ asked }: Samples, openAt: number): Float64Array {
  return asked.map(moment => Math.max(moment, openAt))
}

/** Computes the figures that can be taken from the samples of any kind of trial. */
export function ordinary(samples: Samples, waiters: number, window: Window, openAt = 0): Figures {
  const found = handoffs(samples, window)
  const counts = shares(samples, waiters, window)
  const waits = differences(samples, samples.acquired, samples.asked, window)
  const everything = { from: 0, to: Number.POSITIVE_INFINITY }
  const everyWait = differences(samples, samples.acquired, countedFrom(samples, openAt), everything)
  const acquisitions = counts.reduce((sum, count) => sum + count, 0)
  return withoutGaps({
    acquisitions,
    throughput: acquisitions / ((window.to - window.from) / 1_000),
    handoffP50: quantile(found.all, 0.5),
    handoffP90: quantile(found.all, 0.9),
    handoffP99: quantile(found.all, 0.99),
    handoffMax: quantile(found.all, 1),
    crossP50: quantile(found.cross, 0.5),
    crossShare: found.cross.length / found.all.length,
    backToReleaser: found.backToReleaser,
    cycleP50: quantile(differences(samples, samples.done, samples.asked, window), 0.5) * 1_000,
    cycleP99: quantile(cyclesIn(samples, window), 0.99) * 1_000,
    waitP50: quantile(waits, 0.5),
    waitMax: quantile(everyWait, 1),
    overtaken: overtaking(samples).most,
    overlaps: found.overlaps,
  })
}

/**
 * Returns the longest wait of the fair waiters and of the unfair waiters, over the whole trial. `waiters` is the number
 * of waiters per process.
 */
export function longestOfMixed(samples: Samples, waiters: number, openAt: number): Figures {
  const [waitMaxFair, waitMaxUnfair] = longestWaits(samples, openAt, i => asksFair(samples.waiter[i]! % waiters))
  return { waitMaxFair, waitMaxUnfair }
}

/** Returns the longest wait of readers and of writers, over the whole trial. */
export function longestOfPhases(samples: Samples, openAt: number): Figures {
  const [waitMaxReaders, waitMaxWriters] = longestWaits(samples, openAt, i => samples.reading[i] === 1)
  return { waitMaxReaders, waitMaxWriters }
}

/** Returns the longest wait in the small groups, and how many holders there were at a time. */
export function ofGroups(samples: Samples, scenario: Scenario, openAt: number): Figures {
  const { processes, waiters } = scenario
  const groups = [...samples.waiter].map((waiter, i) =>
    groupOf(scenario, processes, samples.process[i]!, waiter % waiters),
  )
  const [waitMaxSmall] = longestWaits(samples, openAt, i => groups[i]! > 0)
  const each = [...new Set(groups)].map(group => mostAtOnce(samples, i => groups[i] === group))
  return { waitMaxSmall, mostAtOnce: mostAtOnce(samples, () => true), mostOfGroup: Math.max(...each) }
}

/** Returns the largest number of holders at a time, of the samples for which `counts` is true. */
function mostAtOnce({ length, acquired, released }: Samples, counts: (sample: number) => boolean): number {
  const changes: [moment: number, holders: number][] = []
  for (let i = 0; i < length; i++) if (counts(i)) changes.push([acquired[i]!, 1], [released[i]!, -1])
  changes.sort(([a, began], [b, ended]) => a - b || began - ended)
  let holders = 0
  return Math.max(...changes.map(([, more]) => (holders += more)))
}

/** Returns two longest waits: that of the samples for which `first` is true, and that of all other samples. */
function longestWaits(samples: Samples, openAt: number, first: (sample: number) => boolean): [number, number] {
  const from = countedFrom(samples, openAt)
  const longest: [number, number] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (let i = 0; i < samples.length; i++) {
    const half = first(i) ? 0 : 1
    longest[half] = Math.max(longest[half], samples.acquired[i]! - from[i]!)
  }
  return longest
}

/** Removes measures that could not be taken. */
export function withoutGaps(figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => Number.isFinite(value)))
}

function inside(moment: number, { from, to }: Window): boolean {
  return moment >= from && moment <= to
}

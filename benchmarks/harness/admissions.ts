/**
 * Finds for each holder the release that admitted it:
 *
 *  mutex, writer   the latest release by any earlier holder
 *  reader          the latest release by any earlier writer
 *  semaphore       the release of the permit that the holder took. The permit that was released first is taken first
 *
 * Samples are in the order of `acquired`. Here a hold ends when its release is *called*. A correct lock grants again
 * only after that call. So every overlap found here is a real fault of the lock.
 */
import type { Samples } from './samples.ts'

/** A value in the result of `admissions`: the holder needed no release, because no earlier holder excluded it. */
export const nobody = -1
/** A value in the result of `admissions`: the holder acquired the lock while an earlier holder still excluded it. */
export const overlap = -2

/** Returns for each acquisition the index of the sample whose release made it possible, or `nobody`, or `overlap`. */
export function admissions(samples: Samples): Int32Array {
  const of = new Int32Array(samples.length)
  const rules = new Map<number, (sample: number) => number>()
  for (let i = 0; i < samples.length; i++) {
    const key = samples.key[i]!
    const rule = rules.get(key) ?? (samples.permits === undefined ? phases(samples) : permits(samples))
    rules.set(key, rule)
    of[i] = rule(i)
  }
  return of
}

/**
 * Returns a function that finds the release that admitted a holder of a read-write lock. Holders of a mutex count as
 * writers.
 */
function phases({ reading, acquired, released }: Samples): (sample: number) => number {
  let lastEnd = nobody
  let lastWriterEnd = nobody
  const later = (a: number, b: number) => (a === nobody || released[b]! > released[a]! ? b : a)
  return i => {
    const by = reading[i] ? lastWriterEnd : lastEnd
    lastEnd = later(lastEnd, i)
    if (!reading[i]) lastWriterEnd = later(lastWriterEnd, i)
    return by !== nobody && acquired[i]! < released[by]! ? overlap : by
  }
}

function permits({ permits = 1, acquired, released }: Samples): (sample: number) => number {
  /** The current holders, sorted by `released`. */
  const held: number[] = []
  /**
   * One entry for each free permit, in the order of the releases: the sample that released the permit, or `nobody` if
   * the permit was never taken.
   */
  const free = new Array<number>(permits).fill(nobody)
  return i => {
    while (held.length > 0 && released[held[0]!]! <= acquired[i]!) free.push(held.shift()!)
    // A faulty semaphore may grant more permits than it has. Then more permits are released than exist, and the surplus
    // is dropped, beginning with the earliest releases.
    free.splice(0, free.length + held.length - permits)
    const by = free.shift() ?? overlap
    const at = held.findIndex(other => released[other]! > released[i]!)
    held.splice(at < 0 ? held.length : at, 0, i)
    return by
  }
}

/**
 * Which release admitted which holder. The release that made room for a holder is, by the kind of lock:
 *
 *  mutex, writer   the last release of all holders before it
 *  reader          the last release of the writers before it
 *  semaphore       the release of the permit that it took; permits are taken in the order in which they came back
 *
 * Samples are in the order of `acquired`, and a hold counts until release was called. A correct lock grants again only
 * after that, so a holder without room is a real fault and never an artefact.
 */
import type { Samples } from './samples.ts'

/** Instead of a sample: there was room from the start. */
export const nobody = -1
/** Instead of a sample: there was no room. */
export const overlap = -2

/** For each sample, the sample whose release admitted it, `nobody` or `overlap`. */
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

/** Several readers or one writer. A mutex counts as always writing. */
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
  /** The current holders, in the order of their ends. */
  const held: number[] = []
  /** The samples that gave back the free permits, in that order. */
  const free = new Array<number>(permits).fill(nobody)
  return i => {
    while (held.length > 0 && released[held[0]!]! <= acquired[i]!) free.push(held.shift()!)
    // If a semaphore granted too many, it gets back more than it has. Then the last ones count.
    free.splice(0, free.length + held.length - permits)
    const by = free.shift() ?? overlap
    const at = held.findIndex(other => released[other]! > released[i]!)
    held.splice(at < 0 ? held.length : at, 0, i)
    return by
  }
}

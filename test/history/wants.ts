/**
 * What a call wants of its lock, as arithmetic that is the same for every kind: so much, out of so much.
 *
 *  a mutex         1 of 1
 *  a semaphore     `permits` of the number that this caller gave
 *  a reader        1 of all but one, so that it fits beside readers, and not beside a writer
 *  a writer        all of all
 */

/** Absent in a request for a mutex. */
export type Wants = 'read' | 'write' | readonly [permits: number, of: number]

export interface Weight {
  readonly permits: number
  readonly of: number
}

const ALL = 1_000_000_000
const whole: Weight = { permits: 1, of: 1 }
const reader: Weight = { permits: 1, of: ALL - 1 }
const writer: Weight = { permits: ALL, of: ALL }

export function weightOf(wants: Wants | undefined): Weight {
  if (wants === undefined) return whole
  if (wants === 'read') return reader
  if (wants === 'write') return writer
  const [permits, of] = wants
  return { permits, of }
}

/**
 * For a semaphore each call takes its own permits. For any other lock, an owner that holds already has all that it asks
 * for.
 */
export function reenters(wants: Wants | undefined): boolean {
  return wants === undefined || wants === 'read' || wants === 'write'
}

/**
 * Whether two holds of a lock cannot have overlapped unless one owner had both. The second was judged by its own
 * number.
 */
export function exclude(first: Wants | undefined, second: Wants | undefined): boolean {
  const { permits, of } = weightOf(second)
  return weightOf(first).permits + permits > of
}

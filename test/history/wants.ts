/**
 * What a call asks of its lock. For every kind of lock, a call asks for some units of a total:
 *
 *   a mutex         1 of 1
 *   a semaphore     `permits` of the total that this caller gave
 *   a reader        1 of N - 1, so that it fits beside readers, but not beside a writer
 *   a writer        N of N, where N is a very large number
 */

/** What a call asks for. Absent for a mutex. */
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
 * Whether a further call of an owner that already holds the lock is a re-entry. In a semaphore it is not, because each
 * call takes its own permits.
 */
export function reenters(wants: Wants | undefined): boolean {
  return wants === undefined || wants === 'read' || wants === 'write'
}

/** Whether two holds of different owners cannot overlap. The total that the second hold's caller gave decides. */
export function exclude(first: Wants | undefined, second: Wants | undefined): boolean {
  const { permits, of } = weightOf(second)
  return weightOf(first).permits + permits > of
}

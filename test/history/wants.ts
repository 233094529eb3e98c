/**
 * What a call asks of its lock. For every kind of lock, a call asks for some units of a total:
 *
 *   a mutex         1 of 1
 *   a semaphore     `permits` of `of`, the total that the caller passed to `semaphore()`; perhaps for a `group`, which may
 *                   take at most `limit`
 *   a reader        1 of N - 1, which fits beside other readers, but not beside a writer
 *   a writer        N of N, where N is a very large number
 */

/** Undefined stands for a mutex. */
export type Wants =
  | 'read'
  | 'write'
  | readonly [permits: number, of: number, group?: string | undefined, limit?: number | undefined]

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

/** Returns the group of a call; '' if it has none. */
export function groupOf(wants: Wants | undefined): string {
  return typeof wants === 'object' ? (wants[2] ?? '') : ''
}

/** Returns how many permits the group of a call may take, by this call. */
export function limitOf(wants: Wants | undefined): number {
  return typeof wants === 'object' ? (wants[3] ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
}

/**
 * Whether a further call of an owner that already holds the lock is a re-entry. In a semaphore it is not, because each
 * call takes its own permits.
 */
export function reenters(wants: Wants | undefined): boolean {
  return wants === undefined || wants === 'read' || wants === 'write'
}

/**
 * Whether two holds of different owners exclude each other. If two callers of a semaphore passed different totals, the
 * total of the second hold decides.
 */
export function exclude(first: Wants | undefined, second: Wants | undefined): boolean {
  const { permits, of } = weightOf(second)
  return weightOf(first).permits + permits > of
}

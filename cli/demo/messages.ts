/** The messages between the coordinator and a worker over the IPC channel. All moments are values of `now()`. */
import type { Answer } from './shop.ts'

export type ToWorker =
  /**
   * The first message. It carries the URL, which must not appear among the process arguments because it may contain a
   * password.
   */
  | { kind: 'open'; url: string; prefix: string; label: string; locked: boolean }
  | { kind: 'order'; id: string; customer: string; coupon: string }
  /**
   * Tells the worker to stop inside the next critical section in which it sells a coupon. It stops after the payment
   * and before the first write, and answers with `paused`.
   */
  | { kind: 'pause' }
  /** Tells the worker to continue its paused critical section. */
  | { kind: 'go' }
  /**
   * Reports the process id of a frozen worker, or null once that worker has continued. If the coordinator dies while
   * the worker is frozen, the receiver of this message wakes the worker.
   */
  | { kind: 'frozen'; pid: number | null }
  | { kind: 'close' }

export type FromWorker = { kind: 'ready' } | Entered | Paused | Left | Lost | { kind: 'failed'; reason: string }

/**
 * A critical section has begun. The worker reports it at once, so that the report survives a kill inside the section.
 */
export interface Entered {
  kind: 'entered'
  section: string
  order: string
  /** The number of this request, counted per process. */
  request: number
  requestedAt: number
  /** The time of the first statement under the lock. */
  at: number
  /** The hold's id and fencing token; null without the lock. */
  hold: string | null
  token: number | null
  /** The earliest time at which the lease may end, as computed by the worker; null without the lock. */
  leaseEnds: number | null
  /**
   * While a critical section runs, its id is in the shop. `found` is the id of another critical section that was still
   * in the shop when this one began. `found` should be null, because critical sections must not overlap.
   */
  found: string | null
}

/** A critical section has stopped, because the worker received `pause`. */
export interface Paused {
  kind: 'paused'
  section: string
  order: string
  leaseEnds: number | null
  /** The stock that the worker has read in this critical section. The worker has not sold a coupon in it yet. */
  stockRead: number
}

/** A critical section has ended, and its order is answered. */
export interface Left {
  kind: 'left'
  section: string
  order: string
  /** The time of the last statement under the lock, just before the release. */
  at: number
  answer: Answer
  /** The stock after this critical section. */
  stock: number
}

/**
 * The lock was lost during a critical section, or before the section began (`section` is null). The worker requests the
 * lock again for the same order.
 */
export interface Lost {
  kind: 'lost'
  section: string | null
  order: string
  /** The write that the shop refused: its token, and the newer token that the shop had seen. */
  refused: { token: number; seen: number } | null
  /** The time of this section's last write that the shop accepted; null if there was none. */
  wroteAt: number | null
}

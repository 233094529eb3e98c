/** What the coordinator and a worker say to each other over the IPC channel. Moments are those of `now()`. */
import type { Answer } from './shop.ts'

export type ToWorker =
  /** First message. It carries the URL, which may have a password and so must not stand in the arguments. */
  | { kind: 'open'; url: string; prefix: string; label: string; locked: boolean }
  | { kind: 'order'; id: string; customer: string; coupon: string }
  /** Stop in the next section that is about to sell, after the payment and before the first write; say `paused`. */
  | { kind: 'pause' }
  /** Go on with the paused section. */
  | { kind: 'go' }
  /** Another worker is frozen, or (null) is not any more; for the case that the coordinator is killed meanwhile. */
  | { kind: 'frozen'; pid: number | null }
  | { kind: 'close' }

export type FromWorker = { kind: 'ready' } | Entered | Paused | Left | Lost | { kind: 'failed'; reason: string }

/** A critical section has begun. It is said at once, so that it is known of a worker that is killed in it. */
export interface Entered {
  kind: 'entered'
  section: string
  order: string
  /** The how many-th request of this process. */
  request: number
  requestedAt: number
  /** Taken in the first statement under the lock. */
  at: number
  /** The hold's id and fencing token; null without the lock. */
  hold: string | null
  token: number | null
  /** The moment until which the lease surely lasts, as far as the worker knows now. */
  leaseEnds: number | null
  /** Who was inside according to the mark in the shop: must be nobody. */
  found: string | null
}

/** The section stands still where it was told to. */
export interface Paused {
  kind: 'paused'
  section: string
  order: string
  leaseEnds: number | null
  /** The stock that it read, and of which it is going to sell one. */
  stockRead: number
}

/** A critical section has ended, and so has the order. */
export interface Left {
  kind: 'left'
  section: string
  order: string
  /** Taken in the last statement under the lock, immediately before the release. */
  at: number
  answer: Answer
  /** The stock as this section left it. */
  stock: number
}

/** The lock was lost during a section, or while waiting for one; the worker will ask again for the same order. */
export interface Lost {
  kind: 'lost'
  section: string | null
  order: string
  /** The write that the shop refused, with the token it came with and the newer one that the shop had seen. */
  refused: { token: number; seen: number } | null
  /** The moment of the last write that the shop accepted, if it did accept any. */
  wroteAt: number | null
}

/** What a key asks of its client. The decisions are made in key-state.ts; io.ts and holds.ts carry them out. */
import type { Channel, Granted, Refused, Tended } from '../kind.ts'
import type { List } from '../list.ts'
import type { Hold } from './hold.ts'
import type { Run } from './run.ts'
import type { Waiter } from './waiter.ts'

/** What an attempt is for. */
export type Attempt =
  /** A waiter asks for itself only. It is neither in its client's line nor in the queue. */
  | 'alone'
  /** The head of the line asks on behalf of all waiters in the line. */
  | 'as-head'
  /** A fair waiter asks, and is queued if it is refused. */
  | 'to-join'
  /** The waiter's owner already holds the lock, in this process or in another. The waiter asks to re-enter. */
  | 'to-re-enter'

/**
 * A client's subscriptions for the waiters of a key: a promise while the subscription is being made, `true` once it is
 * active.
 */
export type Heard = { [C in Channel]?: Promise<void> | true | undefined }

/**
 * A time in which Redis does not answer. `since`: when the outage, or the first unanswered attempt, began, in ms of a
 * clock that counts only the time in which this process runs. `error`: the latest error.
 */
export interface Silence {
  readonly since: number
  error: Error
}

/** What io.ts sees of the unfair waiters of a key (line.ts), and the events that it reports to them. */
export interface Heeded {
  readonly key: string
  heard: Heard | undefined
  silence: Silence | undefined
  readonly line: List<Waiter>
  readonly queue: List<Waiter>
  listened(now: number): void
  failed(now: number): void
  end(waiter: Waiter, error: Error | undefined, now: number): void
}

/** What io.ts sees of a key, and the answers that it reports (key-state.ts). */
export interface Key extends Heeded {
  answered(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused, now: number): void
  takeBack(waiter: Waiter): void
  turnedAway(waiter: Waiter, error: Error, now: number): void
  tended(waiters: readonly Waiter[], answer: Tended | undefined, now: number): void
}

/** What a key asks of its client. io.ts implements the port. */
export interface Port {
  /** Whether several owners may hold a lock at a time. */
  readonly shared: boolean
  /** Whether the locks are in the memory of this process. */
  readonly local: boolean
  /** The longest time between two looks at a lock with waiters, in ms. */
  readonly pause: number
  /** Whether the client is closed. A closed client accepts no grants. */
  readonly closed: boolean
  /** Whether the lease of a grant to this waiter, which lasts until `deadline`, may be over at `now`. */
  mayBeOver(waiter: Waiter, deadline: number, now: number): boolean
  /** Sends an attempt; then calls `answered`, or `failed` if there is no answer. `reserve`: for hand-offs. */
  ask(key: Key, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean, now: number): void
  /** Sends a heartbeat of these waiters, and calls `tended`. */
  tend(key: Key, waiters: readonly Waiter[]): void
  /** Removes the waiter from the queue in Redis, or releases what it was granted. */
  leave(waiter: Waiter): void
  /**
   * Asks Redis whether this waiter's hold still exists, if it is not the hold of the grant with this token. Takes the
   * grant back if the client no longer has such a hold.
   */
  check(waiter: Waiter, token?: number): void
  /** Subscribes to the unlock channel, and calls `listened` when the subscription is active or takes too long. */
  hear(key: Heeded, head: Waiter, now: number): void
  /** Called when the waiter has parked. */
  parked(waiter: Waiter): void
  /** Called when the waiter's wait is over, before its promise settles. */
  settled(waiter: Waiter): void
  /** Called when the key has no waiters left. */
  rested(key: Heeded): void
  /** Called when the key has neither waiters nor holds, and no call is about to add one. */
  idle(key: Key): void
}

/** What a key asks for when it hands the lock on within the client. holds.ts implements it. */
export interface Succession {
  /** Called when the hold has ended because its lock is being handed on. */
  handedOn(hold: Hold, now: number): void
  /** Called after the lock was handed on within the run. */
  passed(run: Run, now: number): void
  /** Releases the lock in Redis, because its run can no longer hand it on. */
  abandoned(run: Run): void
}

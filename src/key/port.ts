/** What a key asks of its client. key.ts makes the decisions; requests.ts and holds.ts carry them out. */
import type { Hold } from './hold.ts'
import type { Run } from './run.ts'
import type { Attempt, Waiter, WaiterKey } from './waiter.ts'

/** What a key asks of its client. requests.ts implements the port. */
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
  /** Sends an attempt, and reports its answer or its failure. `reserve`: with tokens for hand-offs. */
  ask(waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean, now: number): void
  /** Lets an unfair waiter join the queue, because it has waited for its `fairAfter`. */
  queue(waiter: Waiter, now: number): void
  /** Sends a heartbeat of these waiters, and reports its answer. */
  beat(key: WaiterKey, waiters: readonly Waiter[]): void
  /** Removes the waiter from the queue in Redis, or releases what it was granted. */
  leave(waiter: Waiter): void
  /**
   * Asks Redis whether this waiter's hold still exists, if it is not the hold of the grant with this token. Takes the
   * grant back if the client no longer has such a hold.
   */
  check(waiter: Waiter, token?: number): void
  /** Subscribes to the unlock channel for the head of the line. */
  listen(head: Waiter, now: number): void
  onParked(waiter: Waiter): void
  /** The waiter's wait is over. Its call does not know it yet. */
  onSettled(waiter: Waiter): void
  /** The key has no waiters left. */
  onRest(key: WaiterKey): void
  /** The key has neither waiters nor holds, and no call is about to add one. */
  onIdle(key: WaiterKey): void
}

/** What a key asks for when it hands the lock on within the client. holds.ts implements it. */
export interface HandOffPort {
  /** The hold has ended because its lock is being handed on. */
  onHandedOn(hold: Hold, now: number): void
  /** The run goes on with another holder. */
  onPassed(run: Run, now: number): void
  /** Releases the lock in Redis, because its run can no longer hand it on. */
  runEnded(run: Run): void
}

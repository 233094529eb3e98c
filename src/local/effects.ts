/** A `LocalLock` does no I/O and has no timers. It asks its client for both through these interfaces. */
import type { Granted, Refused, Renewed } from '../kind.ts'
import type { Hold } from './hold.ts'
import type { Line, LineEffects, TurnTaking } from './line.ts'
import type { Queue } from './queue.ts'
import type { Run } from './run.ts'
import type { Waiter } from './waiter.ts'

/** What an attempt is for. */
export type Attempt =
  /** A waiter asks for itself only. It is neither in its client's line of unfair waiters nor in the fair queue. */
  | 'alone'
  /** The head of the line asks on behalf of all waiters in the line. */
  | 'as-head'
  /** A fair waiter asks, and is queued if it is refused. */
  | 'to-join'
  /** The waiter's owner already holds the lock, in this process or in another. The waiter asks to re-enter. */
  | 'to-re-enter'

/** The part of a lock that is used by the code that sends its waiters' requests. The methods receive the answers. */
export interface Asker {
  readonly key: string
  readonly line: Line
  readonly queue: Queue
  /** How many waiters the lock has in this client. */
  readonly waiting: number
  answered(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused): void
  /**
   * Called when Redis has answered whether replicas have the grant. `begun`: when `Sending.confirm` asked. If
   * `deadline` is a number, enough replicas have the grant, and the hold lasts until `deadline`. Otherwise Redis no
   * longer has the grant.
   */
  confirmed(waiter: Waiter, grant: Granted, begun: number, deadline: Renewed): void
  /** Called when too few replicas have the grant. */
  unconfirmed(waiter: Waiter, begun: number, error: Error): void
  /** Called after a grant that replicas did not confirm has been taken back. */
  undone(waiter: Waiter): void
  /**
   * Called when a request may have reached Redis after its waiter had stopped waiting. Redis may then have queued the
   * waiter or granted it the lock. This method undoes that.
   */
  takeBack(waiter: Waiter): void
  /** Reads the lock's state from Redis again. */
  look(): void
  /** Ends the wait without a grant. */
  end(waiter: Waiter, error: Error | undefined): void
}

/** Sends the requests of waiters. wait/requests.ts implements it. */
export interface Sending {
  /** Returns the time, in monotonic ms. */
  now(): number
  /**
   * Sends an attempt, and calls `answered` with the answer. If the attempt fails, the waiter's wait ends; if the waiter
   * was the head of the line, `Line.failed` then lets the next waiter try. `join`: whether the waiter is queued if it
   * is refused. `reserve`: whether a grant reserves tokens for hand-offs within this client.
   */
  ask(lock: Asker, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean): void
  /** Sends a heartbeat of these waiters, and calls `Queue.tended` with the answer. */
  tend(lock: Asker, waiters: readonly Waiter[]): void
  /**
   * Asks replicas whether they have a grant, and calls `confirmed` or `unconfirmed`. Undefined if no replica has to
   * confirm a grant.
   */
  readonly confirm: ((lock: Asker, waiter: Waiter, grant: Granted) => void) | undefined
  /** Takes back a grant that replicas did not confirm, and calls `undone` a moment later. */
  undo(lock: Asker, waiter: Waiter): void
  /** Removes the waiter from the queue in Redis, or releases what it was granted. */
  leave(waiter: Waiter): void
}

/** Reads the state of locks from time to time. wait/heartbeat.ts implements it. */
export interface Looking {
  /** Reads the lock's state now, and plans the next check. */
  look(lock: Asker): void
  /** Plans a check for the end of the holder's lease, in `ttl` ms. If an earlier check is planned, nothing changes. */
  lookWithin(lock: Asker, ttl: number): void
}

/** Receives the events of waiters. wait/acquire.ts implements it. */
export interface WaitEffects extends LineEffects {
  /**
   * Called when a grant arrives for a waiter that has received a grant before. If the hold from the earlier grant has
   * ended, the new grant is taken back. If that hold is live, and its token is smaller than `token`, Redis is asked
   * whether the hold still exists.
   */
  check(waiter: Waiter, token?: number): void
  /** Called when the waiter has parked. Emits the `waiting` event. */
  parked(waiter: Waiter): void
  /** Called when the waiter's wait is over, before its promise settles. */
  settled(waiter: Waiter): void
  /** Called when the lock has no waiters left. */
  empty(lock: Asker): void
}

/** Receives the events of holds. lease/holds.ts implements it. */
export interface HoldEffects {
  /** Called when the hold has ended because its lock is being handed on. */
  handedOn(hold: Hold): void
  /**
   * Called after the lock was handed on. If the new holder still has the lock a moment later, the holder is then
   * recorded in Redis.
   */
  recordLater(run: Run): void
  /** Called when a run of hand-offs is over. Cancels the record that `recordLater` planned. */
  forget(run: Run): void
  /** Releases the lock in Redis, because it can no longer be handed on within this client. */
  abandoned(run: Run): void
}

/** What all locks of one kind in a client share. */
export interface Common {
  /** Whether several owners may hold a lock at a time. */
  readonly shared: boolean
  readonly turns: TurnTaking
  /** For how many ms a waiter keeps trying while replicas do not confirm its grants. */
  readonly patience: number
  /** Whether the client is closed. A closed client accepts no grants. */
  readonly closed: boolean
  readonly requests: Sending
  readonly heartbeat: Looking
  readonly waitEffects: WaitEffects
  readonly holdEffects: HoldEffects
  /** Called when the lock has no waiters and no holds, and no call is about to add one. */
  forget(lock: Asker): void
}

/** The pause between the moment when an unconfirmed grant is taken back and the next attempt, in ms. */
export const UNDO_PAUSE = 50

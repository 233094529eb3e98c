/** What a `LocalLock` asks others to do: everything that is I/O or takes time. */
import type { Granted, Refused, Renewed } from '../kind.ts'
import type { Hold } from './hold.ts'
import type { Line, LineEffects, TurnTaking } from './line.ts'
import type { Queue } from './queue.ts'
import type { Run } from './run.ts'
import type { Waiter } from './waiter.ts'

/** What an attempt is for. */
export type Attempt =
  /** A waiter that is in no line or queue asks, for itself only. */
  | 'alone'
  /** The head of the line asks for all waiters in the line. */
  | 'as-head'
  /** A fair waiter asks, to be queued if refused. */
  | 'to-join'
  /** The waiter's owner holds the lock, here or in another process. The waiter asks to re-enter. */
  | 'to-re-enter'

/** The lock for which something was asked. These methods take the answers. */
export interface Asker {
  readonly key: string
  readonly line: Line
  readonly queue: Queue
  /** How many waiters it has. */
  readonly waiting: number
  answered(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused): void
  /** Replicas were asked at `begun`, and have the grant until `deadline`; not a number: the grant is gone. */
  confirmed(waiter: Waiter, grant: Granted, begun: number, deadline: Renewed): void
  /** Too few replicas have the grant. */
  unconfirmed(waiter: Waiter, begun: number, error: Error): void
  /** A grant that replicas did not confirm has been taken back. */
  undone(waiter: Waiter): void
  /** Takes back what a request of a waiter whose wait is over may have done: queued it, or granted it the lock. */
  takeBack(waiter: Waiter): void
  /** It is time to read the lock's state from Redis again. */
  look(): void
  /** Ends the wait without a grant. */
  end(waiter: Waiter, error: Error | undefined): void
}

/** What is sent for waiters. wait/requests.ts implements it. */
export interface Sending {
  /** Monotonic ms. */
  now(): number
  /**
   * Sends an attempt, and calls `answered` with the answer. If the attempt fails, the waiter's wait ends; if the waiter
   * was the head, `Line.failed` then lets the next waiter try. `join`: a refused waiter is queued. `reserve`: a grant
   * reserves tokens for hand-offs within this client.
   */
  ask(lock: Asker, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean): void
  /** Sends a heartbeat of these waiters, and calls `Queue.tended` with the answer. */
  tend(lock: Asker, waiters: readonly Waiter[]): void
  /** Asks replicas for a grant, and calls `confirmed` or `unconfirmed`. Undefined: grants do not need replicas. */
  readonly confirm: ((lock: Asker, waiter: Waiter, grant: Granted) => void) | undefined
  /** Takes back a grant that replicas did not confirm, and calls `undone` a moment later. */
  undo(lock: Asker, waiter: Waiter): void
  /** Removes the waiter from the queue in Redis, or releases what it was granted. */
  leave(waiter: Waiter): void
}

/** Checks locks from time to time. wait/heartbeat.ts implements it. */
export interface Looking {
  /** Reads the lock's state now, and plans the next check. */
  look(lock: Asker): void
  /** The holder's lease ends in `ttl` ms: plans a check for that time, unless an earlier one is planned. */
  lookWithin(lock: Asker, ttl: number): void
}

/** What else waiters need. wait/acquire.ts implements it. */
export interface WaitEffects extends LineEffects {
  /**
   * A grant arrived for a waiter that was granted the lock before. If its hold has ended, the new grant is taken back.
   * If its hold is live and has a token older than `token`, Redis is asked whether the hold is gone.
   */
  check(waiter: Waiter, token?: number): void
  /** The waiter has parked. Its caller gets the `waiting` event. */
  parked(waiter: Waiter): void
  /** The waiter's wait is over. Its promise has not settled yet. */
  settled(waiter: Waiter): void
  /** The lock has no waiters left. */
  empty(lock: Asker): void
}

/** What holds need. lease/holds.ts implements it. */
export interface HoldEffects {
  /** The hold has ended, because its lock is being handed on. */
  handedOn(hold: Hold): void
  /** The lock was handed on. Redis gets a record of the new holder, if that still holds a moment later. */
  recordLater(run: Run): void
  /** The run is over. Drops its planned record. */
  forget(run: Run): void
  /** No waiter was left to take the lock: releases the lock in Redis. */
  abandoned(run: Run): void
}

/** Shared by all locks of one kind in a client. */
export interface Common {
  /** Whether several owners may hold a lock at a time. */
  readonly shared: boolean
  readonly turns: TurnTaking
  /** For how many ms a waiter keeps trying while replicas do not confirm its grants. */
  readonly patience: number
  /** Whether the client is closed. A closed client takes no grants. */
  readonly closed: boolean
  readonly requests: Sending
  readonly heartbeat: Looking
  readonly waitEffects: WaitEffects
  readonly holdEffects: HoldEffects
  /** The lock has no waiters and no holds, and no call is about to add one. */
  forget(lock: Asker): void
}

/** ms between taking back an unconfirmed grant and the next attempt. */
export const UNDO_PAUSE = 50

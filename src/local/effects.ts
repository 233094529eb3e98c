/** What a lock of this client (local-lock.ts) asks others to do: everything that is I/O or takes time. */
import type { Granted, Refused, Renewed } from '../kind.ts'
import type { Hold } from './hold.ts'
import type { Line, LineEffects, TurnTaking } from './line.ts'
import type { Queue } from './queue.ts'
import type { Run } from './run.ts'
import type { Waiter } from './waiter.ts'

/** What an attempt is for. */
export type Attempt =
  /** A waiter that is in no line or queue asks on its own. */
  | 'alone'
  /** The head of the line asks for all waiters in it. */
  | 'as-head'
  /** A fair waiter asks, to be queued if refused. */
  | 'to-join'
  /** The waiter's owner holds the lock, here or elsewhere: the waiter asks to re-enter. */
  | 'to-re-enter'

/** The lock that asks. Whoever brings an answer calls these methods. */
export interface Asker {
  readonly key: string
  readonly line: Line
  readonly queue: Queue
  /** How many waiters it has. */
  readonly waiting: number
  answered(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused): void
  /**
   * Replicas were asked at `begun`, and have the grant until `deadline`. If `deadline` is not a number, the grant is
   * gone.
   */
  confirmed(waiter: Waiter, grant: Granted, begun: number, deadline: Renewed): void
  /** Too few replicas have the grant. */
  unconfirmed(waiter: Waiter, begun: number, error: Error): void
  /** A grant that replicas did not confirm has been taken back. */
  undone(waiter: Waiter): void
  /** A request of a waiter whose wait is over may have queued it, or granted it the lock: takes that back. */
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
   * Sends an attempt, and calls `answered` with the answer. If the attempt fails, the waiter is ended; if it was the
   * head, `Line.failed` then lets the next waiter try. `join`: the waiter is queued if refused. `reserve`: the attempt
   * reserves tokens for hand-offs within this client.
   */
  ask(lock: Asker, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean): void
  /** Sends a heartbeat of these waiters, and calls `Queue.tended` with the answer. */
  tend(lock: Asker, waiters: readonly Waiter[]): void
  /** Asks replicas, and calls `confirmed` or `unconfirmed`. Undefined: grants count without replicas. */
  readonly confirm: ((lock: Asker, waiter: Waiter, grant: Granted) => void) | undefined
  /** Takes back a grant that replicas did not confirm, and calls `undone` a moment later. */
  undo(lock: Asker, waiter: Waiter): void
  /** Takes back whatever the waiter's requests have become. */
  leave(waiter: Waiter): void
}

/** When locks are checked. wait/heartbeat.ts implements it. */
export interface Looking {
  /** Reads the lock's state now, and plans the next check. */
  look(lock: Asker): void
  /**
   * The holder's lease ends in `ttl` ms: plans a check for then, or earlier. If an earlier check is planned, that one
   * stays.
   */
  lookWithin(lock: Asker, ttl: number): void
}

/** What else waiters need. wait/acquire.ts implements it. */
export interface WaitEffects extends LineEffects {
  /**
   * Something came for a waiter that has already been granted the lock. If its hold has ended, takes back what came. If
   * its hold is live and has an older token than `token`, asks Redis whether the hold is gone.
   */
  check(waiter: Waiter, token?: number): void
  /** The waiter has parked: its caller is to be notified. */
  parked(waiter: Waiter): void
  /** The waiter's wait is over. Its caller does not know yet. */
  settled(waiter: Waiter): void
  /** Nobody waits for this lock any more. */
  empty(lock: Asker): void
}

/** What holds need. lease/holds.ts implements it. */
export interface HoldEffects {
  /** The hold has ended, because the lock is being handed on. */
  handedOn(hold: Hold): void
  /** Redis is to know the new holder, if it still holds a moment later. */
  recordLater(run: Run): void
  /** The run is over: a record of it that is still to be made is dropped. */
  forget(run: Run): void
  /** No waiter was left to take the lock: releases it in Redis. */
  abandoned(run: Run): void
}

/** What all locks of a client have in common. */
export interface Common {
  /** Whether several may hold a lock at a time. */
  readonly shared: boolean
  readonly turns: TurnTaking
  /** How long a waiter goes on while replicas do not confirm its grants, in ms. */
  readonly patience: number
  /** Whether the client is closed: then there are no more grants. */
  readonly closed: boolean
  readonly requests: Sending
  readonly heartbeat: Looking
  readonly waitEffects: WaitEffects
  readonly holdEffects: HoldEffects
  /** Nobody waits for this lock or holds it, and nobody is about to. */
  forget(lock: Asker): void
}

/** The pause between taking back a grant that replicas did not confirm and the next attempt, in ms. */
export const UNDO_PAUSE = 50

/** What a lock of this client (local-lock.ts) asks to have done: everything that is I/O or takes time. */
import type { Granted, Refused, Renewed } from '../kind.ts'
import type { Hold } from './hold.ts'
import type { Line, LineEffects, TurnTaking } from './line.ts'
import type { Queue } from './queue.ts'
import type { Run } from './run.ts'
import type { Waiter } from './waiter.ts'

/** What an attempt is for. */
export type Attempt =
  /** A waiter that stands nowhere yet asks by itself. */
  | 'alone'
  /** The head of the line asks for everybody behind it. */
  | 'as-head'
  /** A fair waiter asks for a place in the queue. */
  | 'to-join'
  /** Its owner holds the lock, wherever that was heard. */
  | 'to-re-enter'

/** The lock that asks, as far as it receives the answers. */
export interface Asker {
  readonly key: string
  readonly line: Line
  readonly queue: Queue
  /** How many wait here. */
  readonly waiting: number
  answered(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused): void
  /** Replicas were asked at `begun`, and have the grant until `deadline`; not a number: it is gone. */
  confirmed(waiter: Waiter, grant: Granted, begun: number, deadline: Renewed): void
  /** Too few replicas have the grant. */
  unconfirmed(waiter: Waiter, begun: number, error: Error): void
  /** A grant that did not count has been taken back. */
  undone(waiter: Waiter): void
  /** A request of a waiter whose wait is over may have brought it something. */
  takeBack(waiter: Waiter): void
  /** It is time for a look at the truth. */
  look(): void
  /** The wait ends without a grant. */
  end(waiter: Waiter, error: Error | undefined): void
}

/** What is sent for waiters: wait/requests.ts. */
export interface Sending {
  /** Monotonic ms. */
  now(): number
  /**
   * Sends an attempt, which is answered by `answered`; where it fails, the waiter is ended, and after a head the next one is
   * called by `Line.heard`. `join`: to be queued if it is refused. `reserve`: with tokens for hand-offs within this client.
   */
  ask(lock: Asker, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean): void
  /** Sends a heartbeat of these waiters, which is answered by `Queue.tended`. */
  tend(lock: Asker, waiters: readonly Waiter[]): void
  /** Asks replicas, which is answered by `confirmed` or `unconfirmed`. Undefined: a grant counts at once. */
  readonly confirm: ((lock: Asker, waiter: Waiter, grant: Granted) => void) | undefined
  /** Takes a grant back that did not count, and calls `undone` a moment later. */
  undo(lock: Asker, waiter: Waiter): void
  /** Takes back whatever became of the waiter's requests. */
  leave(waiter: Waiter): void
}

/** When locks are looked at: wait/heartbeat.ts. */
export interface Looking {
  /** Looks at the truth now, and plans the next look. */
  look(lock: Asker): void
  /** The holder's lease ends in so many ms: looks then, or when it is time for a look anyway. */
  lookWithin(lock: Asker, ttl: number): void
}

/** The rest of what waiters need: wait/acquire.ts. */
export interface WaitEffects extends LineEffects {
  /**
   * The waiter was granted the lock before: takes back what came for it, if its hold has ended. If not, and the hold is of an older
   * token than this, asks Redis whether it is gone.
   */
  check(waiter: Waiter, token?: number): void
  /** The waiter has parked: its caller is told. */
  parked(waiter: Waiter): void
  /** Its wait is over; its caller is not told yet. */
  settled(waiter: Waiter): void
  /** Nobody waits for this lock any more. */
  empty(lock: Asker): void
}

/** Of holds; lease/holds.ts carries it out. */
export interface HoldEffects {
  /** The hold has ended: the lock is being handed on. */
  handedOn(hold: Hold): void
  /** Redis is to be told who has the lock, if that lasts. */
  recordLater(run: Run): void
  /** The run is over: nothing of it is to be recorded any more. */
  forget(run: Run): void
  /** Nobody was left to hand the lock to: it has to be released in Redis. */
  abandoned(run: Run): void
}

/** What all locks of a client have in common. */
export interface Common {
  /** Whether several may hold a lock at a time. */
  readonly shared: boolean
  readonly turns: TurnTaking
  /** For how long a waiter whose grants are not confirmed goes on, in ms. */
  readonly patience: number
  /** The client is closed: no more grants. */
  readonly closed: boolean
  readonly requests: Sending
  readonly heartbeat: Looking
  readonly waitEffects: WaitEffects
  readonly holdEffects: HoldEffects
  /** Nobody waits for this lock, nor holds it, nor is about to. */
  forget(lock: Asker): void
}

/** Between the end of a grant that did not count and the next attempt, in ms. */
export const UNDO_PAUSE = 50

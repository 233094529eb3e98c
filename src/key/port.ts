/** What a key asks of its client. key.ts makes the decisions; requests.ts and holds.ts carry them out. */
import type { Channel, Granted, HeartbeatReply, Refused } from '../kind.ts'
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
export type Subscribed = { [C in Channel]?: Promise<void> | true | undefined }

/**
 * A time in which Redis does not answer. `since`: when the outage, or the first unanswered request, began, in ms of a
 * clock that counts only the time in which this process runs. `error`: the latest error.
 */
export interface Silence {
  readonly since: number
  error: Error
}

/** What requests.ts and limits.ts see of a key, and the events that they report to it. */
export interface WaitingKey {
  readonly key: string
  subscribed: Subscribed | undefined
  silence: Silence | undefined
  readonly line: List<Waiter>
  readonly queue: List<Waiter>
  /** The subscription to the unlock channel is active, or has taken too long: a message may have been missed. */
  onSubscribed(now: number): void
  onAnswer(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused, now: number): void
  /** So many callers are queued that the waiter was not added to them. */
  onFull(waiter: Waiter, error: Error, now: number): void
  /** The head's attempt, or its subscription, has failed. */
  onHeadFailed(now: number): void
  /** `answer`: undefined if the heartbeat of these waiters failed. */
  onHeartbeat(waiters: readonly Waiter[], answer: HeartbeatReply | undefined, now: number): void
  end(waiter: Waiter, error: Error | undefined, now: number): void
  takeBack(waiter: Waiter): void
}

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
  ask(key: WaitingKey, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean, now: number): void
  /** Lets an unfair waiter join the queue, because it has waited for its `fairAfter`. */
  queue(waiter: Waiter, now: number): void
  /** Sends a heartbeat of these waiters, and reports its answer. */
  beat(key: WaitingKey, waiters: readonly Waiter[]): void
  /** Removes the waiter from the queue in Redis, or releases what it was granted. */
  leave(waiter: Waiter): void
  /**
   * Asks Redis whether this waiter's hold still exists, if it is not the hold of the grant with this token. Takes the
   * grant back if the client no longer has such a hold.
   */
  check(waiter: Waiter, token?: number): void
  /** Subscribes to the unlock channel for the head of the line. */
  listen(key: WaitingKey, head: Waiter, now: number): void
  onParked(waiter: Waiter): void
  /** The waiter's wait is over. Its call does not know it yet. */
  onSettled(waiter: Waiter): void
  /** The key has no waiters left. */
  onRest(key: WaitingKey): void
  /** The key has neither waiters nor holds, and no call is about to add one. */
  onIdle(key: WaitingKey): void
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

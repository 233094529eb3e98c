/**
 * The states of a waiter and of the hold that it becomes, and the effect of each event in each state. This file has no
 * I/O and no timer. local-lock.ts changes the states, and calls the code in wait/ and lease/ that acts on the changes.
 *
 *     arriving ──▶ standing ──▶ announced ──▶ joining ──▶ queued        places: where a waiter waits
 *         └────────────┴───────────┬─────────────┴───────────┘
 *                                  │ grant     ┌────────────┐
 *                                  ├──────────▶│ confirming │         if replicas have to confirm the grant
 *                                  │           └──┬──────┬──┘
 *                                  ▼              │      └──▶ back to its place, if too few of them do
 *                          holding, or over ◀─────┘
 *                             │
 *                             ▼
 *                           held ──▶ releasing ──▶ released           a hold
 *                             └───────────┴──────▶ lost
 *
 * A wait ends once, as `holding` or as `over`. If a grant arrives later for a waiter whose wait is `over`, it is taken
 * back at once. If a grant arrives later for a waiter that is `holding`, it is most likely the same grant, reported
 * again. So it is taken back only if the hold has ended. spec/baton.pml has the same states, but there all places
 * except `arriving` are one state: `waiting`.
 */
import type { LockClosedError, LockLostError } from '../errors.ts'

/** The reason for a lost hold: its client was closed, or the hold ended in another way, such as by its lease. */
export type Loss = LockLostError | LockClosedError

/** Where a waiter waits. */
export type Place =
  /**
   * The waiter has joined neither a line nor a queue. Either it makes only a single attempt, or its owner may re-enter,
   * so it makes an attempt on its own first.
   */
  | { readonly is: 'arriving' }
  /** The waiter is unfair and stands in its client's line. Only the head of the line asks Redis. */
  | { readonly is: 'standing' }
  /** The waiter is fair and about to ask for a place in the queue. Redis has not received that request yet. */
  | { readonly is: 'announced' }
  /**
   * The waiter is fair and has asked for a place in the queue, but has no ticket yet. If a message has announced a
   * grant, the client cannot ask Redis about it without a ticket.
   */
  | { readonly is: 'joining'; readonly grantAnnounced: boolean }
  /** The waiter is in the queue in Redis. If Redis loses the queue entry, the ticket restores the waiter's place. */
  | { readonly is: 'queued'; readonly ticket: string }

export type State =
  | Place
  /** The waiter was granted the lock, and replicas are being asked whether they have the grant. */
  | { readonly is: 'confirming'; readonly place: Place }
  /** The waiter has the lock. */
  | { readonly is: 'holding' }
  /** The wait has ended without the lock. */
  | { readonly is: 'over' }

/**
 * The effect of an event on a waiter, by the place where it waits. While a grant is being confirmed, the waiter counts
 * as being at the place where it waited before.
 */
export const atPlace = {
  /**
   *   message  A message announces a grant. The grant may be old, so it has to be proven. Redis sends such a message
   *            only to a waiter that has asked to be queued.
   *   refused  An attempt outside the queue was refused. A waiter that has asked to be queued ignores this refusal.
   *   again    The waiter must not use its grant: the grant was taken away, or replicas did not confirm it. The value
   *            of `again` says how the waiter asks again.
   */
  arriving: { message: 'ignore', refused: 'wait', again: 'stand' },
  standing: { message: 'ignore', refused: 'wait', again: 'try' },
  announced: { message: 'ignore', refused: 'wait', again: 'ignore' },
  joining: { message: 'prove', refused: 'ignore', again: 'join' },
  queued: { message: 'prove', refused: 'ignore', again: 'look' },
} as const satisfies Record<Place['is'], unknown>

/** The effect of an event on a waiter, by its state. */
export const inState = {
  /**
   *   grant    A reply, a message or a heartbeat brings a proven grant. `take`: the waiter uses it. `newest`: the waiter
   *            notes its token, and uses only the newest grant once replicas have answered. `check`: the client asks
   *            Redis whether the hold still exists. `take-back`: the client gives the grant back.
   *   end      The caller gives up, or an attempt fails. Redis may have queued the waiter or granted it the lock. A
   *            request can undo both. `leave`: the client always sends this request. `asked`: the client sends it only
   *            if an attempt is unanswered.
   */
  arriving: { grant: 'take', end: 'asked' },
  standing: { grant: 'take', end: 'asked' },
  announced: { grant: 'take', end: 'asked' },
  joining: { grant: 'take', end: 'leave' },
  queued: { grant: 'take', end: 'leave' },
  confirming: { grant: 'newest', end: 'leave' },
  holding: { grant: 'check', end: 'ignore' },
  over: { grant: 'take-back', end: 'ignore' },
} as const satisfies Record<State['is'], unknown>

/** Returns the place where a waiter in this state waits, or undefined if it no longer waits. */
export function placeOf(state: State): Place | undefined {
  if (state.is === 'confirming') return state.place
  return state.is === 'holding' || state.is === 'over' ? undefined : state
}

export type HoldState =
  | { readonly is: 'held' }
  /** `resolve` settles the promise of the release: with false if the hold's deadline passes before Redis answers. */
  | { readonly is: 'releasing'; readonly resolve: (live: boolean) => void }
  | { readonly is: 'released' }
  /** The hold's deadline passed, Redis no longer knew the hold, or the client was closed. */
  | { readonly is: 'lost'; readonly loss: Loss }

/** The states that may follow each state of a hold. If the lock is handed on, `released` follows `held` directly. */
export const mayFollow: Readonly<Record<HoldState['is'], readonly HoldState['is'][]>> = {
  held: ['releasing', 'released', 'lost'],
  releasing: ['released', 'lost'],
  released: [],
  lost: [],
}

export const arriving: State = { is: 'arriving' }
export const standing: State = { is: 'standing' }
export const announced: State = { is: 'announced' }
export const holding: State = { is: 'holding' }
export const over: State = { is: 'over' }

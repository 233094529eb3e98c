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
 * back at once. A later grant for a waiter that holds is most likely the same grant, reported twice, so it is taken
 * back only if the hold has ended. spec/baton.pml has the same states, but there all places except `arriving` are one
 * state: `waiting`.
 */
import type { LockClosedError, LockLostError } from '../errors.ts'

/** The reason for a lost hold: it ended on its own, or its client was closed. */
export type Loss = LockLostError | LockClosedError

/** Where a waiter waits. */
export type Place =
  /** The waiter is in no line or queue. It makes a single attempt, or a first attempt because it may re-enter. */
  | { readonly is: 'arriving' }
  /** The waiter is unfair and stands in its client's line. Only the head of the line asks Redis. */
  | { readonly is: 'standing' }
  /** The waiter is fair and about to ask for a place in the queue. Redis has not received that request yet. */
  | { readonly is: 'announced' }
  /**
   * The waiter is fair and has asked for a place in the queue. `told`: a message announced a grant before the waiter
   * had a ticket, and the grant is not proven yet.
   */
  | { readonly is: 'joining'; readonly told: boolean }
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
 * The effect of an event on a waiter, by its place. While a grant is being confirmed, the waiter's previous place
 * counts.
 */
export const atPlace = {
  /**
   *   message  A message announces a grant. The grant may be old, so it has to be proven. Redis sends such a message
   *            only to a waiter that has asked to be queued.
   *   refused  An attempt was refused. For a waiter in the queue, only the queue's answers count.
   *   again    The waiter's grant did not count. The value says how the waiter asks again.
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
   *   grant    A reply, a message or a heartbeat brings a proven grant.
   *   end      The caller gives up, or an attempt fails. `leave`: Redis may have queued the waiter or granted it the
   *            lock, so a request takes that back. `asked`: the request is sent only if an attempt is unanswered.
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
  /** `resolve` settles the promise of the release. If the deadline comes before Redis's answer, the value is false. */
  | { readonly is: 'releasing'; readonly resolve: (live: boolean) => void }
  | { readonly is: 'released' }
  /** The hold's deadline passed, Redis no longer knew the hold, or the client was closed. */
  | { readonly is: 'lost'; readonly loss: Loss }

/** The states that may follow each state of a hold. `released` follows `held` directly in a hand-off. */
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

/**
 * Waiting and holding on one screen: the states of a waiter and of the hold that it becomes, and what each thing that can happen
 * means in each of them. There is no I/O and no time here; local-lock.ts takes the steps, and wait/ and lease/ carry out
 * what they ask for.
 *
 *     arriving ──▶ standing ──▶ announced ──▶ joining ──▶ queued        places: where a waiter waits
 *         └────────────┴───────────┬─────────────┴───────────┘
 *                                  │ grant     ┌────────────┐
 *                                  ├──────────▶│ confirming │         where replicas have to know of the grant
 *                                  │           └──┬──────┬──┘
 *                                  ▼              │      └──▶ back to its place, if too few of them do
 *                          holding, or over ◀─────┘
 *                             │
 *                             ▼
 *                           held ──▶ releasing ──▶ released           a hold
 *                             └───────────┴──────▶ lost
 *
 * A wait ends once, as `holding` or as `over`. What arrives after that is taken back: at once for a waiter that is over; for
 * one that holds only if its hold has ended, because most likely it is the same grant, told twice. spec/baton.pml has the
 * same states, with all places but `arriving` as one: `waiting`.
 */
import type { LockClosedError, LockLostError } from '../errors.ts'

/** Why a hold was lost: by itself, or because its client was closed. */
export type Loss = LockLostError | LockClosedError

/** Where a waiter waits. */
export type Place =
  /** A single attempt, or one whose owner may hold the lock already: it asks by itself, before it stands anywhere. */
  | { readonly is: 'arriving' }
  /** Unfair: in the line of its client. Only the head of the line asks. */
  | { readonly is: 'standing' }
  /** Fair: known to this client as such, and about to ask; Redis has not seen it yet. */
  | { readonly is: 'announced' }
  /** It has asked for a place in the queue. `told`: of a grant, in a message that proves too little, before it had a ticket. */
  | { readonly is: 'joining'; readonly told: boolean }
  /** In the queue in Redis, to which it can return with its ticket. */
  | { readonly is: 'queued'; readonly ticket: string }

export type State =
  | Place
  /** It was granted the lock, and replicas are being asked whether they have that. */
  | { readonly is: 'confirming'; readonly place: Place }
  /** It has the lock. */
  | { readonly is: 'holding' }
  /** It has gone without. */
  | { readonly is: 'over' }

/** What arrives for a waiter, by the place where it waits, also while a grant of it is being confirmed. */
export const atPlace = {
  /**
   * message  of a grant, which may be old: it has to be proven. Nobody sends one to a waiter that Redis was not asked to queue
   * refused  the answer to an attempt. In the queue, only what the queue says counts
   * again    its grant did not count: how it asks anew
   */
  arriving: { message: 'ignore', refused: 'wait', again: 'stand' },
  standing: { message: 'ignore', refused: 'wait', again: 'try' },
  announced: { message: 'ignore', refused: 'wait', again: 'ignore' },
  joining: { message: 'prove', refused: 'ignore', again: 'join' },
  queued: { message: 'prove', refused: 'ignore', again: 'look' },
} as const satisfies Record<Place['is'], unknown>

/** What arrives for a waiter, by its state. */
export const inState = {
  /**
   * grant    one that is proven, by a reply, a message or a look
   * end      its caller gives up, or its attempt fails. `leave`: Redis may have something of it; `asked`: only if an attempt of it is unanswered
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

/** Undefined: it does not wait any more. */
export function placeOf(state: State): Place | undefined {
  if (state.is === 'confirming') return state.place
  return state.is === 'holding' || state.is === 'over' ? undefined : state
}

export type HoldState =
  | { readonly is: 'held' }
  /** `resolve`: of the promise of the release, which resolves false if the deadline comes before the answer. */
  | { readonly is: 'releasing'; readonly resolve: (live: boolean) => void }
  | { readonly is: 'released' }
  /** Its deadline passed, Redis did not know it, or the client was closed. */
  | { readonly is: 'lost'; readonly loss: Loss }

/** Which states may follow each of a hold. From `held` to `released`: where it is handed on within the client. */
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

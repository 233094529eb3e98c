/**
 * Waiting and holding on one screen: the states of a waiter and of the hold that it becomes, and what each event means
 * in each of them. There is no I/O and no time here; local-lock.ts takes the steps, and wait/ and lease/ carry out what
 * it asks for.
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
 * A wait ends once, as `holding` or as `over`. A grant that comes after that is taken back. For a waiter that is over,
 * this happens at once. For a waiter that holds, it happens only if its hold has ended, because most likely the same
 * grant was reported twice. spec/baton.pml has the same states, but all places except `arriving` are one state there:
 * `waiting`.
 */
import type { LockClosedError, LockLostError } from '../errors.ts'

/** Why a hold was lost: it ended on its own, or its client was closed. */
export type Loss = LockLostError | LockClosedError

/** Where a waiter waits. */
export type Place =
  /** A single attempt, or a waiter whose owner may hold the lock already: it asks before it is in any line or queue. */
  | { readonly is: 'arriving' }
  /** Unfair: in the line of its client, where only the head asks. */
  | { readonly is: 'standing' }
  /** Fair: this client knows it as fair, and is about to ask. Redis has not seen it yet. */
  | { readonly is: 'announced' }
  /**
   * It has asked for a place in the queue. `told`: a message told it of a grant before it had a ticket, and does not
   * prove that grant.
   */
  | { readonly is: 'joining'; readonly told: boolean }
  /** In the queue in Redis. If it is missing there, it can return to its place with its ticket. */
  | { readonly is: 'queued'; readonly ticket: string }

export type State =
  | Place
  /** It was granted the lock, and replicas are being asked whether they have the grant. */
  | { readonly is: 'confirming'; readonly place: Place }
  /** It has the lock. */
  | { readonly is: 'holding' }
  /** Its wait has ended without the lock. */
  | { readonly is: 'over' }

/**
 * What an event means to a waiter, by its place. While replicas confirm a grant, the place that the waiter had counts.
 */
export const atPlace = {
  /**
   *   message  A message tells of a grant, which may be old, so it has to be proven. Redis sends such a message only
   *            to a waiter that it was asked to queue.
   *   refused  The answer to an attempt is a refusal. To a waiter in the queue, only the queue's answers count.
   *   again    Its grant did not count: how it asks again.
   */
  arriving: { message: 'ignore', refused: 'wait', again: 'stand' },
  standing: { message: 'ignore', refused: 'wait', again: 'try' },
  announced: { message: 'ignore', refused: 'wait', again: 'ignore' },
  joining: { message: 'prove', refused: 'ignore', again: 'join' },
  queued: { message: 'prove', refused: 'ignore', again: 'look' },
} as const satisfies Record<Place['is'], unknown>

/** What an event means to a waiter, by its state. */
export const inState = {
  /**
   *   grant    A reply, a message or a heartbeat brings a grant that is proven.
   *   end      Its caller gives up, or its attempt fails. `leave`: Redis may have something of it, which is taken back.
   *            `asked`: the same, but only if an attempt of it is unanswered.
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

/** Undefined: it no longer waits. */
export function placeOf(state: State): Place | undefined {
  if (state.is === 'confirming') return state.place
  return state.is === 'holding' || state.is === 'over' ? undefined : state
}

export type HoldState =
  | { readonly is: 'held' }
  /** `resolve` settles the promise of the release: with false, if the deadline comes before the answer. */
  | { readonly is: 'releasing'; readonly resolve: (live: boolean) => void }
  | { readonly is: 'released' }
  /** Its deadline passed, Redis no longer knew it, or the client was closed. */
  | { readonly is: 'lost'; readonly loss: Loss }

/**
 * Which states may follow each state of a hold. `released` follows `held` directly if the lock is handed on within the
 * client.
 */
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

/**
 * A waiter: one request for a lock that is not granted yet. It has the call's options, its state, and what replies have
 * said so far.
 *
 *     arriving ──▶ standing ──▶ announced ──▶ asking ──▶ queued        places: where a waiter waits
 *         └────────────┴───────────┬────────────┴──────────┘
 *                                  ▼ grant
 *                          holding, or over
 *
 * A wait ends once, as `holding` or as `over`. If a grant arrives later for a waiter whose wait is `over`, it is taken
 * back at once. If a grant arrives later for a waiter that is `holding`, it is most likely the same grant, reported
 * again. So it is taken back only if the hold has ended. spec/baton.pml has the same states, but there all places
 * except `arriving` are one state: `waiting`.
 */
import type { AsyncResource } from 'node:async_hooks'
import { surelyUntil } from '../clock.ts'
import type { Announced, Channel, Claim, Granted, HeartbeatReply, Refused } from '../kind.ts'
import { List, type Listed } from '../list.ts'
import type { HoldKey } from './hold.ts'

/** How a call waits, and who is told of the end. Nearly every call has one waiter; with `replicas`, one after another. */
export interface Call {
  /** 'once': the waiter makes a single attempt. 'line': it is unfair. 'queue': it is fair. */
  readonly mode: 'once' | 'line' | 'queue'
  /** If `mode` is 'line': after how many ms the waiter joins the queue; undefined if it never joins. */
  readonly fairAfter: number | undefined
  /** After how many ms the caller gives up; undefined if it never gives up. */
  readonly timeout?: number | undefined
  /** Whether the wait ends at once if the call is expected to wait for longer than `timeout`. */
  readonly rejectLate?: boolean | undefined
  /**
   * Whether the owner may already hold the lock, in this process or in another. A waiter of such an owner must not wait
   * behind the waiters of other owners.
   */
  readonly mayReenter: boolean
  /**
   * If set, the waiter sends nothing before this promise resolves, because Redis first has to know the lock's present
   * holder. If the promise rejects, the call rejects, too.
   */
  readonly recorded?: Promise<void> | undefined
  /** The async context of the call, in which listeners of its events run; undefined: nobody listens. */
  readonly context?: AsyncResource | undefined
  /** When the call was made, in monotonic ms. */
  readonly since: number
  /** When the call was made, in ms of a clock that stands still while this process is stopped (`awake` in clock.ts). */
  readonly begun: number
  /** Whether Redis has answered an attempt of the call. */
  answered: boolean
  /**
   * Receives the end of the wait, once, at `now`: the grant, an error, or undefined if the caller gave up or its single
   * attempt was refused. May be called before `Requests.start` has returned. `handoff`: the ms from this client's own
   * release to the grant, if the waiter waited for that release.
   */
  waited(end: Granted | Error | undefined, waiter: Waiter, now: number, handoff?: number): void
}

/** Where a waiter waits. */
export type WaitingPlace =
  /**
   * The waiter has joined neither the line nor the queue. Either it makes only a single attempt, or its owner may
   * re-enter, so it makes an attempt on its own first.
   */
  | 'arriving'
  /** The waiter is unfair and stands in its client's line. Only the head of the line asks Redis. */
  | 'standing'
  /** The waiter is fair and about to ask for a place in the queue. Redis has not received that request yet. */
  | 'announced'
  /** The waiter is fair and has asked for a place in the queue, but has no ticket yet. */
  | 'asking'
  /**
   * Like `asking`, but a message has announced a grant, and proves nothing. Redis cannot be asked about it before the
   * waiter has a ticket.
   */
  | 'doubtful'
  /** The waiter is in the queue in Redis. If Redis loses the queue entry, the ticket restores the waiter's place. */
  | 'queued'

/** `holding`: the waiter has the lock. `over`: the wait has ended without the lock. */
export type State = WaitingPlace | 'holding' | 'over'

/**
 * The effect of an event on a waiter, by its state.
 *
 *   again    A grant must not be used, or only once Redis has proved it. The value says how the waiter asks again.
 *   grant    A reply, a message or a heartbeat brings a proven grant. `take`: the waiter uses it. `check`: the client
 *            asks Redis whether the hold still exists. `take-back`: the client gives the grant back.
 *   end      The caller gives up, or an attempt fails. Redis may have queued the waiter or granted it the lock. A
 *            request can undo both. `leave`: the client always sends this request. `asked`: the client sends it only
 *            if an attempt is unanswered.
 */
export const inState = {
  arriving: { again: 'stand', grant: 'take', end: 'asked' },
  standing: { again: 'try', grant: 'take', end: 'asked' },
  announced: { again: 'ignore', grant: 'take', end: 'asked' },
  asking: { again: 'join', grant: 'take', end: 'leave' },
  doubtful: { again: 'join', grant: 'take', end: 'leave' },
  queued: { again: 'look', grant: 'take', end: 'leave' },
  holding: { again: 'ignore', grant: 'check', end: 'ignore' },
  over: { again: 'ignore', grant: 'take-back', end: 'ignore' },
} as const satisfies Record<State, unknown>

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

/** A waiter's key (key.ts): what its client sees of it, and the events that are reported to it. */
export interface WaiterKey extends HoldKey {
  readonly key: string
  subscribed: Subscribed | undefined
  silence: Silence | undefined
  readonly line: List<Waiter>
  readonly queue: List<Waiter>
  announce(waiter: Waiter, now: number): void
  join(waiter: Waiter, now: number): void
  ask(waiter: Waiter, attempt: Attempt, now: number): void
  granted(waiter: Waiter, grant: Announced, now: number): void
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

export interface Refusal extends Refused {
  /** The first refusal with an estimate at the waiter's present place in the queue, if it is another one. */
  first?: Refused
}

/** Only its key changes a waiter. */
export class Waiter implements Listed<Waiter> {
  readonly claim: Claim
  readonly call: Call
  readonly key: WaiterKey
  state: State = 'arriving'
  list: Listed<Waiter>['list']
  before: Waiter | undefined
  after: Waiter | undefined
  /** How many attempts are unanswered. Redis may still grant them. */
  unanswered = 0
  /** The last refusal. It says why the waiter still waits. */
  refusal: Refusal | undefined
  /**
   * `parked`: the caller has received the `waiting` event, because the waiter, or the head of its line, was refused.
   * `failure`: a rejection, or an event, has reported that Redis refuses this waiter's requests, or does not answer.
   */
  told: 'nothing' | 'parked' | 'failure' = 'nothing'
  /** Whether a grant of this waiter has arrived only after its lease had ended. */
  late = false
  /**
   * The grant with this token was taken away before the waiter received it. `surely`: so were all grants before it.
   * Otherwise a message says so, which may be forged.
   */
  takenAway: { readonly token: number; readonly surely: boolean } | undefined
  /** The token of the waiter's hold; 0: the waiter has had none. */
  heldToken = 0

  constructor(claim: Claim, call: Call, key: WaiterKey) {
    this.claim = claim
    this.call = call
    this.key = key
  }

  get since(): number {
    return this.call.since
  }

  refused(refusal: Refusal): void {
    const last = this.refusal
    if (last?.position === refusal.position && last.expected !== undefined) refusal.first = last.first ?? last
    this.refusal = refusal
  }

  /**
   * Returns the expected wait, in ms from the last refusal; undefined: nothing is expected. Each estimate at a place
   * supposes that the holder ends like those before it. So once the wait of the first one is over, nothing is expected.
   */
  expected(now: number): number | undefined {
    const { refusal } = this
    const { sent = 0, expected = 0 } = refusal?.first ?? refusal ?? {}
    return now < sent + expected ? refusal?.expected : undefined
  }

  get waits(): boolean {
    return this.state !== 'holding' && this.state !== 'over'
  }

  get parked(): boolean {
    return this.told === 'parked'
  }

  /** Whether the waiter has asked Redis for a place in the queue. */
  get inQueue(): boolean {
    return this.state === 'asking' || this.state === 'doubtful' || this.state === 'queued'
  }

  /** What a message says about a grant to this waiter. Returns whether the grant needs nothing more from this client. */
  granted(grant: Announced, now: number): boolean {
    this.key.granted(this, grant, now)
    return true
  }

  /** A message says that the grant with this token was taken away. If it comes later, it must not be used. */
  taken(token: number, why?: string): void {
    this.takenAway = { token, surely: why !== undefined }
  }

  /**
   * Returns the grant that a message announces, if it is certainly not an old one, and if at least half of its lease is
   * left. A delayed message may announce an old grant that has expired. The waiter may then have joined the queue
   * again.
   *
   * Each refusal reports the lock's token clock. A grant that is older than the last refusal has no larger token than
   * this clock. So a larger token proves that the grant was made after the refused request was sent. The lease cannot
   * have begun before that request, so it is counted from the time of the request.
   */
  proven({ token, via, slots }: Announced, now: number): Granted | undefined {
    const { lease } = this.claim
    const { clock, sent } = this.refusal ?? { clock: 0, sent: this.since }
    const deadline = surelyUntil(sent, lease)
    const newer = token > clock
    return newer && deadline - now >= lease / 2 ? { granted: true, token, deadline, via, slots } : undefined
  }
}

export const nobody: List<Waiter> = new List()

/**
 * A waiter: one call that waits for a lock. It has the call's options, its state, and what replies have said so far.
 *
 *     arriving ──▶ standing ──▶ announced ──▶ joining ──▶ queued        places: where a waiter waits
 *         └────────────┴───────────┬─────────────┴───────────┘
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
import type { Announced, Claim, Granted, Refused } from '../kind.ts'
import { List, type Listed } from '../list.ts'

export interface Wish {
  readonly claim: Claim
  /** 'once': the waiter makes a single attempt. 'line': it is unfair. 'queue': it is fair. */
  readonly mode: 'once' | 'line' | 'queue'
  /** If `mode` is 'line': after how many ms the waiter joins the queue; undefined if it never joins. */
  readonly fairAfter: number | undefined
  /** After how many ms the caller gives up; undefined if it never gives up. */
  readonly timeout?: number | undefined
  /** Whether the wait ends at once if the call is expected to wait for longer than `timeout`. */
  readonly rejectLate?: boolean
  /**
   * Whether the owner may already hold the lock, in this process or in another. A waiter of such an owner must not wait
   * behind the waiters of other owners.
   */
  readonly mayReenter: boolean
  /**
   * If set, the waiter sends nothing before this promise resolves, because Redis first has to know the lock's present
   * holder. If the promise rejects, the call rejects, too.
   */
  readonly after?: Promise<void> | undefined
  /** The async context of the call, in which listeners of its events run; undefined: nobody listens. */
  readonly context?: AsyncResource | undefined
}

/** Where a waiter waits. */
export type Place =
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
  | 'joining'
  /** The waiter is in the queue in Redis. If Redis loses the queue entry, the ticket restores the waiter's place. */
  | 'queued'

/** `holding`: the waiter has the lock. `over`: the wait has ended without the lock. */
export type State = Place | 'holding' | 'over'

/**
 * The effect of an event on a waiter, by its state.
 *
 *   again    The waiter must not use its grant, because the grant was taken away. The value says how the waiter asks
 *            again.
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
  joining: { again: 'join', grant: 'take', end: 'leave' },
  queued: { again: 'look', grant: 'take', end: 'leave' },
  holding: { again: 'ignore', grant: 'check', end: 'ignore' },
  over: { again: 'ignore', grant: 'take-back', end: 'ignore' },
} as const satisfies Record<State, unknown>

/**
 * Called once, when the wait ends, at `now`: with the grant, with an error, or with undefined if the caller gave up or
 * its single attempt was refused. May be called before `Io.start` has returned.
 */
export type Settle = (end: Granted | Error | undefined, waiter: Waiter, now: number) => void

/** Only the `KeyState` of its key may change a waiter. */
export class Waiter implements Listed<Waiter> {
  readonly wish: Wish
  /** When the call was made, in monotonic ms. */
  readonly since: number
  /** When the call was made, in ms of a clock that stands still while this process is stopped (`awake` in clock.ts). */
  readonly begun: number
  readonly settle: Settle
  state: State = 'arriving'
  list: Listed<Waiter>['list']
  before: Waiter | undefined
  after: Waiter | undefined
  /** The waiter's ticket, while it is queued; otherwise ''. */
  ticket = ''
  /**
   * Whether a message has announced a grant while the waiter was `joining`. Redis cannot be asked about it before the
   * waiter has a ticket.
   */
  announced = false
  /** Whether the caller has received the `waiting` event, because the waiter, or the head of its line, was refused. */
  parked = false
  /** Whether a rejection, or an event, has reported that Redis refuses this waiter's requests, or does not answer. */
  reported = false
  /** Whether Redis has answered an attempt of the call. */
  answered = false
  /** Whether a grant of this waiter has arrived only after its lease had ended. */
  late = false
  /** How many attempts are unanswered. Redis may still grant them. */
  unanswered = 0
  /** The last refusal. It says why the waiter still waits. */
  refusal: Refused | undefined
  /**
   * When the waiter should have been granted the lock, by the first estimate at its place in the queue, in monotonic ms.
   * After that, nothing is expected: each later estimate supposes that the holder ends like those before it. Undefined:
   * nothing was estimated.
   */
  due: number | undefined
  /**
   * The time, in monotonic ms, when this client sent the newest request whose answer said that the waiter is queued.
   * Before there is such an answer: the time when the waiter first asked for a place in the queue.
   */
  seen: number | undefined
  /** According to a message, the grant with this token was taken away before the waiter received it; 0 if none. */
  lost = 0
  /** A grant needs at least this token: one with a smaller token was certainly taken away before it arrived. */
  leastToken = 0
  /** The token of the waiter's hold; 0: the waiter has had none. */
  heldToken = 0
  /** ms from this client's own release to the grant. Set only if the waiter waited for that release. */
  handoff: number | undefined

  constructor(wish: Wish, since: number, begun: number, settle: Settle) {
    this.wish = wish
    this.since = since
    this.begun = begun
    this.settle = settle
  }

  /** Called when an answer says that the waiter has to wait. */
  refused(refusal: Refused): void {
    const { position, sent, expected } = refusal
    const known = position === this.refusal?.position && this.refusal.expected !== undefined
    if (!known && expected !== undefined) this.due = sent + expected
    this.refusal = refusal
  }

  get claim(): Claim {
    return this.wish.claim
  }

  get waits(): boolean {
    return this.state !== 'holding' && this.state !== 'over'
  }

  /** Whether the waiter has asked Redis for a place in the queue. */
  get inQueue(): boolean {
    return this.state === 'joining' || this.state === 'queued'
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
    const newer = token > (this.refusal?.clock ?? 0)
    const deadline = surelyUntil(this.seen ?? this.since, lease)
    return newer && deadline - now >= lease / 2 ? { granted: true, token, deadline, via, slots } : undefined
  }
}

export const nobody: List<Waiter> = new List()

/**
 * A waiter: one call that waits for a lock. It has the call's options, its place (states.ts), and what replies have
 * said so far.
 */
import { surelyUntil } from '../clock.ts'
import type { Claim, Granted, Refused, Renewed, Via } from '../kind.ts'
import { arriving, holding, over, type Place, placeOf, type State } from './states.ts'

export interface Wish {
  readonly claim: Claim
  /** 'once': the waiter makes a single attempt. 'line': it is unfair. 'queue': it is fair. */
  readonly mode: 'once' | 'line' | 'queue'
  /** If `mode` is 'line': after how many ms the waiter joins the queue; undefined if it never joins. */
  readonly fairAfter: number | undefined
  /** If `mode` is 'line': after how many ms the caller gives up; undefined if it never gives up. */
  readonly timeout?: number | undefined
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
}

/**
 * Called once, when the wait ends: with the grant, with an error, or with undefined if the caller gave up or its single
 * attempt was refused. May be called before `Acquirer.start` has returned the waiter.
 */
export type Settle = (end: Granted | Error | undefined, waiter: Waiter) => void

/** A waiter. Only the `LocalLock` of its key may change it. */
export class WaiterRecord {
  readonly wish: Wish
  /** When the call was made, in monotonic ms. */
  readonly since: number
  /** When the call was made, in ms of a clock that stands still while this process is stopped (`awake` in clock.ts). */
  readonly begun: number
  readonly settle: Settle
  state: State = arriving
  /** Whether the caller has received the `waiting` event, because the waiter, or the head of its line, was refused. */
  parked = false
  /** Whether Redis has answered an attempt. */
  answered = false
  /** How many attempts are unanswered. Redis may still grant them. */
  unanswered = 0
  /** The last refusal. It says why the waiter still waits. */
  refusal: Refused | undefined
  /**
   * The time, in monotonic ms, when this client sent the newest request whose answer said that the waiter is queued.
   * Before there is such an answer: the time when the waiter first asked for a place in the queue.
   */
  seen: number | undefined
  /** Whether a grant of this waiter has arrived only after its lease had ended. */
  late = false
  /** According to a message, the grant with this token was taken away before the waiter received it; 0 if none. */
  lost = 0
  /** If replicas have to confirm grants: the largest token that this waiter has been granted so far. Otherwise 0. */
  latest = 0
  /** When replicas were asked about this waiter's first unconfirmed grant, in monotonic ms. */
  unconfirmedSince: number | undefined
  /** ms from this client's own release to the grant. Set only if the waiter waited for that release. */
  handoff: number | undefined
  /** Whether, at the time of the grant, the lock seemed to have no waiters in other clients (`Line.alone`). */
  alone = false

  constructor(wish: Wish, since: number, begun: number, settle: Settle) {
    this.wish = wish
    this.since = since
    this.begun = begun
    this.settle = settle
  }

  get claim(): Claim {
    return this.wish.claim
  }

  /** The place where the waiter waits; undefined if it no longer waits. */
  get place(): Place | undefined {
    return placeOf(this.state)
  }

  get waits(): boolean {
    return this.place !== undefined
  }

  get confirming(): boolean {
    return this.state.is === 'confirming'
  }

  /** Whether the waiter has asked Redis for a place in the queue. */
  get inQueue(): boolean {
    const is = this.place?.is
    return is === 'joining' || is === 'queued'
  }

  /**
   * Changes the state. If replicas are being asked to confirm a grant, a waiter that moves to a new place (see `Place`)
   * stays `confirming`. If the replicas do not confirm the grant, the waiter is then at the new place.
   */
  moveTo(to: State): void {
    const stays = this.state.is === 'confirming' && to !== holding && to !== over
    this.state = stays ? { is: 'confirming', place: to as Place } : to
  }

  /**
   * Returns the grant with the `via` that the caller sees. Redis does not know whether this waiter had parked. If it
   * had parked, and the lock was free, `via` is 'wakeup'. If it had not parked, and the previous holder's lease had
   * ended, `via` is 'immediate', as for a free lock.
   */
  asSeen(grant: Granted): Granted {
    if (grant.via === 'immediate' && this.parked) return { ...grant, via: 'wakeup' }
    if (grant.via === 'expiry' && !this.parked) return { ...grant, via: 'immediate' }
    return grant
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
  proven(token: number, via: Via, now: number): Granted | undefined {
    const { lease } = this.claim
    const newer = token > (this.refusal?.clock ?? 0)
    const deadline = surelyUntil(this.seen ?? this.since, lease)
    return newer && deadline - now >= lease / 2 ? { granted: true, token, deadline, via } : undefined
  }

  /**
   * Notes that replicas have to confirm this grant. Returns false if replicas are being asked about a grant already.
   */
  confirm({ token }: Granted): boolean {
    this.latest = Math.max(this.latest, token)
    if (this.confirming) return false
    this.state = { is: 'confirming', place: this.state as Place }
    return true
  }

  /**
   * Returns the time until which the holder can rely on a grant; 0 if the grant must not be used. `begun`: when
   * replicas were asked about the grant. `deadline`: the answer to this question. If a newer grant has arrived since
   * `begun`, the answer may be about either grant, so this grant must not be used.
   */
  confirmedUntil(grant: Granted, begun: number, deadline: Renewed): number {
    if (typeof deadline !== 'number' || grant.token !== this.latest) return 0
    return Math.max(Math.min(deadline, begun + this.claim.lease), grant.deadline)
  }
}

/** A waiter, for code that may read but not change it. */
export type Waiter = Readonly<WaiterRecord>

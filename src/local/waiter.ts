/**
 * A waiter: one call that waits for a lock, with its terms, its place (states.ts), and what replies have said so far.
 */
import { surelyUntil } from '../clock.ts'
import type { Claim, Granted, Refused, Renewed, Via } from '../kind.ts'
import { arriving, holding, over, type Place, placeOf, type State } from './states.ts'

export interface Wish {
  readonly claim: Claim
  /** 'once': the waiter makes a single attempt. 'line': it is unfair. 'queue': it is fair. */
  readonly mode: 'once' | 'line' | 'queue'
  /** With 'line': the waiter joins the queue after this many ms; undefined: it never joins. */
  readonly fairAfter: number | undefined
  /** With 'line': the caller gives up after this many ms; undefined: it never gives up. */
  readonly timeout?: number | undefined
  /**
   * Whether the owner may already hold the lock, in any process. A waiter of such an owner must not wait behind the
   * waiters of other owners.
   */
  readonly mayReenter: boolean
  /**
   * If set, the waiter sends nothing before this promise resolves, because Redis first has to know the lock's present
   * holder. If the promise rejects, the call rejects, too.
   */
  readonly after?: Promise<void> | undefined
}

/**
 * Receives the end of a wait, once: a grant, an error, or undefined if the caller gave up or its single attempt was
 * refused. May be called before `Acquirer.start` has returned the waiter.
 */
export type Settle = (end: Granted | Error | undefined, waiter: Waiter) => void

/** A waiter. Only the `LocalLock` of its key may change it. */
export class WaiterRecord {
  readonly wish: Wish
  /** When the call was made, in monotonic ms. */
  readonly since: number
  /** When the call was made, in ms of a clock that counts only the time in which this process ran. */
  readonly begun: number
  readonly settle: Settle
  state: State = arriving
  /** Whether the caller has received the `waiting` event, because the waiter, or the head of its line, was refused. */
  parked = false
  /** How many attempts are unanswered. Redis may still grant them. */
  unanswered = 0
  /** The last refusal. It says why the waiter still waits. */
  refusal: Refused | undefined
  /**
   * The time of the latest request that found the waiter in the queue, in monotonic ms. Until there is one: the time of
   * the waiter's first request for a place in the queue.
   */
  seen: number | undefined
  /** Whether a grant has already arrived after the end of its lease. */
  late = false
  /** The token of a grant that was taken away before the waiter received it; 0 if there is none. */
  lost = 0
  /** The largest token of this waiter's grants that replicas have to confirm; 0 if there is none. */
  latest = 0
  /** When replicas were first asked about a grant and did not confirm it. */
  unconfirmedSince: number | undefined
  /** ms from this client's own release to the grant. Set only if the waiter waited for that release. */
  handoff: number | undefined
  /** Whether, at the time of the grant, all known waiters of the lock were in this client. */
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

  /** Changes the state. While a grant is being confirmed, a new place is only stored as the place to return to. */
  moveTo(to: State): void {
    const stays = this.state.is === 'confirming' && to !== holding && to !== over
    this.state = stays ? { is: 'confirming', place: to as Place } : to
  }

  /**
   * Returns the grant as the caller should see it. If a parked waiter tried and the lock was free, `via` is 'wakeup'.
   * If the lease of a previous holder expired before this waiter parked, the lock counts as free, and `via` is
   * 'immediate'.
   */
  asSeen(grant: Granted): Granted {
    if (grant.via === 'immediate' && this.parked) return { ...grant, via: 'wakeup' }
    if (grant.via === 'expiry' && !this.parked) return { ...grant, via: 'immediate' }
    return grant
  }

  /**
   * Returns the grant that a message announces, if at least half of its lease is certainly left. A delayed message may
   * announce a grant that has expired, and the waiter may have joined the queue again since. The token of such a grant
   * is not larger than the lock's clock in the last answer. A larger token proves that the grant was made after the
   * request for that answer was sent, so the grant's lease counts from the time of that request.
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
   * Returns until when a grant counts; 0 if it does not count. Replicas were asked about the grant at `begun`, and
   * their answer is `deadline`. If a newer grant has arrived in the meantime, this grant does not count, because the
   * answer may be about either of them.
   */
  confirmedUntil(grant: Granted, begun: number, deadline: Renewed): number {
    if (typeof deadline !== 'number' || grant.token !== this.latest) return 0
    return Math.max(Math.min(deadline, begun + this.claim.lease), grant.deadline)
  }
}

/** A waiter, for code that may read but not change it. */
export type Waiter = Readonly<WaiterRecord>

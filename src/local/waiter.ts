/** One call that waits for a lock: what it wants, where it waits (states.ts), and what it has heard so far. */
import { surelyUntil } from '../clock.ts'
import type { Claim, Granted, Refused, Renewed, Via } from '../kind.ts'
import { arriving, holding, over, type Place, placeOf, type State } from './states.ts'

export interface Wish {
  readonly claim: Claim
  /** 'once': a single attempt. 'line': unfair. 'queue': fair. */
  readonly mode: 'once' | 'line' | 'queue'
  /** With 'line': join the queue after this many ms; undefined: never. */
  readonly fairAfter: number | undefined
  /** With 'line': the caller gives up after this many ms; undefined: never. */
  readonly timeout?: number | undefined
  /** Whether the owner may hold the lock already, here or elsewhere: then this waiter must not stand behind others. */
  readonly mayReenter: boolean
  /**
   * Nothing is asked before this promise resolves, because Redis has to know something else first. If it rejects, so
   * does the wait.
   */
  readonly after?: Promise<void> | undefined
}

/**
 * Receives the end of a wait, once: a grant, an error, or undefined if the caller has given up or its single attempt
 * was refused. May be called before `Acquirer.start` has returned the waiter.
 */
export type Settle = (end: Granted | Error | undefined, waiter: Waiter) => void

/** A waiter. Only the `LocalLock` of its key may change it. */
export class WaiterRecord {
  readonly wish: Wish
  /** When the call was made, monotonic ms. */
  readonly since: number
  /** The same moment, counted in time that this process ran. */
  readonly begun: number
  readonly settle: Settle
  state: State = arriving
  /** Whether the caller has received the `waiting` event: the waiter was refused, or is in line behind one that was. */
  parked = false
  /** How many attempts are unanswered: Redis may still grant them. */
  unanswered = 0
  /** The last refusal, which says why it still waits. */
  refusal: Refused | undefined
  /**
   * When the newest request that found it in the queue was sent. Until there is one: when it first asked for a place
   * there.
   */
  seen: number | undefined
  /** Whether a reply has already brought a grant whose lease was over by then. */
  late = false
  /** The token of a grant that was taken away before the waiter heard of the grant; 0: none. */
  lost = 0
  /** The largest token among its grants that replicas had to confirm; 0: none. */
  latest = 0
  /** When replicas were first asked about a grant that they did not confirm. */
  unconfirmedSince: number | undefined
  /** ms from this client's own release to the grant, if the waiter waited for that release. */
  handoff: number | undefined
  /** Whether no other client was known to wait at the time of the grant. */
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

  /** Undefined: it no longer waits. */
  get place(): Place | undefined {
    return placeOf(this.state)
  }

  get waits(): boolean {
    return this.place !== undefined
  }

  get confirming(): boolean {
    return this.state.is === 'confirming'
  }

  /** Whether Redis has been asked to queue it. */
  get inQueue(): boolean {
    const is = this.place?.is
    return is === 'joining' || is === 'queued'
  }

  /** While a grant is being confirmed, this changes the place to which the waiter may have to return. */
  moveTo(to: State): void {
    const stays = this.state.is === 'confirming' && to !== holding && to !== over
    this.state = stays ? { is: 'confirming', place: to as Place } : to
  }

  /**
   * How the caller sees the grant. If a parked waiter tried and the lock was free, that is a wake-up. If a lease had
   * expired before anyone waited, the lock counts as free.
   */
  asSeen(grant: Granted): Granted {
    if (grant.via === 'immediate' && this.parked) return { ...grant, via: 'wakeup' }
    if (grant.via === 'expiry' && !this.parked) return { ...grant, via: 'immediate' }
    return grant
  }

  /**
   * The grant that a message tells of, if at least half of its lease is certainly left. A message that was long under
   * way may tell of a grant that has expired, after which the waiter joined the queue again. The token of such a grant
   * is not larger than the lock's clock in the last answer. So the grant counts only if its token is larger: then it
   * was made after that answer's request was sent, and its lease can be counted from there.
   */
  proven(token: number, via: Via, now: number): Granted | undefined {
    const { lease } = this.claim
    const newer = token > (this.refusal?.clock ?? 0)
    const deadline = surelyUntil(this.seen ?? this.since, lease)
    return newer && deadline - now >= lease / 2 ? { granted: true, token, deadline, via } : undefined
  }

  /** Replicas have to confirm this grant. False: they are being asked already. */
  confirm({ token }: Granted): boolean {
    this.latest = Math.max(this.latest, token)
    if (this.confirming) return false
    this.state = { is: 'confirming', place: this.state as Place }
    return true
  }

  /**
   * Replicas were asked at `begun` about this grant: returns until when it counts; 0: it does not. It does not count
   * either if a newer grant was heard of meanwhile, because the answer may be about the older one.
   */
  confirmedUntil(grant: Granted, begun: number, deadline: Renewed): number {
    if (typeof deadline !== 'number' || grant.token !== this.latest) return 0
    return Math.max(Math.min(deadline, begun + this.claim.lease), grant.deadline)
  }
}

/** A waiter, as all others may read it. */
export type Waiter = Readonly<WaiterRecord>

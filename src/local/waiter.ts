/** One call that waits for a lock: what it wants, where it stands (states.ts), and what it was told so far. */
import { surelyUntil } from '../clock.ts'
import type { Claim, Granted, Refused, Renewed, Via } from '../kind.ts'
import { arriving, holding, over, type Place, placeOf, type State } from './states.ts'

export interface Wish {
  readonly claim: Claim
  /** 'once': a single attempt. 'line': unfair. 'queue': fair. */
  readonly mode: 'once' | 'line' | 'queue'
  /** With 'line': join the queue after this many ms; undefined: never. */
  readonly fairAfter: number | undefined
  /** With 'line': after so many ms the caller gives up; undefined: never. */
  readonly timeout?: number | undefined
  /** Whether the owner may hold the lock already, here or elsewhere: then it must not stand behind others. */
  readonly mayReenter: boolean
  /** Nothing is asked before this resolves: what Redis has to know by then. If it rejects, so does the wait. */
  readonly after?: Promise<void> | undefined
}

/**
 * Receives the end of a wait, once: a grant, an error, or neither because the caller has given up. That may be before
 * `Acquirer.start` has returned the waiter.
 */
export type Settle = (end: Granted | Error | undefined, waiter: Waiter) => void

/** A waiter as the `LocalLock` of its key writes it. */
export class WaiterRecord {
  readonly wish: Wish
  /** When the call was made, monotonic ms. */
  readonly since: number
  /** The same in time that this process ran. */
  readonly begun: number
  readonly settle: Settle
  state: State = arriving
  /** Whether the caller has received the `waiting` event: the waiter was refused, or stands behind one that was. */
  parked = false
  /** Attempts that have not been answered: Redis may grant them yet. */
  unanswered = 0
  /** The last refusal: why it still waits. */
  refusal: Refused | undefined
  /** When the last request that found it waiting in the queue was sent, or before that the first that asked for a place there. */
  seen: number | undefined
  /** Whether a grant came in a reply when its lease was over. */
  late = false
  /** The token of a grant that was taken away before the waiter heard of it. */
  lost = 0
  /** The largest token of its grants that replicas had to confirm. */
  latest = 0
  /** When replicas did not have a grant of it for the first time. */
  unconfirmedSince: number | undefined
  /** ms from this client's own release to the grant, where that release was what it waited for. */
  handoff: number | undefined
  /** Whether no other client was known to wait when it was granted. */
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

  /** Undefined: it does not wait any more. */
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

  /** While a grant of it is confirmed, it is the place to which it returns that changes. */
  moveTo(to: State): void {
    const stays = this.state.is === 'confirming' && to !== holding && to !== over
    this.state = stays ? { is: 'confirming', place: to as Place } : to
  }

  /** A lock that was free when a parked waiter tried is a wake-up; one that had lapsed before anyone waited is not. */
  asSeen(grant: Granted): Granted {
    if (grant.via === 'immediate' && this.parked) return { ...grant, via: 'wakeup' }
    if (grant.via === 'expiry' && !this.parked) return { ...grant, via: 'immediate' }
    return grant
  }

  /**
   * The grant of which a message tells, where at least half of its lease is surely left. A message that was long under way may
   * tell of a grant that has lapsed, after which the waiter has joined again. Its token is then no larger than the clock was at
   * the last look; only of a newer grant does that look prove the time.
   */
  proven(token: number, via: Via, now: number): Granted | undefined {
    const { lease } = this.claim
    const newer = token > (this.refusal?.clock ?? 0)
    const deadline = surelyUntil(this.seen ?? this.since, lease)
    return newer && deadline - now >= lease / 2 ? { granted: true, token, deadline, via } : undefined
  }

  /** Replicas have to confirm the grant. False: they are being asked already. */
  confirm({ token }: Granted): boolean {
    this.latest = Math.max(this.latest, token)
    if (this.confirming) return false
    this.state = { is: 'confirming', place: this.state as Place }
    return true
  }

  /**
   * Until when the grant counts that replicas were asked about at `begun`; 0: it does not. The answer may be older than a newer
   * grant that was heard of in the meantime.
   */
  confirmedUntil(grant: Granted, begun: number, deadline: Renewed): number {
    if (typeof deadline !== 'number' || grant.token !== this.latest) return 0
    return Math.max(Math.min(deadline, begun + this.claim.lease), grant.deadline)
  }
}

/** A waiter as everybody else sees it. */
export type Waiter = Readonly<WaiterRecord>

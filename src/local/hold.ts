/**
 * A client's hold of a lock, from its grant to its end: what it is, which state it is in, and what Redis has said of it.
 *
 * A record without timers and I/O, whose states are in states.ts: lease/renewal.ts asks Redis, lease/holds.ts releases, its lock
 * hands it on, and each writes what came of it by the methods here. What users see of the record is the `Lease`.
 *
 * Whether a hold is surely ours is read from the clock at each look, so that is true to the moment even where timers cannot
 * run (a blocked event loop, a process that was stopped). Losing it is a separate step, because its loss has to be reported.
 */
import { surelyUntil } from '../clock.ts'
import type { Claim, Granted, HoldName, Prolonging, Via } from '../kind.ts'
import type { Run } from './run.ts'
import { type HoldState, type Loss, mayFollow } from './states.ts'

const HELD: HoldState = { is: 'held' }
const RELEASED: HoldState = { is: 'released' }

/** What a grant is for. */
export interface Asked {
  readonly claim: Claim
  /** When the call was made, monotonic ms. */
  readonly since: number
  /** Whether the lease is renewed automatically, and for how many ms. */
  readonly renew: boolean
  readonly maxHold: number
  /** Whether nobody outside this client is known to wait. */
  readonly alone: boolean
}

/** What Redis is asked about a hold. */
export interface Question extends Prolonging {
  /** How many doubts there were by then: the answer settles these, and no later ones. */
  readonly doubts: number
}

/**
 * A grant that came by message is proven from an older request. If that leaves less than this part of a lease that is
 * not renewed, the rest is fetched by a confirmation this many ms later, if it is still held then.
 */
const PROVEN = 0.8
const CONFIRM_AFTER = 25
const NEVER = Number.POSITIVE_INFINITY

export class Hold {
  readonly claim: Claim
  /** What Redis knows it by: the hold's own id, unless the lock came from another hold of this client. */
  readonly name: HoldName
  readonly token: number
  readonly via: Via
  /** The run of hand-offs within this client that the hold may continue. */
  readonly run: Run | undefined
  /** When it was granted, monotonic ms. */
  readonly since: number
  /** ms between the call and the grant. */
  readonly waited: number
  /** Until when (monotonic ms) it is renewed automatically; not after `since`: never. */
  readonly renewUntil: number
  /** Of the client's holds, in the order of their grants. */
  readonly number: number
  #state: HoldState = HELD
  #deadline: number
  /** The latest moment for which the lock was asked for. */
  #askedUntil: number
  /** When Redis is to be asked, monotonic ms. */
  #due: number
  /** Whether a question by the scheduler is unanswered. */
  #asking = false
  /** How many renewals by its user are unanswered. */
  #renewing = 0
  /** How often something has said that the hold may be gone. */
  #doubts = 0
  /** Made when somebody asks for the signal: most holds end without. */
  #controller: AbortController | undefined

  constructor(asked: Asked, grant: Granted, run: Run | undefined, now: number, number: number) {
    const { claim } = asked
    const { deadline } = grant
    this.claim = claim
    this.name = run?.name ?? claim
    this.token = grant.token
    this.via = grant.via
    this.run = run
    this.since = now
    this.waited = now - asked.since
    this.renewUntil = asked.renew ? now + asked.maxHold : now
    this.number = number
    this.#deadline = deadline
    const proven = deadline - now >= claim.lease * PROVEN
    // When a grant is barely proven, its start is unknown: it was no later than the moment at which this client heard of it.
    this.#askedUntil = proven ? deadline : surelyUntil(now, claim.lease)
    if (this.renewUntil > now) this.#due = deadline - (claim.lease * 2) / 3
    else this.#due = proven ? NEVER : now + CONFIRM_AFTER
  }

  get key(): string {
    return this.claim.key
  }

  get owner(): string {
    return this.claim.owner
  }

  /** Length of the lease, in ms. */
  get length(): number {
    return this.claim.lease
  }

  get state(): HoldState {
    return this.#state
  }

  /** Until when it is surely ours, monotonic ms, if nothing ends it before. */
  get deadline(): number {
    return this.#deadline
  }

  /** For how many ms it is surely ours; 0: it is not. */
  remaining(now: number): number {
    return this.#state.is === 'held' ? Math.max(0, this.#deadline - now) : 0
  }

  /** Aborts when the hold is lost. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#state.is === 'lost') this.#controller.abort(this.#state.loss)
    }
    return this.#controller.signal
  }

  /** Its release has begun. False: it was not held any more. */
  release(resolve: (live: boolean) => void): boolean {
    return this.#enter({ is: 'releasing', resolve })
  }

  /** Its release is over, or the lock was handed on. False: it had ended before. */
  end(): boolean {
    return this.#enter(RELEASED)
  }

  /** False: it had ended before. */
  lose(loss: Loss): boolean {
    if (!this.#enter({ is: 'lost', loss })) return false
    this.#controller?.abort(loss)
    return true
  }

  /** Raises the deadline; it never falls. */
  prolong(deadline: number): void {
    if (deadline > this.#deadline) this.#deadline = deadline
  }

  /** The same, of a hold that lasts longer for the sake of another hold of its owner. */
  raise(deadline: number): void {
    this.#askedUntil = Math.max(this.#askedUntil, deadline)
    this.prolong(deadline)
  }

  /** When the scheduler is to ask Redis about it, monotonic ms. */
  get due(): number {
    return this.#asking || this.#state.is !== 'held' ? NEVER : this.#due
  }

  /** Whether it has been doubted, and the scheduler is about to ask. */
  isNext(now: number): boolean {
    return !this.#asking && this.#doubts > 0 && this.#due <= now
  }

  /** Whether something is being asked about it, or was doubted. */
  get inQuestion(): boolean {
    return this.#asking || this.#renewing > 0 || this.#doubts > 0
  }

  /** Something said that the hold may be gone. */
  doubt(now: number): void {
    this.#due = Math.min(this.#due, now)
    this.#doubts += 1
  }

  /** The scheduler asks: for the lease's whole length, or only whether it is still there. */
  ask(now: number): Question {
    this.#asking = true
    return this.#question(this.renewUntil > now ? this.length : 0)
  }

  /** The scheduler has its answer; or has none, and asks again at this time. */
  answered(again = this.#due): void {
    this.#asking = false
    this.#due = again
  }

  /** Its user asks for `ms` from now. */
  renew(ms: number): Question {
    this.#renewing += 1
    return this.#question(ms)
  }

  /** Its user has an answer, or will not get one. */
  renewed(): void {
    this.#renewing -= 1
  }

  /**
   * Redis has confirmed the hold until this deadline. While the server's clock stands back, the lease seems to last for the
   * step, too; but only until the clock is set right. So it is believed in for no longer than it was asked for, and asked about
   * within a third of its length.
   */
  confirmed({ ms, doubts }: Question, deadline: number, now: number): void {
    if (ms > 0) this.#askedUntil = Math.max(this.#askedUntil, surelyUntil(now, ms))
    this.prolong(Math.min(deadline, this.#askedUntil))
    if (doubts !== this.#doubts) return
    const due = Math.min(this.#deadline - (this.length * 2) / 3, now + this.length / 3)
    this.#due = this.renewUntil > now ? due : NEVER
  }

  #question(ms: number): Question {
    return { hold: this.name, token: this.token, ms, doubts: this.#doubts }
  }

  #enter(state: HoldState): boolean {
    if (!mayFollow[this.#state.is].includes(state.is)) return false
    this.#state = state
    return true
  }
}

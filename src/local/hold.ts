/**
 * A client's hold of a lock, from its grant to its end: what it is, its state, and what Redis has said about it.
 *
 * A record without timers and I/O; its states are in states.ts. lease/renewal.ts asks Redis about it, lease/holds.ts
 * releases it, and its lock hands it on. Each reports the outcome by the methods below. Users see the record as a
 * `Lease`.
 *
 * Whether a hold is certainly ours is computed from the clock at each read. So it is right even if timers cannot run (a
 * blocked event loop, a stopped process). Losing the hold is a separate step, because the loss has to be reported.
 */
import { surelyUntil } from '../clock.ts'
import type { Claim, Granted, HoldName, Prolonging, Via } from '../kind.ts'
import type { Run } from './run.ts'
import { type HoldState, type Loss, mayFollow } from './states.ts'

const HELD: HoldState = { is: 'held' }
const RELEASED: HoldState = { is: 'released' }

/** The call that a grant is for. */
export interface Asked {
  readonly claim: Claim
  /** When the call was made, monotonic ms. */
  readonly since: number
  /** Whether the lease is renewed automatically; `maxHold`: for how many ms. */
  readonly renew: boolean
  readonly maxHold: number
  /** Whether no waiter outside this client is known. */
  readonly alone: boolean
}

/** What Redis is asked about a hold. */
export interface Question extends Prolonging {
  /** How many doubts there had been when it was asked. The answer settles these doubts, but no later ones. */
  readonly doubts: number
}

/**
 * A grant that came by message is proven only from an earlier request, so part of its lease may be over already. If
 * less than this fraction is left, and the lease is not renewed, the rest is fetched by a confirmation. It is sent
 * `CONFIRM_AFTER` ms after the grant, if the hold is still held.
 */
const PROVEN = 0.8
const CONFIRM_AFTER = 25
const NEVER = Number.POSITIVE_INFINITY

export class Hold {
  readonly claim: Claim
  /** The name by which Redis knows it: its own id, unless another hold of this client handed the lock on to it. */
  readonly name: HoldName
  readonly token: number
  readonly via: Via
  /** The run of hand-offs within this client that this hold may continue. */
  readonly run: Run | undefined
  /** When it was granted, monotonic ms. */
  readonly since: number
  /** ms between the call and the grant. */
  readonly waited: number
  /** Until when it is renewed automatically, monotonic ms. Never, if this is not later than `since`. */
  readonly renewUntil: number
  /** The number of this hold among the client's holds, in the order of their grants. */
  readonly number: number
  #state: HoldState = HELD
  #deadline: number
  /** The latest time until which the lock was asked for, monotonic ms. */
  #askedUntil: number
  /** When Redis is to be asked next, monotonic ms. */
  #due: number
  /** Whether the scheduler has asked Redis and got no answer yet. */
  #asking = false
  /** How many renewals called by the user are unanswered. */
  #renewing = 0
  /** How often something said that the hold may be gone. */
  #doubts = 0
  /** Created when the signal is first read: most holds end without it. */
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
    // If a grant is barely proven, it is unknown when its lease started. It started no later than the moment when this
    // client heard of the grant.
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

  /** Until when it is certainly ours, monotonic ms, unless it ends before. */
  get deadline(): number {
    return this.#deadline
  }

  /** How many ms it is certainly ours; 0: it is not. */
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

  /** Its release has begun. False: it was no longer held. */
  release(resolve: (live: boolean) => void): boolean {
    return this.#enter({ is: 'releasing', resolve })
  }

  /** Its release is over, or the lock was handed on. False: it had ended before. */
  end(): boolean {
    return this.#enter(RELEASED)
  }

  /** It is lost: aborts the signal. False: it had ended before. */
  lose(loss: Loss): boolean {
    if (!this.#enter({ is: 'lost', loss })) return false
    this.#controller?.abort(loss)
    return true
  }

  /** Raises the deadline; it never falls. */
  prolong(deadline: number): void {
    if (deadline > this.#deadline) this.#deadline = deadline
  }

  /** As `prolong`, for a hold that lasts longer because another hold of its owner has a longer lease. */
  raise(deadline: number): void {
    this.#askedUntil = Math.max(this.#askedUntil, deadline)
    this.prolong(deadline)
  }

  /** When the scheduler is to ask Redis about it, monotonic ms. */
  get due(): number {
    return this.#asking || this.#state.is !== 'held' ? NEVER : this.#due
  }

  /** Whether it has been doubted and the scheduler is about to ask Redis. */
  isNext(now: number): boolean {
    return !this.#asking && this.#doubts > 0 && this.#due <= now
  }

  /** Whether Redis is being asked about it, or it was doubted. */
  get inQuestion(): boolean {
    return this.#asking || this.#renewing > 0 || this.#doubts > 0
  }

  /** Something said that the hold may be gone: the scheduler is to ask Redis now. */
  doubt(now: number): void {
    this.#due = Math.min(this.#due, now)
    this.#doubts += 1
  }

  /** The scheduler asks Redis: to prolong it by the whole lease, or only whether it still exists (0 ms). */
  ask(now: number): Question {
    this.#asking = true
    return this.#question(this.renewUntil > now ? this.length : 0)
  }

  /** The scheduler has its answer. `again`: it has none, and asks again at this time. */
  answered(again = this.#due): void {
    this.#asking = false
    this.#due = again
  }

  /** The user asks for the hold to last `ms` from now. */
  renew(ms: number): Question {
    this.#renewing += 1
    return this.#question(ms)
  }

  /** The user's request was answered, or never will be. */
  renewed(): void {
    this.#renewing -= 1
  }

  /**
   * Redis has confirmed the hold until this deadline. If the server's clock was set back, the lease seems to last
   * longer by that step, but only until the clock is set right again. So the hold is never believed in for longer than
   * it was asked for, and Redis is asked again within a third of its length.
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

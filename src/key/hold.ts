/**
 * A client's hold of a lock, from its grant to its end: its data, its state, and what Redis has confirmed.
 *
 *     held ──▶ releasing ──▶ released       If the lock is handed on, `released` follows `held` directly.
 *       └──────────┴───────▶ lost
 *
 * This file has no timers and no I/O. renewals.ts renews the hold, holds.ts releases it, and its key hands it on. They
 * call the methods below to say what has happened. Users see the hold as a `Lease`.
 *
 * Each call of `remaining` computes from the clock how long this client can still rely on the hold. So the result is
 * right even if timers cannot run (a blocked event loop, a stopped process). Losing the hold is a separate step,
 * because the loss has to be reported.
 */
import { surelyUntil, toMicros } from '../clock.ts'
import type { LockClosedError, LockLostError } from '../errors.ts'
import type { Announced, Claim, Granted, HoldName, RenewalRequest, Via } from '../kind.ts'
import type { Listed } from '../list.ts'
import type { Run, RunRecords } from './run.ts'

/** The reason for a lost hold: its client was closed, or the hold ended in another way, such as by its lease. */
export type Loss = LockLostError | LockClosedError

export type HoldState =
  | { readonly is: 'held' }
  /** `resolve` settles the promise of the release: with false if the hold's deadline passes before Redis answers. */
  | { readonly is: 'releasing'; readonly resolve: (live: boolean) => void }
  | { readonly is: 'released' }
  /** The hold's deadline passed, Redis no longer knew the hold, or the client was closed. */
  | { readonly is: 'lost'; readonly loss: Loss }

const HELD: HoldState = { is: 'held' }
const RELEASED: HoldState = { is: 'released' }

/** What a call asked for, before it was granted the lock. */
export interface HoldTerms {
  readonly claim: Claim
  /** When the call was made, in monotonic ms. */
  readonly since: number
  /** Whether the lease is renewed automatically. Renewal stops `maxHold` ms after the grant. */
  readonly renew: boolean
  readonly maxHold: number
}

/** A question to Redis about a hold. It asks Redis to prolong the hold, or only asks whether the hold exists. */
export interface HoldQuestion extends RenewalRequest {
  /**
   * How many reports that the hold may be gone had arrived when the question was sent. The answer says nothing about
   * reports that arrive later.
   */
  readonly doubts: number
  /** When the question was sent, in monotonic ms. */
  readonly sent: number
}

/**
 * If a message announced the grant, the client does not know when the lease began. But it sent a request before the
 * lease began, and counts the lease from that request. So the true deadline may be later than the counted one. If less
 * than the fraction `PROVEN` of the lease is left until the counted deadline, and the lease is not renewed
 * automatically, the client asks Redis for the true deadline. It does so `CONFIRM_AFTER` ms after the grant, unless the
 * hold has ended by then.
 */
const PROVEN = 0.8
const CONFIRM_AFTER = 25
const NEVER = Number.POSITIVE_INFINITY

/** A hold's key, as far as the hold's end concerns it (key.ts). */
export interface HoldKey {
  readonly holds: {
    readonly oldest: Hold | undefined
    add(hold: Hold): void
    ofGrant(hold: Hold): readonly Hold[]
    runOf(claim: Claim, grant: Granted, now: number, records: RunRecords): Run | undefined
    endRun(run: Run): void
  }
  handOn(hold: Hold, now: number): boolean
  lacksNext(hold: Hold, now: number): boolean
  dropHold(hold: Hold): void
  onReleasing(now: number): void
  onReleased(now: number): void
  wake(now: number): void
}

/** Who keeps a hold (holds.ts): what its lease, messages and renewals ask for. */
export interface HoldKeeper {
  remaining(hold: Hold): number
  lasts(hold: Hold): boolean
  renew(hold: Hold, ms: number): Promise<void>
  release(hold: Hold): Promise<boolean>
  /** Asks Redis whether the hold still exists, if a message reports a grant to its id with this token. */
  doubt(hold: Hold, token?: number): void
  onGrant(hold: Hold, grant: Announced): boolean
  onTaken(hold: Hold, why: string | undefined): void
  /** The hold is over: Redis no longer knows it. */
  onUnknown(hold: Hold): void
  /** The hold is over, and Redis has granted the lock to the same id again. */
  onReplaced(hold: Hold): void
  /** The hold's deadline has passed. */
  onDeadline(hold: Hold): void
  onRenewed(hold: Hold): void
  /** The hold has lasted for longer than most. This is told once. */
  onLasting(hold: Hold): void
  /** Reports a failure that no caller's promise reports. */
  failed(error: unknown): void
}

export class Hold implements Listed<Hold> {
  readonly claim: Claim
  /** The hold's key. */
  readonly of: HoldKey
  readonly keeper: HoldKeeper
  /**
   * The name by which Redis knows the hold. After a hand-off within this client, Redis still uses the name of the first
   * hold in the run of hand-offs.
   */
  name: HoldName
  readonly token: number
  readonly via: Via
  /** The numbers of the permits, if the call has asked for them. */
  readonly slots: readonly number[] | undefined
  /** The run of hand-offs within this client to which this hold belongs. */
  readonly run: Run | undefined
  /** When the caller got the hold, in monotonic ms. Until then, when Redis granted it. */
  since: number
  /** How many ms the call waited for the hold. */
  waited: number
  /**
   * Until when the lease is renewed automatically, in monotonic ms. If this time is not later than `since`, the lease
   * is never renewed automatically.
   */
  readonly renewUntil: number
  /** The hold's number among the client's holds, in the order of their grants. */
  readonly number: number
  list: Listed<Hold>['list']
  before: Hold | undefined
  after: Hold | undefined
  /** The hold's entry in the schedule (schedule.ts). */
  slot = -1
  dueAt = NEVER
  /** The lease that the caller got, until renewals.ts begins to watch whether the program forgets it. */
  lease: object | undefined
  /** Whether a message has said that a forced release took the hold away, and Redis has not denied it since. */
  forced = false
  #state: HoldState = HELD
  #deadline: number
  /** The deadline is counted from a request that was sent at this time or later, in monotonic ms. */
  #sent: number
  /** The furthest time until which this client has asked Redis to keep the hold, in monotonic ms. */
  #askedUntil: number
  /** When Redis is next to be asked about the hold, in monotonic ms. */
  #due: number
  /** Whether the scheduler (renewals.ts) has asked Redis and still waits for the answer. */
  #asking = false
  /** How many of the user's `renew` calls are unanswered. */
  #renewing = 0
  /** How many reports have said that the hold may be gone. */
  #doubts = 0
  /** Created when the signal is first read, because most holds end before that. */
  #controller: AbortController | undefined

  constructor(
    asked: HoldTerms,
    of: HoldKey,
    keeper: HoldKeeper,
    grant: Granted,
    run: Run | undefined,
    now: number,
    number: number,
  ) {
    const { claim } = asked
    const { deadline } = grant
    this.claim = claim
    this.of = of
    this.keeper = keeper
    this.name = run?.name ?? claim
    this.token = grant.token
    this.via = grant.via
    this.slots = grant.slots
    this.run = run
    this.since = now
    this.waited = toMicros(now - asked.since)
    this.renewUntil = asked.renew ? now + asked.maxHold : now
    this.number = number
    this.#deadline = deadline
    this.#sent = Math.min(now, deadline - surelyUntil(0, claim.lease))
    const proven = deadline - now >= claim.lease * PROVEN
    // If the grant is not `proven`, the true deadline may be later than `deadline`. But the lease has begun by now.
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

  /** The length of the lease, in ms. */
  get length(): number {
    return this.claim.lease
  }

  get state(): HoldState {
    return this.#state
  }

  /** The time, in monotonic ms, until which this client can rely on the hold, if nothing ends the hold earlier. */
  get deadline(): number {
    return this.#deadline
  }

  /** The deadline is as reliable as the client's clock was since this time (`Clock.behind`). In monotonic ms. */
  get sent(): number {
    return this.#sent
  }

  /** Returns for how many ms this client can still rely on the hold; 0 if the hold may have ended. */
  remaining(now: number): number {
    return this.#state.is === 'held' ? Math.max(0, this.#deadline - now) : 0
  }

  /** What a message says about a grant to the id of this hold. Returns false if the grant has to be given back. */
  granted(grant: Announced): boolean {
    return this.keeper.onGrant(this, grant)
  }

  /** A message says that the hold was taken away. `why`: it certainly was, for this reason. */
  taken(_token: number, why?: string): void {
    this.keeper.onTaken(this, why)
  }

  /** Aborts when the hold is lost. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#state.is === 'lost') this.#controller.abort(this.#state.loss)
    }
    return this.#controller.signal
  }

  /** The caller gets the hold now, some time after its grant, because replicas had to have it before. */
  begin(now: number): void {
    const late = now - this.since
    this.since = now
    this.waited += late
    this.run?.delay(late)
  }

  /** The caller has done nothing under the lock, so its release need not wait for `minHold`. */
  unused(): void {
    const { key, id } = this.name
    this.name = { key, id }
  }

  /** Marks the hold as being released. Returns false if it was no longer held. */
  release(resolve: (live: boolean) => void): boolean {
    if (this.#state.is !== 'held') return false
    this.#state = { is: 'releasing', resolve }
    return true
  }

  /** Marks the hold as released, or as handed on. Returns false if it had ended before. */
  end(): boolean {
    const { is } = this.#state
    if (is !== 'held' && is !== 'releasing') return false
    this.#state = RELEASED
    return true
  }

  /** Marks the hold as lost, and aborts the signal. Returns false if it had ended before. */
  lose(loss: Loss): boolean {
    const { is } = this.#state
    if (is !== 'held' && is !== 'releasing') return false
    this.#state = { is: 'lost', loss }
    this.#controller?.abort(loss)
    return true
  }

  /** Moves the deadline to a later time, never to an earlier one. */
  prolong(deadline: number): void {
    if (deadline > this.#deadline) this.#deadline = deadline
  }

  /** Prolongs the hold because its owner has taken another hold with a longer lease. */
  raise(deadline: number): void {
    this.#askedUntil = Math.max(this.#askedUntil, deadline)
    this.prolong(deadline)
  }

  /** When the scheduler (renewals.ts) has to ask Redis about the hold, in monotonic ms. */
  get due(): number {
    return this.#asking || this.#state.is !== 'held' ? NEVER : this.#due
  }

  /** Returns whether Redis is about to be asked about the hold, because a report has said that the hold may be gone. */
  isNext(now: number): boolean {
    return !this.#asking && this.#doubts > 0 && this.#due <= now
  }

  /** Whether a report has said that the hold may be gone, or a question to Redis about the hold is unanswered. */
  get inQuestion(): boolean {
    return this.#asking || this.#renewing > 0 || this.#doubts > 0
  }

  /** Notes a report that the hold may be gone. The scheduler (renewals.ts) has to ask Redis now. */
  doubt(now: number): void {
    this.#due = Math.min(this.#due, now)
    this.#doubts += 1
  }

  /**
   * Returns the question about the hold that renewals.ts sends to Redis. While the lease is renewed automatically,
   * the question asks to prolong the hold. Otherwise it asks only whether the hold still exists (0 ms).
   */
  ask(now: number): HoldQuestion {
    this.#asking = true
    return this.#question(this.renewUntil > now ? this.length : 0, now)
  }

  /**
   * Redis has answered the question from `ask`, or has failed to answer. In the second case, `again` is the time of the
   * next question.
   */
  answered(again = this.#due): void {
    this.#asking = false
    this.#due = again
  }

  /** Returns the question that a user's call of `renew` sends to Redis: to make the hold last `ms` from now. */
  renew(ms: number, now: number): HoldQuestion {
    this.#renewing += 1
    return this.#question(ms, now)
  }

  /** The question of a user's `renew` call was answered or has failed. */
  renewed(): void {
    this.#renewing -= 1
  }

  /**
   * Redis has confirmed the hold until `deadline`. If the server's clock was set back, `deadline` is too late, because
   * the lease will end earlier once the clock is corrected. So this client never relies on the hold for longer than it
   * has asked for. It asks Redis again within a third of the lease's length.
   *
   * `behind`: by how many ms the present deadline may be too late, because the client's clock may have stood still.
   */
  confirmed({ ms, doubts, sent }: HoldQuestion, deadline: number, now: number, behind: number): void {
    if (ms > 0) this.#askedUntil = Math.max(this.#askedUntil, surelyUntil(now, ms))
    this.#deadline = Math.max(this.#deadline - behind, Math.min(deadline, this.#askedUntil))
    this.#sent = Math.max(this.#sent, sent)
    if (doubts !== this.#doubts) return
    this.forced = false
    const due = Math.min(this.#deadline - (this.length * 2) / 3, now + this.length / 3)
    this.#due = this.renewUntil > now ? due : NEVER
  }

  #question(ms: number, sent: number): HoldQuestion {
    return { hold: this.name, token: this.token, ms, doubts: this.#doubts, sent }
  }
}

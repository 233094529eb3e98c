/**
 * Everything that this client knows of one lock: its waiters, its holds, and what replies and messages have said about
 * the lock. This file has no I/O and no timer. Each public method reports an event. To act on the event, the lock calls
 * `WaitEffects` and `HoldEffects`; wait/acquire.ts and lease/holds.ts implement them.
 *
 *      line    unfair waiters, first come first; only the head asks    A ─ B ─ C     line.ts
 *      queue   fair waiters; Redis keeps their order                 { D, E }        queue.ts
 *      tenancy the holds (mostly one), and their run of hand-offs    { F }           tenancy.ts, hold.ts, run.ts
 *
 * A waiter's grant can arrive in a reply, in a message or in the answer to a heartbeat, and the same grant can arrive
 * more than once. The caller can also give up. The wait ends with whichever comes first, the grant or the caller's
 * decision. states.ts says what each later event does.
 */
import { LockClosedError, LockConnectionError } from '../errors.ts'
import type { Granted, Holder, Refused, Renewed, Via } from '../kind.ts'
import { type Asker, type Attempt, type Common, UNDO_PAUSE } from './effects.ts'
import type { Hold } from './hold.ts'
import { Line, type LineOwner } from './line.ts'
import { Queue, type QueueOwner } from './queue.ts'
import type { Inherited } from './run.ts'
import { announced, atPlace, holding, inState, over, type Place, type State, standing } from './states.ts'
import { goesOn, Tenancy } from './tenancy.ts'
import type { WaiterRecord } from './waiter.ts'

const tooLate = new Error('the lease ended before enough replicas had confirmed the grant')

export class LocalLock implements Asker, LineOwner, QueueOwner {
  readonly key: string
  readonly line: Line
  readonly tenancy = new Tenancy()
  readonly #common: Common
  /** The fair waiters. Created when needed, because a lock with only unfair waiters needs no queue. */
  #queue: Queue | undefined
  /** How many waiters have joined neither the line nor the queue. Includes waiters that make only a single attempt. */
  #arriving = 0
  /** The newest report of who holds the lock, whichever waiter received it; undefined if there was no report. */
  #holder: Holder | 'released' | undefined
  /** Whether a waiter's grant is being turned into a hold at this moment. */
  #granting = false

  constructor(key: string, common: Common) {
    this.key = key
    this.#common = common
    this.line = new Line(this, common.turns, common.waitEffects, common.shared)
  }

  get queue(): Queue {
    this.#queue ??= new Queue(this)
    return this.#queue
  }

  /** How many waiters are in the line and in the queue. */
  get waiting(): number {
    return this.line.size + (this.#queue?.size ?? 0)
  }

  // Methods for the arrival of a waiter.

  arrive(): void {
    this.#arriving += 1
  }

  /**
   * Sends an attempt for this waiter only, outside the line. While it is the turn of other clients, the waiter joins
   * the line instead. So a re-entry can take a few ms longer. A waiter that makes only a single attempt does not join
   * the line.
   */
  tryAlone(waiter: WaiterRecord): void {
    if (waiter.wish.mode !== 'once' && this.#common.turns.wait(this.key) > 0) this.stand(waiter)
    else this.ask(waiter, 'alone')
  }

  /** Adds the waiter at the end of the line. */
  stand(waiter: WaiterRecord): void {
    this.#moveTo(waiter, standing)
    this.line.join(waiter)
  }

  /** Makes this a fair waiter. If it stands in the line, it leaves the line. */
  announce(waiter: WaiterRecord): void {
    this.#moveTo(waiter, announced)
    this.line.leave(waiter)
    this.queue.add(waiter)
  }

  /** Asks Redis for a place in the queue. Called for a fair waiter, once the subscription to its inbox is active. */
  join(waiter: WaiterRecord): void {
    if (waiter.place?.is === 'announced') this.#moveTo(waiter, { is: 'joining', grantAnnounced: false })
    this.ask(waiter, 'to-join')
  }

  // Methods that receive answers.

  answered(waiter: WaiterRecord, attempt: Attempt, join: boolean, answer: Granted | Refused): void {
    waiter.unanswered -= 1
    waiter.answered = true
    if (answer.granted) this.#granted(waiter, waiter.asSeen(answer))
    else this.#refused(waiter, join, answer)
    if (attempt === 'as-head') this.line.answered(waiter, answer)
    else if (answer.granted || !waiter.waits) return
    else if (attempt === 'to-join') this.#joined(waiter, answer)
    else if (attempt !== 'alone') return
    else if (waiter.wish.mode === 'once') this.end(waiter, undefined)
    else this.stand(waiter)
  }

  /**
   * Called when Redis has answered whether replicas have the grant (see `Asker.confirmed`). `deadline` depends on the
   * server's clock, which may be wrong. So `confirmedUntil` limits the hold to the length of the lease.
   */
  confirmed(waiter: WaiterRecord, grant: Granted, begun: number, deadline: Renewed): void {
    if (!waiter.waits) return
    const until = waiter.confirmedUntil(grant, begun, deadline)
    if (until > this.now()) {
      this.hold(waiter, { ...grant, deadline: until })
      // Waiters may have joined the line during the confirmation. They have not tried yet.
      this.line.wake()
    } else if (!this.#outOfPatience(waiter, begun, new LockConnectionError('the lock was not replicated', tooLate))) {
      this.undone(waiter)
    }
  }

  unconfirmed(waiter: WaiterRecord, begun: number, error: Error): void {
    if (waiter.waits && !this.#outOfPatience(waiter, begun, error)) this.#common.requests.undo(this, waiter)
  }

  undone(waiter: WaiterRecord): void {
    const { place } = waiter
    if (!place) return
    waiter.state = place
    this.#again(waiter)
  }

  // Methods that receive messages and other reports about the lock.

  /** Called when another client has announced that the lock is free. The head tries when it is this client's turn. */
  unlocked(): void {
    if (this.#inUse) this.#holder = 'released'
    this.line.wake()
  }

  /**
   * Called when this client sends its release. The hand-off time in the statistics is the time from now to the next
   * grant.
   */
  releasing(): void {
    this.#common.turns.releasing(this.key)
    if (this.#inUse) this.line.releasedAt = this.now()
  }

  /**
   * Called when this client has released the lock. `others`: how many other clients have received the message about it.
   */
  released(others: number): void {
    if (this.#inUse) this.#holder = 'released'
    this.line.released(others)
  }

  /**
   * Called when it is known that this owner holds the lock. The owner's waiters ask to re-enter. Each waiter sends a
   * request of its own, because each hold has an id of its own, by which it is released.
   */
  entered(owner: string): void {
    for (const waiter of [...this.line.waiters, ...(this.#queue?.waiters ?? [])]) {
      if (waiter.claim.owner === owner && waiter.wish.mayReenter) this.reenter(waiter)
    }
  }

  reenter(waiter: WaiterRecord): void {
    if (!waiter.confirming) this.ask(waiter, 'to-re-enter')
  }

  /**
   * Called when a message announces a grant. The message alone does not say when the grant was made. The reply to an
   * earlier request may prove that the grant was made after that request was sent. If so, this client counts the lease
   * from the time at which it sent that request. Otherwise it asks Redis about the grant.
   */
  granted(waiter: WaiterRecord, token: number, via: Via): void {
    const { place } = waiter
    if (!place || atPlace[place.is].message === 'ignore') return
    const grant = waiter.proven(token, via, this.now())
    if (grant) this.#granted(waiter, grant)
    else this.#prove(waiter)
  }

  /**
   * Called when a message says that the grant with this token was taken away, and the waiter has not received that
   * grant yet. If the reply with the grant arrives later, the waiter must not use the grant.
   */
  lost(waiter: WaiterRecord, token: number): void {
    waiter.lost = token
  }

  /**
   * Called when the answer to a heartbeat, or to this client's own release, contains a grant. If the lease of this
   * grant is already over, the grant is not used, and Redis is asked again. This is done only once for each waiter,
   * because the lease may be shorter than any round trip, and then every answer arrives too late.
   */
  found(waiter: WaiterRecord, grant: Granted): void {
    const dead = waiter.waits && grant.deadline <= this.now()
    if (!dead || waiter.late) return this.#granted(waiter, grant)
    waiter.late = true
    this.#prove(waiter)
  }

  /**
   * Reads the lock's state from Redis again. The queue sends a heartbeat. The line sends an attempt, whose refusal
   * names the holder.
   */
  look(): void {
    this.#queue?.look()
    this.line.look()
  }

  // Methods for the end of a wait.

  /**
   * Ends the wait without the lock: because of an error, because the caller gave up, or because a single attempt was
   * refused.
   */
  end(waiter: WaiterRecord, error: Error | undefined): void {
    const { end } = inState[waiter.state.is]
    if (end === 'ignore') return
    this.#settle(waiter, over)
    if (end === 'leave' || waiter.unanswered > 0) this.#common.requests.leave(waiter)
    waiter.settle(error, waiter)
  }

  /**
   * Ends the wait with a grant. `handOn` calls this method for a hand-off within the client. Then no replica is asked,
   * because the replicas have already confirmed the hold that is handed on.
   */
  hold(waiter: WaiterRecord, grant: Granted): void {
    const { line } = this
    waiter.alone = line.alone
    if (line.releasedAt !== undefined) waiter.handoff = this.now() - line.releasedAt
    line.releasedAt = undefined
    this.#common.turns.taken(this.key, grant.via === 'immediate' || grant.via === 'wakeup')
    this.#granting = true
    this.#settle(waiter, holding)
    waiter.settle(grant, waiter)
    this.#granting = false
    this.#forgetIfIdle()
  }

  #settle(waiter: WaiterRecord, state: State): void {
    const { inQueue } = waiter
    this.#moveTo(waiter, state)
    this.#effects.settled(waiter)
    this.line.leave(waiter)
    this.#queue?.leave(waiter)
    // The head asks Redis on behalf of the whole line. So if the head's refusal is newer than this waiter's own
    // refusal, it better explains why the wait ended.
    const { refusal } = this.line
    if (refusal && !inQueue && refusal.sent > (waiter.refusal?.sent ?? 0)) waiter.refusal = refusal
    if (state === over && waiter.refusal) waiter.refusal = this.upToDate(waiter.refusal)
    this.rested()
  }

  #granted(waiter: WaiterRecord, grant: Granted): void {
    const { grant: meaning } = inState[waiter.state.is]
    if (meaning === 'take-back') return this.#common.requests.leave(waiter)
    if (meaning === 'check') return this.#effects.check(waiter, grant.token)
    if (this.#common.closed) {
      this.#settle(waiter, over)
      this.#common.requests.leave(waiter)
      return waiter.settle(new LockClosedError(), waiter)
    }
    // `waiter.lost` is the token of a grant that was taken away, according to a message. The message may be forged. So
    // the token is used only once, and a forged message costs the waiter only one more attempt.
    const lost = grant.token <= waiter.lost
    waiter.lost = 0
    if (lost && waiter.wish.mode !== 'once') return this.#again(waiter)
    const { confirm } = this.#common.requests
    if (!confirm) {
      this.hold(waiter, grant)
      if (lost) this.#effects.check(waiter, Number.POSITIVE_INFINITY)
    } else if (waiter.confirm(grant)) confirm(this, waiter, grant)
  }

  /**
   * Called when replicas did not confirm a grant. If the waiter makes only a single attempt, its wait ends. Otherwise
   * the waiter would make its next attempt in `UNDO_PAUSE` ms. If it will have tried for `patience` ms or longer by
   * then, its wait ends now. Returns whether the wait has ended.
   */
  #outOfPatience(waiter: WaiterRecord, begun: number, error: Error): boolean {
    waiter.unconfirmedSince ??= begun
    const waited = this.now() + UNDO_PAUSE - waiter.unconfirmedSince
    const ended = waiter.wish.mode === 'once' || waited >= this.#common.patience
    if (ended) this.end(waiter, error)
    return ended
  }

  /**
   * Makes a waiter ask again after a grant that it must not use. How it asks depends on the place where it waits
   * (`atPlace` in states.ts).
   */
  #again(waiter: WaiterRecord): void {
    const { again } = atPlace[(waiter.place as Place).is]
    if (again === 'stand') this.stand(waiter)
    else if (again === 'try') this.line.tryNow()
    else if (again === 'join') this.join(waiter)
    else if (again === 'look') this.#common.heartbeat.look(this)
  }

  #refused(waiter: WaiterRecord, join: boolean, refusal: Refused): void {
    const { place } = waiter
    if (!place) {
      if (join) this.takeBack(waiter)
    } else if (join || atPlace[place.is].refused === 'wait') {
      waiter.refusal = refusal
      this.#holder = refusal.holder
      this.park(waiter)
    }
  }

  takeBack(waiter: WaiterRecord): void {
    if (waiter.state === over) this.#common.requests.leave(waiter)
    else this.#effects.check(waiter)
  }

  #joined(waiter: WaiterRecord, { ticket, sent, ttl }: Refused): void {
    const { place } = waiter
    this.#moveTo(waiter, { is: 'queued', ticket })
    waiter.seen = sent
    // If a message announced a grant before this reply arrived, Redis is asked now whether there is such a grant. Redis
    // could not be asked earlier, because the question needs the waiter's ticket.
    if (place?.is === 'joining' && place.grantAnnounced) this.#common.heartbeat.look(this)
    else this.#common.heartbeat.lookWithin(this, ttl)
  }

  /**
   * Asks Redis about a grant before it is used. The token in Redis's answer counts, not the token in the message: the
   * waiter may have been granted the lock again after the message was sent.
   */
  #prove(waiter: WaiterRecord): void {
    if (waiter.place?.is === 'joining') this.#moveTo(waiter, { is: 'joining', grantAnnounced: true })
    this.#common.heartbeat.look(this)
  }

  // Methods for handing the lock on within the client.

  /**
   * Ends the hold and hands the lock on to the next waiter of this client. Returns false if the lock must be released
   * in Redis.
   */
  handOn(hold: Hold): boolean {
    const { run } = hold
    if (!run || !this.#heir(hold) || !this.tenancy.end(hold, this.now())) return false
    const { holdEffects } = this.#common
    holdEffects.handedOn(hold)
    // `handedOn` emits an event. A listener may have closed the client, or aborted the call of the waiter that was to
    // get the lock. So the next waiter is looked up again.
    const heir = this.#heir(hold)
    if (heir && run.left(this.now()) > 0) {
      holdEffects.recordLater(run)
      const grant: Inherited = { granted: true, token: run.issue(), deadline: hold.deadline, via: 'handoff', run }
      this.hold(heir, grant)
    } else {
      this.tenancy.endRun(run)
      holdEffects.forget(run)
      holdEffects.abandoned(run)
    }
    return true
  }

  /** Returns whether the hold could hand the lock on, but the lock has no waiter in this client. */
  wantsHeir(hold: Hold): boolean {
    return this.waiting === 0 && goesOn(hold, this.now())
  }

  ours(): Refused | undefined {
    return this.tenancy.refusal(this.now())
  }

  dropHold(hold: Hold): void {
    this.tenancy.drop(hold)
    this.#forgetIfIdle()
  }

  /**
   * Returns the waiter that may take over the hold's lease without asking Redis. It is the head of the line, if no fair
   * waiter of this client waits, the head cannot re-enter, and it asks for a lease of the same length.
   */
  #heir({ length }: Hold): WaiterRecord | undefined {
    const head = this.#queue?.size ? undefined : this.line.head
    return head && !head.wish.mayReenter && head.claim.lease === length ? head : undefined
  }

  // Methods that all groups above use.

  /** Whether the lock has waiters in this client, or an answer for a former waiter is still to come. */
  get #inUse(): boolean {
    return this.line.asking || this.waiting > 0 || this.#queue?.tending === true
  }

  ask(waiter: WaiterRecord, attempt: Attempt, reserve = false): void {
    waiter.unanswered += 1
    const join = attempt === 'to-join' || (attempt === 'to-re-enter' && waiter.inQueue)
    // From now on, a message can announce a grant to this waiter. To check such a message, `proven` in waiter.ts needs
    // the time of this request.
    if (join) waiter.seen ??= this.now()
    this.#common.requests.ask(this, waiter, attempt, join, reserve)
  }

  #moveTo(waiter: WaiterRecord, to: State): void {
    if (waiter.place?.is === 'arriving') this.#arriving -= 1
    waiter.moveTo(to)
  }

  /** Marks the waiter as parked, and emits its `waiting` event once. */
  park(waiter: WaiterRecord): void {
    if (waiter.parked || waiter.wish.mode === 'once') return
    waiter.parked = true
    this.#effects.parked(waiter)
  }

  lookWithin(ttl: number): void {
    this.#common.heartbeat.lookWithin(this, ttl)
  }

  now(): number {
    return this.#common.requests.now()
  }

  tend(waiters: readonly WaiterRecord[]): void {
    this.#common.requests.tend(this, waiters)
  }

  learn(holder: Holder | undefined): void {
    this.#holder = holder
  }

  upToDate(refusal: Refused): Refused {
    const holder = this.#holder === 'released' ? undefined : (this.#holder ?? refusal.holder)
    return holder === refusal.holder ? refusal : { ...refusal, holder }
  }

  /** Forgets what is known about the lock, if it has no waiters in this client. */
  rested(): void {
    if (this.#inUse) return
    this.#holder = undefined
    this.line.forget()
    this.#effects.empty(this)
    this.#forgetIfIdle()
  }

  #forgetIfIdle(): void {
    if (this.tenancy.empty && !this.#granting && this.#arriving === 0 && !this.#inUse) this.#common.forget(this)
  }

  get #effects() {
    return this.#common.waitEffects
  }
}

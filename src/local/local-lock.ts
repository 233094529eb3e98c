/**
 * Everything that this client knows of one lock: its waiters, its holds, and what it has heard about the lock. This
 * file has no I/O and no timer. Each public method reports an event. The lock asks `WaitEffects` and `HoldEffects` to
 * act on it; wait/acquire.ts and lease/holds.ts implement them.
 *
 *      line    unfair waiters, first come first; only the head asks    A ─ B ─ C     line.ts
 *      queue   fair waiters, whose order is that of Redis            { D, E }        queue.ts
 *      tenancy the holds, mostly one, and the run of hand-offs       { F }           tenancy.ts, hold.ts, run.ts
 *
 * A grant can come in a reply, in a message or from a heartbeat. The same grant can come more than once, and too late,
 * and the caller can give up in between. The first of these events settles the waiter; states.ts says what the later
 * ones do.
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

const tooLate = new Error('its lease ended before enough replicas confirmed the grant')

export class LocalLock implements Asker, LineOwner, QueueOwner {
  readonly key: string
  readonly line: Line
  readonly tenancy = new Tenancy()
  readonly #common: Common
  /** Created when needed. A lock with only unfair waiters needs none. */
  #queue: Queue | undefined
  /** How many waiters are in no line or queue yet. These include single attempts. */
  #arriving = 0
  /** The newest report of who holds the lock, whichever waiter received it. Undefined: there was none. */
  #holder: Holder | 'released' | undefined
  /** Whether a waiter is being turned into a hold at this moment. */
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

  // The arrival of a waiter.

  arrive(): void {
    this.#arriving += 1
  }

  /**
   * Sends an attempt of this waiter alone, outside the line. But if it is other clients' turn, the waiter joins the
   * line, and so re-enters a few ms later.
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

  /** Makes the waiter a fair one, which leaves the line. */
  announce(waiter: WaiterRecord): void {
    this.#moveTo(waiter, announced)
    this.line.leave(waiter)
    this.queue.add(waiter)
  }

  /** Asks Redis for a place in the queue, for a fair waiter that hears its inbox. */
  join(waiter: WaiterRecord): void {
    if (waiter.place?.is === 'announced') this.#moveTo(waiter, { is: 'joining', told: false })
    this.ask(waiter, 'to-join')
  }

  // Answers.

  answered(waiter: WaiterRecord, attempt: Attempt, join: boolean, answer: Granted | Refused): void {
    waiter.unanswered -= 1
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
   * Called when replicas, asked at `begun`, have this grant until `deadline`. The deadline comes from the server's
   * clock, so it is checked. If `deadline` is not a number, the grant is gone.
   */
  confirmed(waiter: WaiterRecord, grant: Granted, begun: number, deadline: Renewed): void {
    if (!waiter.waits) return
    const until = waiter.confirmedUntil(grant, begun, deadline)
    if (until > this.now()) {
      this.hold(waiter, { ...grant, deadline: until })
      // Waiters that joined the line in the meantime have to try.
      this.line.wake()
    } else if (!this.#outOfPatience(waiter, begun, new LockConnectionError('the lock was not replicated', tooLate))) {
      this.undone(waiter)
    }
  }

  /** Called when too few replicas have the grant. */
  unconfirmed(waiter: WaiterRecord, begun: number, error: Error): void {
    if (waiter.waits && !this.#outOfPatience(waiter, begun, error)) this.#common.requests.undo(this, waiter)
  }

  /** Called after a grant that replicas did not confirm has been taken back. */
  undone(waiter: WaiterRecord): void {
    const { place } = waiter
    if (!place) return
    waiter.state = place
    this.#again(waiter)
  }

  // News.

  /** Called when another client has announced that the lock is free. The head tries when it is this client's turn. */
  unlocked(): void {
    if (this.#inUse) this.#holder = 'released'
    this.line.wake()
  }

  /** Called when this client sends its release. The hand-off time is the time from now to the next grant. */
  releasing(): void {
    this.#common.turns.releasing(this.key)
    if (this.#inUse) this.line.releasedAt = this.now()
  }

  /** Called when this client has released the lock, and `others` other clients have received the message. */
  released(others: number): void {
    if (this.#inUse) this.#holder = 'released'
    this.line.released(others)
  }

  /**
   * Called when the owner with this name holds the lock: its waiters ask to re-enter. Each waiter asks for itself,
   * because each hold has its own id, by which it is released.
   */
  entered(owner: string): void {
    for (const waiter of [...this.line.waiters, ...(this.#queue?.waiters ?? [])]) {
      if (waiter.claim.owner === owner && waiter.wish.mayReenter && !waiter.confirming) this.ask(waiter, 'to-re-enter')
    }
  }

  /** Called when a message brings a grant. The lease counts from an earlier request, or Redis is asked for a proof. */
  granted(waiter: WaiterRecord, token: number, via: Via): void {
    const { place } = waiter
    if (!place || atPlace[place.is].message === 'ignore') return
    const grant = waiter.proven(token, via, this.now())
    if (grant) this.#granted(waiter, grant)
    else this.#prove(waiter)
  }

  /** Called when this grant was taken away before its reply arrived. The waiter must not believe that reply. */
  lost(waiter: WaiterRecord, token: number): void {
    waiter.lost = token
  }

  /**
   * Called when an answer to a heartbeat, or to this client's own release, contains a grant. If the lease is over by
   * now, Redis is asked again before the grant is used, but only once: the lease may be shorter than any round trip.
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

  // The end of a wait.

  /** Ends the wait without the lock: by an error, or because the caller gave up or a single attempt was refused. */
  end(waiter: WaiterRecord, error: Error | undefined): void {
    const { end } = inState[waiter.state.is]
    if (end === 'ignore') return
    this.#settle(waiter, over)
    if (end === 'leave' || waiter.unanswered > 0) this.#common.requests.leave(waiter)
    waiter.settle(error, waiter)
  }

  /**
   * Ends the wait with the lock. Hand-offs within the client come directly here, because replicas have already
   * confirmed the hold that is handed on.
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
    // The head's refusal applies to the whole line, so the newest one best explains why the wait ended.
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
    // Forgotten after one use, so that a forged message about a lost grant costs the waiter only one attempt.
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
   * Ends the wait of a single attempt, and of a waiter whose patience ends before its next attempt. The pause before
   * that attempt counts as waiting: a request that may take all the remaining patience can end a moment early.
   */
  #outOfPatience(waiter: WaiterRecord, begun: number, error: Error): boolean {
    waiter.unconfirmedSince ??= begun
    const waited = this.now() + UNDO_PAUSE - waiter.unconfirmedSince
    const ended = waiter.wish.mode === 'once' || waited >= this.#common.patience
    if (ended) this.end(waiter, error)
    return ended
  }

  /** Makes a waiter whose grant did not count ask again, in the way of its place (`atPlace` in states.ts). */
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

  /** Takes back what a late request of a waiter may have done after its wait: queued it, or granted it the lock. */
  takeBack(waiter: WaiterRecord): void {
    if (waiter.state === over) this.#common.requests.leave(waiter)
    else this.#effects.check(waiter)
  }

  #joined(waiter: WaiterRecord, { ticket, sent, ttl }: Refused): void {
    const { place } = waiter
    this.#moveTo(waiter, { is: 'queued', ticket })
    waiter.seen = sent
    // Before this reply, a message announced a grant. Only now can the waiter ask Redis whether that is true, because
    // the question needs its ticket.
    if (place?.is === 'joining' && place.told) this.#common.heartbeat.look(this)
    else this.#common.heartbeat.lookWithin(this, ttl)
  }

  /**
   * Asks Redis before a grant is used. The token in the answer counts, not the one in the message, because the waiter
   * may have been granted the lock again since.
   */
  #prove(waiter: WaiterRecord): void {
    if (waiter.place?.is === 'joining') this.#moveTo(waiter, { is: 'joining', told: true })
    this.#common.heartbeat.look(this)
  }

  // Handing on within the client.

  /** Ends the hold and hands the lock on to the next waiter here. False: the lock must be released in Redis. */
  handOn(hold: Hold): boolean {
    const { run } = hold
    if (!run || !this.#heir(hold) || !this.tenancy.end(hold, this.now())) return false
    const { holdEffects } = this.#common
    holdEffects.handedOn(hold)
    // A listener of `handedOn` may have closed the client, which ends all waits, or may have taken the heir out of
    // line. So the heir is looked up again.
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

  /** Returns whether the hold could hand the lock on if the lock had a waiter here. */
  wantsHeir(hold: Hold): boolean {
    return this.waiting === 0 && goesOn(hold, this.now())
  }

  /**
   * Returns the refusal that a waiter gets without asking Redis, while a hold of this client may hand the lock on.
   * Undefined: no hold may.
   */
  ours(): Refused | undefined {
    return this.tenancy.refusal(this.now())
  }

  dropHold(hold: Hold): void {
    this.tenancy.drop(hold)
    this.#forgetIfIdle()
  }

  /** Returns the waiter that may take over the hold's lease without asking Redis. No waiter here is ahead of it. */
  #heir({ length }: Hold): WaiterRecord | undefined {
    const head = this.#queue?.size ? undefined : this.line.head
    return head && !head.wish.mayReenter && head.claim.lease === length ? head : undefined
  }

  // Used by all of the above.

  /** Whether the lock has waiters here, or an answer for a former waiter is still to come. */
  get #inUse(): boolean {
    return this.line.asking || this.waiting > 0 || this.#queue?.tending === true
  }

  ask(waiter: WaiterRecord, attempt: Attempt, reserve = false): void {
    waiter.unanswered += 1
    const join = attempt === 'to-join' || (attempt === 'to-re-enter' && waiter.inQueue)
    // Only a waiter that asks for a place in the queue can get a grant by message. This time will prove such a grant.
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

  /** Returns the same refusal, with the newest known holder. */
  upToDate(refusal: Refused): Refused {
    const holder = this.#holder === 'released' ? undefined : (this.#holder ?? refusal.holder)
    return holder === refusal.holder ? refusal : { ...refusal, holder }
  }

  /** Forgets what is known about the lock, if it has no waiters here. */
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

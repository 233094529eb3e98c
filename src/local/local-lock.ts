/**
 * Everything that this client knows of one lock: its waiters, its holds, and what replies and messages have said about
 * the lock. This file has no I/O and no timer. Each public method reports an event. To act on the event, the lock calls
 * `WaitEffects` and `HoldEffects`; wait/acquire.ts and lease/holds.ts implement them.
 *
 *      line    unfair waiters, first come first; only the head asks    A ─ B ─ C     line.ts
 *      queue   fair waiters, whose order is that of Redis            { D, E }        queue.ts
 *      tenancy the holds, mostly one, and the run of hand-offs       { F }           tenancy.ts, hold.ts, run.ts
 *
 * A grant can come in a reply, in a message or from a heartbeat. The same grant can come more than once, or too late.
 * The caller can give up in the meantime. The first of these events settles the waiter, and states.ts says what each
 * later event does.
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
  /** How many waiters are in no line or queue yet, including single attempts. */
  #arriving = 0
  /** The newest report of who holds the lock, whichever waiter received it; undefined if there was no report. */
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

  // Methods for the arrival of a waiter.

  arrive(): void {
    this.#arriving += 1
  }

  /**
   * Sends an attempt of this waiter alone, outside the line. If it is other clients' turn, a waiter that makes more
   * than a single attempt joins the line instead. So a waiter that could re-enter does so a few ms later.
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

  /** Makes the waiter a fair one. It leaves the line. */
  announce(waiter: WaiterRecord): void {
    this.#moveTo(waiter, announced)
    this.line.leave(waiter)
    this.queue.add(waiter)
  }

  /** Asks Redis for a place in the queue. The waiter is fair, and the subscription to its inbox is active. */
  join(waiter: WaiterRecord): void {
    if (waiter.place?.is === 'announced') this.#moveTo(waiter, { is: 'joining', told: false })
    this.ask(waiter, 'to-join')
  }

  // Methods that receive answers.

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
   * Called with the answer to the question whether enough replicas have this grant. The question was sent at `begun`.
   * If `deadline` is a number, they have the grant, and it lasts until then. The server's clock may be wrong, so
   * `confirmedUntil` limits the deadline by the lease's length. If `deadline` is not a number, Redis no longer has the
   * grant.
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

  /** Called when this client sends its release. The hand-off time is measured from this moment to the next grant. */
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
   * Called when the owner with this name holds the lock: its waiters ask to re-enter. Each waiter sends its own
   * request, because each hold is released by an id of its own.
   */
  entered(owner: string): void {
    for (const waiter of [...this.line.waiters, ...(this.#queue?.waiters ?? [])]) {
      if (waiter.claim.owner === owner && waiter.wish.mayReenter && !waiter.confirming) this.ask(waiter, 'to-re-enter')
    }
  }

  /**
   * Called when a message announces a grant. If the message and the reply to an earlier request together prove that the
   * grant was made after that request was sent, the lease counts from then. Otherwise Redis is asked.
   */
  granted(waiter: WaiterRecord, token: number, via: Via): void {
    const { place } = waiter
    if (!place || atPlace[place.is].message === 'ignore') return
    const grant = waiter.proven(token, via, this.now())
    if (grant) this.#granted(waiter, grant)
    else this.#prove(waiter)
  }

  /**
   * Called when the grant with this token was taken away before the reply with the grant arrived. The waiter must not
   * use the grant in that reply.
   */
  lost(waiter: WaiterRecord, token: number): void {
    waiter.lost = token
  }

  /**
   * Called when an answer to a heartbeat, or to this client's own release, contains a grant. If the lease is over by
   * now, Redis is asked again before the grant is used. Redis is asked only once more, because the lease may be shorter
   * than any round trip.
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
   * Ends the wait with the lock. A hand-off within the client calls this method directly, because replicas have already
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
    // The head's refusal applies to the whole line, so the newest refusal of the head best explains why the wait ended.
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
    // `lost` is cleared after one use, so a forged message about a lost grant costs the waiter only one attempt.
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
   * Ends the wait of a single attempt. Also ends the wait of a waiter whose patience ends before its next attempt could
   * begin. So `UNDO_PAUSE`, the pause before that attempt, counts as time waited.
   */
  #outOfPatience(waiter: WaiterRecord, begun: number, error: Error): boolean {
    waiter.unconfirmedSince ??= begun
    const waited = this.now() + UNDO_PAUSE - waiter.unconfirmedSince
    const ended = waiter.wish.mode === 'once' || waited >= this.#common.patience
    if (ended) this.end(waiter, error)
    return ended
  }

  /**
   * Makes a waiter ask again after a grant that did not count. The waiter's place says how it asks (`atPlace` in
   * states.ts).
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
    // A message announced a grant before this reply. Only now can the waiter ask Redis whether the message is true,
    // because the question needs the waiter's ticket.
    if (place?.is === 'joining' && place.told) this.#common.heartbeat.look(this)
    else this.#common.heartbeat.lookWithin(this, ttl)
  }

  /**
   * Asks Redis before a grant is used. The token in Redis's answer counts, not the token in the message, because the
   * waiter may have been granted the lock again since the message.
   */
  #prove(waiter: WaiterRecord): void {
    if (waiter.place?.is === 'joining') this.#moveTo(waiter, { is: 'joining', told: true })
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
    // A listener of `handedOn` may have closed the client, which ends all waits, or may have ended the heir's wait. So
    // the heir is looked up again.
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

  /** Returns whether the hold could hand the lock on if the lock had a waiter in this client. */
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
   * Returns the waiter that may take over the hold's lease without asking Redis. It is the first waiter of this client.
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
    // Only a waiter that asks for a place in the queue can get a grant by message. The time of its request will prove
    // such a grant (`proven` in waiter.ts).
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

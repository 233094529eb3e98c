/**
 * Everything that this client knows of one key: its waiters, its holds, and what replies and messages have said. Every
 * decision about them is made here, in a class of three layers. It has no I/O, no timer and no clock: each public method
 * reports an event, and the time comes with it. What has to be done goes out through `Port`, which io.ts and holds.ts
 * carry out.
 *
 *      queue   fair waiters; Redis keeps their order                                  this file   { D, E }
 *      line    unfair waiters, first come first; only the head, the first, asks Redis  line.ts     A ─ B ─ C
 *      holds   mostly one, and the run of hand-offs to which it belongs (run.ts)       tenure.ts   { F }
 *
 * Every waiter announces itself, then asks, then parks:
 *
 *   an unfair one   1. joins the line; only the head continues. A release so causes one request per process, not one
 *                      per waiter (I9)
 *                   2. the head asks for the lock
 *                   3. refused, it listens to the unlock channel, and asks once more
 *                   4. refused again, it parks until a wake-up, which belongs to the line: if the head gives up, the
 *                      next head uses it
 *   a fair one      1. joins the queue here, and listens to its inbox
 *                   2. asks for the lock, or else for a place in the queue
 *                   3. refused, it has that place, and parks until it is granted the lock
 *
 * A wake-up could be lost only if a release came between the request and the park. But that release finds the
 * announcement, and sends a message. A message is only a hint: it may be lost, late, early, doubled or forged. So the
 * state of a lock with waiters is also read from Redis, when the holder's lease ends and at the latest every `pause` ms
 * (`look`). A bad message costs time, but never a lock (I4).
 *
 * A waiter's grant can arrive in a reply, in a message or in the answer to a heartbeat, and the same grant can arrive
 * more than once. The caller can also give up. The wait ends with whichever comes first, the grant or the caller's
 * decision. waiter.ts says what each later event does.
 *
 * In a lock that several owners may hold, each grant lets the next waiter of the line ask, until one is refused. The
 * more grants there were in a row, the more waiters ask at once. So even thousands of readers that waited for a writer
 * are admitted within a few round trips, and Redis refuses no more of these attempts than it grants (I9).
 *
 * While a hold of this client may still hand the lock on to the head, the line asks nothing and does not listen: this
 * client is the first to know when that hold ends. Afterwards its head asks at once, so a client may get the lock many
 * times in a row. Waiters of other clients do not starve: after `fairAfter` ms they join the queue.
 */
import { LockClosedError, LockConnectionError } from '../errors.ts'
import type { Announced, Granted, Refused, Tended } from '../kind.ts'
import { List } from '../list.ts'
import type { Hold } from './hold.ts'
import { Line } from './line.ts'
import type { Attempt, Port, Succession } from './port.ts'
import { goesOn, type Inherited } from './run.ts'
import type { Due, Schedule } from './schedule.ts'
import { inState, nobody, type Waiter } from './waiter.ts'

/** A look for the end of a lease comes this many ms after that end. The server counts whole ms. */
const AFTER_LAPSE = 2
const NEVER = Number.POSITIVE_INFINITY

export class KeyState extends Line implements Due {
  readonly key: string
  protected readonly port: Port
  slot = -1
  dueAt = NEVER
  readonly #succession: Succession
  readonly #agenda: Schedule
  /** Created when needed, because most keys have either fair or unfair waiters. */
  #queue: List<Waiter> | undefined
  /**
   * When the lock is next looked at. The agenda is not told when a look is put off, so `due` may be called before
   * anything is due.
   */
  #lookAt = NEVER
  /** Whether a heartbeat is under way, and whether another must follow it. */
  #tending = false
  #tendAgain = false

  constructor(key: string, port: Port, succession: Succession, agenda: Schedule) {
    super()
    this.key = key
    this.port = port
    this.#succession = succession
    this.#agenda = agenda
  }

  /** How many waiters are in the line and in the queue. */
  get waiting(): number {
    return (this.standing?.size ?? 0) + (this.#queue?.size ?? 0)
  }

  get queue(): List<Waiter> {
    return this.#queue ?? nobody
  }

  // The arrival of a waiter.

  /** Makes this a fair waiter. If it stands in the line, it leaves the line. */
  announce(waiter: Waiter, now: number): void {
    if (waiter.state === 'standing') this.leaveLine(waiter, now)
    waiter.state = 'announced'
    this.#queue ??= new List()
    this.#queue.add(waiter)
    this.enlist(waiter)
  }

  /** Asks Redis for a place in the queue. Called for a fair waiter, once the subscription to its inbox is active. */
  join(waiter: Waiter, now: number): void {
    if (waiter.state === 'announced') waiter.state = 'joining'
    this.ask(waiter, 'to-join', now)
  }

  // Answers to attempts.

  answered(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused, now: number): void {
    waiter.unanswered -= 1
    waiter.answered = true
    if (answer.granted) {
      // Redis does not know whether this waiter had parked. If it had, and the lock was free, the caller sees 'wakeup'.
      // If it had not, and the previous holder's lease had ended, it sees 'immediate', as for a free lock.
      const other = waiter.parked ? answer.via === 'immediate' && 'wakeup' : answer.via === 'expiry' && 'immediate'
      this.#granted(waiter, other ? { ...answer, via: other } : answer, now)
    } else this.#attemptRefused(waiter, join, answer)
    if (attempt === 'as-head') this.headAnswered(waiter, answer, now)
    else if (answer.granted || !waiter.waits) return
    else if (attempt === 'to-join') this.#joined(waiter, answer, now)
    else if (attempt !== 'alone') return
    else if (waiter.wish.mode === 'once') this.end(waiter, undefined, now)
    else this.stand(waiter, now)
  }

  /** Called when so many callers are queued that the waiter was not added to them. */
  turnedAway(waiter: Waiter, error: Error, now: number): void {
    if (!waiter.waits) return
    waiter.unanswered -= 1
    // Unless another request of the waiter is unanswered, there is nothing to take back in Redis.
    waiter.state = 'announced'
    this.end(waiter, error, now)
  }

  /** Applies the answer to the heartbeat of these waiters; `answer` is undefined if the heartbeat failed. */
  tended(waiters: readonly Waiter[], answer: Tended | undefined, now: number): void {
    if (answer) this.#learnOfQueue(waiters, answer, now)
    this.#tending = false
    const again = this.#tendAgain && this.queue.size > 0
    this.#tendAgain = false
    if (again) this.#tend()
    else if (!this.inUse) this.rested()
  }

  // Messages and other reports about the lock.

  /**
   * Called when it is known that this owner holds the lock. The owner's waiters ask to re-enter. Each waiter sends a
   * request of its own, because each hold has an id of its own, by which it is released.
   */
  entered(owner: string, now: number): void {
    for (const waiter of this.reentrants?.get(owner) ?? []) this.ask(waiter, 'to-re-enter', now)
  }

  /**
   * Called when a message, or this client's own release, announces a grant. Without a deadline, it is not known when
   * the grant was made. The reply to an earlier request may prove that the grant was made after that request was sent.
   * If so, this client counts the lease from the time at which it sent that request. Otherwise it asks Redis.
   */
  granted(waiter: Waiter, grant: Announced, now: number): void {
    const { deadline } = grant
    // With `minHold`, Redis may keep the hold for longer than its lease.
    const until = deadline && Math.min(deadline, now + waiter.claim.lease)
    if (until !== undefined) return this.found(waiter, { ...grant, granted: true, deadline: until }, now)
    // Redis sends such a message only to a waiter that has asked to be queued.
    if (!waiter.inQueue) return
    const proven = waiter.proven(grant, now)
    if (proven && !this.port.mayBeOver(waiter, proven.deadline, now)) this.#granted(waiter, proven, now)
    else this.#prove(waiter, now)
  }

  /**
   * Called with a grant whose deadline is known. If the lease of this grant is already over, the grant is not used, and
   * Redis is asked again. This is done only once for each waiter, because the lease may be shorter than any round trip,
   * and then every answer arrives too late.
   */
  found(waiter: Waiter, grant: Granted, now: number): void {
    const dead = waiter.waits && this.port.mayBeOver(waiter, grant.deadline, now)
    if (!dead || waiter.late) return this.#granted(waiter, grant, now)
    waiter.late = true
    this.#prove(waiter, now)
  }

  /**
   * Reads the lock's state from Redis again, and plans the next look. The queue sends a heartbeat; the line sends an
   * attempt, whose refusal names the holder.
   */
  look(now: number): void {
    this.#lookAt = NEVER
    this.lookWithin(NEVER, now)
    if (this.#tending) this.#tendAgain = true
    else if (this.queue.size > 0) this.#tend()
    if (this.line.size === 0) return
    if (this.port.shared) {
      // The head's refusal names only one of several holders. So each waiter whose owner may hold asks for itself, too.
      for (const waiter of [...this.line].slice(1)) if (waiter.wish.mayReenter) this.ask(waiter, 'to-re-enter', now)
    }
    this.wake(now)
  }

  /** Plans a look for the end of the holder's lease, in `ttl` ms. If an earlier look is planned, nothing changes. */
  lookWithin(ttl: number, now: number): void {
    if (this.waiting === 0) return
    const at = now + Math.min(ttl + AFTER_LAPSE, this.port.pause)
    if (at >= this.#lookAt) return
    this.#lookAt = at
    this.#planFor(at)
  }

  due(now: number): void {
    if (now >= this.#lookAt) this.look(now)
    if (!this.inUse) {
      if (this.heard) this.port.rested(this)
      this.forgetIfIdle()
    }
    this.#planFor(this.#lookAt)
  }

  // The end of a wait.

  /**
   * Ends the wait without the lock: because of an error, because the caller gave up, or because a single attempt was
   * refused.
   */
  end(waiter: Waiter, error: Error | undefined, now: number): void {
    const { end } = inState[waiter.state]
    if (end === 'ignore') return
    const leaves = end === 'leave' || waiter.unanswered > 0
    this.present -= 1
    waiter.reported = error instanceof LockConnectionError
    this.#settle(waiter, 'over', now)
    if (leaves) this.port.leave(waiter)
    waiter.settle(error, waiter, now)
  }

  /**
   * Called when a request may have reached Redis after its waiter had stopped waiting. Redis may then have queued the
   * waiter or granted it the lock. This method undoes that.
   */
  takeBack(waiter: Waiter): void {
    if (waiter.state === 'over') this.port.leave(waiter)
    else this.port.check(waiter)
  }

  /** Ends the wait with a grant. */
  #hold(waiter: Waiter, grant: Granted, now: number): void {
    waiter.heldToken = grant.token
    if (this.releasedAt !== undefined) waiter.handoff = now - this.releasedAt
    this.releasedAt = undefined
    this.#settle(waiter, 'holding', now)
    waiter.settle(grant, waiter, now)
    // Only now, because the key would have been forgotten before it had the hold.
    this.present -= 1
    if (!this.own && this.present === 0) this.forgetIfIdle()
  }

  #settle(waiter: Waiter, state: 'holding' | 'over', now: number): void {
    const { inQueue } = waiter
    waiter.state = state
    this.port.settled(waiter)
    if (this.port.shared) this.leaveLine(waiter, now)
    else this.standing?.delete(waiter)
    this.#queue?.delete(waiter)
    const { owner } = waiter.claim
    const same = this.reentrants?.get(owner)
    if (same?.delete(waiter) && same.size === 0) this.reentrants?.delete(owner)
    // The head asks Redis on behalf of the whole line. So if the head's refusal is newer than this waiter's own
    // refusal, it better explains why the wait ended.
    const refusal = this.refusal
    if (refusal && !inQueue && refusal.sent > (waiter.refusal?.sent ?? 0)) waiter.refusal = refusal
    if (state === 'over' && waiter.refusal) waiter.refusal = this.upToDate(waiter.refusal)
    if (!this.inUse) this.rested()
    // An answer that is still to come needs no timer, which would keep the process alive.
    else if (this.port.local && this.waiting === 0) this.#agenda.delete(this)
  }

  #granted(waiter: Waiter, grant: Granted, now: number): void {
    const { grant: meaning } = inState[waiter.state]
    if (meaning === 'take-back') return this.port.leave(waiter)
    if (meaning === 'check') {
      // A hold whose lease has ended still lasts for its `minHold`, so it must not be given back.
      if (waiter.claim.minHold && grant.token === waiter.heldToken) return
      return this.port.check(waiter, grant.token)
    }
    if (this.port.closed) {
      this.present -= 1
      this.#settle(waiter, 'over', now)
      this.port.leave(waiter)
      return waiter.settle(new LockClosedError(), waiter, now)
    }
    // `waiter.lost` is the token of a grant that was taken away, according to a message. The message may be forged. So
    // the token is used only once, and a forged message costs the waiter only one more attempt.
    const lost = grant.token <= waiter.lost
    waiter.lost = 0
    // What was certainly taken away is not used, however often it is told.
    const gone = grant.token < waiter.leastToken
    if (gone || (lost && waiter.wish.mode !== 'once')) return this.#again(waiter, now)
    this.#hold(waiter, grant, now)
    if (lost) this.port.check(waiter, NEVER)
  }

  /** Makes a waiter ask again after a grant that it must not use (`inState` in waiter.ts). */
  #again(waiter: Waiter, now: number): void {
    const { again } = inState[waiter.state]
    if (waiter.wish.mode === 'once') this.ask(waiter, 'alone', now)
    else if (again === 'stand') this.stand(waiter, now)
    else if (again === 'try') this.wake(now)
    else if (again === 'join') this.join(waiter, now)
    else if (again === 'look') this.look(now)
  }

  #attemptRefused(waiter: Waiter, join: boolean, refusal: Refused): void {
    if (!waiter.waits) {
      if (join) this.takeBack(waiter)
      // A waiter that has asked to be queued ignores the refusal of an attempt outside the queue.
    } else if (join || !waiter.inQueue) {
      waiter.refused(refusal)
      this.holder = refusal.holder
      this.park(waiter)
    }
  }

  #joined(waiter: Waiter, { ticket, sent, ttl, expected = 0 }: Refused, now: number): void {
    const { announced } = waiter
    waiter.state = 'queued'
    waiter.ticket = ticket
    waiter.announced = false
    waiter.seen = sent
    const { rejectLate, timeout } = waiter.wish
    if (rejectLate && expected > (timeout ?? NEVER)) return this.end(waiter, undefined, now)
    // If a message announced a grant before this reply arrived, Redis is asked now whether there is such a grant. Redis
    // could not be asked earlier, because the question needs the waiter's ticket.
    if (announced) this.look(now)
    else this.lookWithin(ttl, now)
  }

  /**
   * Asks Redis about a grant before it is used. The token in Redis's answer counts, not the token in the message: the
   * waiter may have been granted the lock again after the message was sent.
   */
  #prove(waiter: Waiter, now: number): void {
    if (waiter.state === 'joining') waiter.announced = true
    this.look(now)
  }

  // The queue.

  #tend(): void {
    const waiters = [...this.queue].filter(({ state }) => state === 'queued')
    if (waiters.length === 0) return
    this.#tending = true
    this.port.tend(this, waiters)
  }

  #learnOfQueue(waiters: readonly Waiter[], answer: Tended, now: number): void {
    const { sent, ttl, holder, owner, clock, waiters: places } = answer
    this.holder = holder
    const owners = new Set(owner === undefined ? [] : [owner])
    for (const [i, place] of places.entries()) {
      const waiter = waiters[i] as Waiter
      if (typeof place !== 'number') this.found(waiter, place, now)
      else if (!waiter.waits) this.takeBack(waiter)
      else {
        waiter.seen = sent
        const position = Math.abs(place)
        const expected = answer.expected?.[i]
        waiter.refused({ ...(waiter.refusal as Refused), sent, ttl, position, holder, owner, clock, expected })
        if (place < 0) owners.add(waiter.claim.owner)
      }
    }
    for (const each of owners) this.entered(each, now)
    this.lookWithin(ttl, now)
  }

  // The holds, and handing the lock on within the client.

  /**
   * Ends the hold and hands the lock on to the next waiter of this client, without asking Redis. Returns false if the
   * lock must be released in Redis. run.ts says why such a hand-off is safe. It needs a hold that certainly lasts, that
   * is its owner's only hold, and about which Redis is not being asked; and a waiter to inherit it.
   */
  handOn(hold: Hold, now: number): boolean {
    const { run } = hold
    if (!run || !this.#heir(hold) || !goesOn(hold, now)) return false
    if (this.own !== hold || hold.inQuestion || !hold.end()) return false
    this.#succession.handedOn(hold, now)
    // `handedOn` emits an event. A listener may have closed the client, or aborted the call of the waiter that was to
    // get the lock. So the next waiter is looked up again.
    const heir = this.#heir(hold)
    if (heir && run.left(now) > 0) {
      this.#succession.passed(run, now)
      run.owner = heir.claim.owner
      const grant: Inherited = { granted: true, token: run.issue(), deadline: hold.deadline, via: 'handoff', run }
      this.#hold(heir, grant, now)
    } else {
      this.endRun(run)
      this.#succession.abandoned(run)
    }
    return true
  }

  /** Returns whether the hold could hand the lock on, but the key has no waiter in this client. */
  wantsHeir(hold: Hold, now: number): boolean {
    return this.waiting === 0 && goesOn(hold, now)
  }

  /**
   * Returns the waiter that may take over the hold's lease: the head of the line, if no fair waiter of this client
   * waits, the head cannot re-enter, and it asks for a lease of the same length. It asks for no `minHold`, which Redis
   * would not know of.
   */
  #heir({ length }: Hold): Waiter | undefined {
    const head = this.#queue?.size ? undefined : this.head
    if (!head || head.wish.mayReenter || head.claim.minHold) return undefined
    return head.claim.lease === length ? head : undefined
  }

  // What all parts above use.

  /** Whether the key has waiters in this client, or an answer for a former waiter is still to come. */
  protected get inUse(): boolean {
    return this.asking || this.waiting > 0 || this.#tending
  }

  protected ask(waiter: Waiter, attempt: Attempt, now: number, reserve = false): void {
    waiter.unanswered += 1
    const join = attempt === 'to-join' || (attempt === 'to-re-enter' && waiter.inQueue)
    // From now on, a message can announce a grant to this waiter. To check such a message, `proven` in waiter.ts needs
    // the time of this request.
    if (join) waiter.seen ??= now
    this.port.ask(this, waiter, attempt, join, reserve, now)
  }

  /** Marks the waiter as parked, and emits its `waiting` event once. */
  protected park(waiter: Waiter): void {
    if (waiter.parked || waiter.wish.mode === 'once') return
    waiter.parked = true
    this.port.parked(waiter)
  }

  #planFor(at: number): void {
    if (at < this.dueAt) this.#agenda.set(this, at)
  }

  /**
   * Forgets what is known about the lock, because it has no waiters in this client. The subscriptions end only when the
   * agenda is next due, or when the key is idle: under contention, the next waiter comes at once. In memory they cost
   * nothing, and what is due would keep the process alive.
   */
  protected rested(): void {
    this.holder = this.refusal = this.releasedAt = this.silence = undefined
    this.#lookAt = NEVER
    if (this.port.local) this.#agenda.delete(this)
    if (this.heard && this.dueAt === NEVER) this.port.rested(this)
    if (this.present === 0 && !this.own) this.forgetIfIdle()
  }

  protected forgetIfIdle(): void {
    if (this.present > 0 || this.own || this.inUse) return
    if (this.dueAt < NEVER) this.#agenda.delete(this)
    if (this.heard) this.port.rested(this)
    this.port.idle(this)
  }
}

/**
 * Everything that this client knows of one key, and every decision about it. Its waiters, and what replies and messages
 * have said, are here; its holds are an object of their own. There is no I/O, no timer and no clock: each public method
 * reports an event, and the time comes with it. What has to be done goes out through `Port`, which requests.ts carries
 * out.
 *
 *      queue   fair waiters; Redis keeps their order                                             { D, E }
 *      line    unfair waiters, first come first; only the head, the first, asks Redis            A ─ B ─ C
 *      holds   mostly one, and the run of hand-offs to which it belongs (key-holds.ts, run.ts)   { F }
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
 * While a hold of this client may still hand the lock on to the head, the line asks nothing and does not listen: this
 * client is the first to know when that hold ends. Afterwards its head asks at once, so a client may get the lock many
 * times in a row. Waiters of other clients do not starve: after `fairAfter` ms they join the queue.
 */
import { LockClosedError, LockConnectionError } from '../errors.ts'
import type { Announced, Granted, HeartbeatReply, Holder, Refused } from '../kind.ts'
import { List } from '../list.ts'
import type { Hold } from './hold.ts'
import type { KeyHolds } from './key-holds.ts'
import type { HandOffPort, Port } from './port.ts'
import { Rounds } from './rounds.ts'
import type { Inherited } from './run.ts'
import type { Due, Schedule } from './schedule.ts'
import { type Attempt, inState, nobody, type Silence, type Subscribed, type Waiter, type WaiterKey } from './waiter.ts'

/** A look for the end of a lease comes this many ms after that end. The server counts whole ms. */
const AFTER_LAPSE = 2
const NEVER = Number.POSITIVE_INFINITY

export class Key implements WaiterKey, Due {
  readonly key: string
  readonly holds: KeyHolds
  /** How many waiters of the key have not settled, wherever they wait. requests.ts counts each waiter that arrives. */
  present = 0
  /** The subscriptions for this key's waiters (requests.ts). */
  subscribed: Subscribed | undefined
  /** Since when Redis has answered nothing about this key (limits.ts). */
  silence: Silence | undefined
  slot = -1
  dueAt = NEVER
  readonly #port: Port
  readonly #handOffs: HandOffPort
  readonly #agenda: Schedule
  /** Both are created when needed, because most keys have either fair or unfair waiters. */
  #line: List<Waiter> | undefined
  #queue: List<Waiter> | undefined
  /** The waiters of the line and of the queue that may re-enter, by their owners. Most keys have none. */
  #reentrants: Map<string, Set<Waiter>> | undefined
  /** The newest report of who holds the lock, whichever waiter received it; undefined if there was no report. */
  #holder: Holder | 'released' | undefined
  /** The last refusal of the head, which applies to all waiters of the line. */
  #refusal: Refused | undefined
  /**
   * When this client sent its last release of the lock; undefined if it has been granted the lock since then, or if it
   * has no waiters for the lock.
   */
  #releasedAt: number | undefined
  /**
   * When the lock is next looked at. The agenda is not told when a look is put off, so `due` may be called before
   * anything is due.
   */
  #lookAt = NEVER
  /** When a waiter of the line may have waited for its `fairAfter`, and the shortest `fairAfter` in the line, in ms. */
  #fairAt = NEVER
  #leastFairAfter = NEVER
  /** Whether a heartbeat is under way, and whether another must follow it. */
  #beating = false
  #beatAgain = false
  readonly #rounds = new Rounds()
  /** Whether the subscription to the unlock channel was active before the attempt under way was sent. */
  #listenedBefore = false

  constructor(key: string, holds: KeyHolds, port: Port, handOffs: HandOffPort, agenda: Schedule) {
    this.key = key
    this.holds = holds
    this.#port = port
    this.#handOffs = handOffs
    this.#agenda = agenda
  }

  /** How many waiters are in the line and in the queue. */
  get waiting(): number {
    return (this.#line?.size ?? 0) + (this.#queue?.size ?? 0)
  }

  get line(): List<Waiter> {
    return this.#line ?? nobody
  }

  get queue(): List<Waiter> {
    return this.#queue ?? nobody
  }

  // The arrival of a waiter.

  /** Makes this a fair waiter. If it stands in the line, it leaves the line. */
  announce(waiter: Waiter, now: number): void {
    if (waiter.state === 'standing') this.#leaveLine(waiter, now)
    waiter.state = 'announced'
    this.#queue ??= new List()
    this.#queue.add(waiter)
    this.#enlist(waiter)
  }

  /** Asks Redis for a place in the queue, once the subscription to the waiter's inbox is active. */
  join(waiter: Waiter, now: number): void {
    if (waiter.state === 'announced') waiter.state = 'asking'
    this.ask(waiter, 'to-join', now)
  }

  /** Sends an attempt. `reserve`: with tokens for hand-offs within the client. */
  ask(waiter: Waiter, attempt: Attempt, now: number, reserve = false): void {
    waiter.unanswered += 1
    const join = attempt === 'to-join' || (attempt === 'to-re-enter' && waiter.inQueue)
    this.#port.ask(waiter, attempt, join, reserve, now)
  }

  /** Adds the waiter at the end of the line. */
  stand(waiter: Waiter, now: number): void {
    waiter.state = 'standing'
    this.#line ??= new List()
    this.#line.add(waiter)
    this.#enlist(waiter)
    if (this.#line.size === 1) {
      if (this.holds.run && this.#behindOurselves(now)) return
      this.wake(now)
    } else if (this.#refusal) {
      // The head is parked, and its wake-ups are for the whole line. So the new waiter need not ask Redis.
      this.#refusal = this.#upToDate(this.#refusal)
      waiter.refusal ??= this.#refusal
      this.#park(waiter)
    }
  }

  // Answers to attempts.

  onAnswer(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused, now: number): void {
    waiter.unanswered -= 1
    waiter.call.answered = true
    if (answer.granted) {
      // Redis does not know whether this waiter had parked. If it had, and the lock was free, the caller sees 'wakeup'.
      // If it had not, and the previous holder's lease had ended, it sees 'immediate', as for a free lock.
      const other = waiter.parked ? answer.via === 'immediate' && 'wakeup' : answer.via === 'expiry' && 'immediate'
      this.#granted(waiter, other ? { ...answer, via: other } : answer, now)
    } else this.#attemptRefused(waiter, join, answer)
    if (attempt === 'as-head') this.#headAnswered(waiter, answer, now)
    else if (answer.granted || !waiter.waits) return
    else if (attempt === 'to-join') this.#joined(waiter, answer, now)
    else if (attempt !== 'alone') return
    else if (waiter.call.mode === 'once') this.end(waiter, undefined, now)
    else this.stand(waiter, now)
  }

  onFull(waiter: Waiter, error: Error, now: number): void {
    if (!waiter.waits) return
    waiter.unanswered -= 1
    // Unless another request of the waiter is unanswered, there is nothing to take back in Redis.
    waiter.state = 'announced'
    this.end(waiter, error, now)
  }

  onHeartbeat(waiters: readonly Waiter[], answer: HeartbeatReply | undefined, now: number): void {
    if (answer) this.#learnOfQueue(waiters, answer, now)
    this.#beating = false
    const again = this.#beatAgain && this.queue.size > 0
    this.#beatAgain = false
    if (again) this.#beat()
    else if (!this.#inUse) this.#rested()
  }

  // Messages and other reports about the lock.

  /**
   * This owner is known to hold the lock. The owner's waiters ask to re-enter. Each waiter sends a request of its own,
   * because each hold has an id of its own, by which it is released.
   */
  onEntered(owner: string, now: number): void {
    for (const waiter of this.#reentrants?.get(owner) ?? []) this.ask(waiter, 'to-re-enter', now)
  }

  /**
   * A message, or this client's own release, announces a grant. Without a deadline, it is not known when the grant was
   * made. The reply to an earlier request may prove that the grant was made after that request was sent. If so, this
   * client counts the lease from the time at which it sent that request. Otherwise it asks Redis.
   */
  granted(waiter: Waiter, grant: Announced, now: number): void {
    const { deadline } = grant
    // With `minHold`, Redis may keep the hold for longer than its lease.
    const until = deadline && Math.min(deadline, now + waiter.claim.lease)
    if (until !== undefined) return this.#found(waiter, { ...grant, granted: true, deadline: until }, now)
    // Redis sends such a message only to a waiter that has asked to be queued.
    if (!waiter.inQueue) return
    const proven = waiter.proven(grant, now)
    if (proven && !this.#port.mayBeOver(waiter, proven.deadline, now)) this.#granted(waiter, proven, now)
    else this.#prove(waiter, now)
  }

  /**
   * A grant whose deadline is known. If its lease is already over, the grant is not used, and Redis is asked again. This
   * is done only once for each waiter, because the lease may be shorter than any round trip, and then every answer
   * arrives too late.
   */
  #found(waiter: Waiter, grant: Granted, now: number): void {
    const dead = waiter.waits && this.#port.mayBeOver(waiter, grant.deadline, now)
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
    if (this.#beating) this.#beatAgain = true
    else if (this.queue.size > 0) this.#beat()
    if (this.line.size === 0) return
    if (this.#port.shared) {
      // The head's refusal names only one of several holders. So each waiter whose owner may hold asks for itself, too.
      for (const waiter of [...this.line].slice(1)) if (waiter.call.mayReenter) this.ask(waiter, 'to-re-enter', now)
    }
    this.wake(now)
  }

  /** Plans a look for the end of the holder's lease, in `ttl` ms. If an earlier look is planned, nothing changes. */
  lookWithin(ttl: number, now: number): void {
    if (this.waiting === 0) return
    const at = now + Math.min(ttl + AFTER_LAPSE, this.#port.pause)
    if (at >= this.#lookAt) return
    this.#lookAt = at
    this.#planFor(at)
  }

  due(now: number): void {
    if (now >= this.#fairAt) this.#queueOld(now)
    if (now >= this.#lookAt) this.look(now)
    if (!this.#inUse) {
      if (this.subscribed) this.#port.onRest(this)
      this.#forgetIfIdle()
    }
    this.#planFor(Math.min(this.#lookAt, this.#fairAt))
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
    if (error instanceof LockConnectionError) waiter.told = 'failure'
    this.#settle(waiter, 'over', now)
    if (leaves) this.#port.leave(waiter)
    waiter.call.waited(error, waiter, now)
  }

  /**
   * A request may have reached Redis after its waiter had stopped waiting. Redis may then have queued the waiter or
   * granted it the lock. This method undoes that.
   */
  takeBack(waiter: Waiter): void {
    if (waiter.state === 'over') this.#port.leave(waiter)
    else this.#port.check(waiter)
  }

  /** Ends the wait with a grant. */
  #hold(waiter: Waiter, grant: Granted, now: number): void {
    waiter.heldToken = grant.token
    const handoff = this.#releasedAt === undefined ? undefined : now - this.#releasedAt
    this.#releasedAt = undefined
    this.#settle(waiter, 'holding', now)
    waiter.call.waited(grant, waiter, now, handoff)
    // Only now, because the key would have been forgotten before it had the hold.
    this.present -= 1
    if (!this.holds.any && this.present === 0) this.#forgetIfIdle()
  }

  #settle(waiter: Waiter, state: 'holding' | 'over', now: number): void {
    const was = waiter.state
    waiter.state = state
    this.#port.onSettled(waiter)
    if (was === 'standing') this.#leaveLine(waiter, now)
    else this.#queue?.delete(waiter)
    if (waiter.call.mayReenter) this.#delist(waiter)
    // The head asks Redis on behalf of the whole line. So if the head's refusal is newer than this waiter's own
    // refusal, it better explains why the wait ended.
    const refusal = this.#refusal
    if (refusal && (was === 'standing' || was === 'arriving') && refusal.sent > (waiter.refusal?.sent ?? 0))
      waiter.refusal = refusal
    if (state === 'over' && waiter.refusal) waiter.refusal = this.#upToDate(waiter.refusal)
    if (!this.#inUse) this.#rested()
    // An answer that is still to come needs no timer, which would keep the process alive.
    else if (this.#port.local && this.waiting === 0) this.#agenda.delete(this)
  }

  #granted(waiter: Waiter, grant: Granted, now: number): void {
    const { grant: meaning } = inState[waiter.state]
    if (meaning === 'take-back') return this.#port.leave(waiter)
    if (meaning === 'check') {
      // A hold whose lease has ended still lasts for its `minHold`, so it must not be given back.
      if (waiter.claim.minHold && grant.token === waiter.heldToken) return
      return this.#port.check(waiter, grant.token)
    }
    if (this.#port.closed) {
      this.present -= 1
      this.#settle(waiter, 'over', now)
      this.#port.leave(waiter)
      return waiter.call.waited(new LockClosedError(), waiter, now)
    }
    const { takenAway } = waiter
    // A message may be forged. So what it says counts only once, and costs the waiter only one more attempt. What was
    // certainly taken away is not used, however often it is told.
    if (takenAway && !takenAway.surely) waiter.takenAway = undefined
    const taken = takenAway !== undefined && grant.token <= takenAway.token
    if (taken && (takenAway.surely || waiter.call.mode !== 'once')) return this.#again(waiter, now)
    this.#hold(waiter, grant, now)
    if (taken) this.#port.check(waiter, NEVER)
  }

  /** Makes a waiter ask again after a grant that it must not use (`inState` in waiter.ts). */
  #again(waiter: Waiter, now: number): void {
    const { again } = inState[waiter.state]
    if (waiter.call.mode === 'once') this.ask(waiter, 'alone', now)
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
      this.#holder = refusal.holder
      this.#park(waiter)
    }
  }

  #joined(waiter: Waiter, { ttl, expected = 0 }: Refused, now: number): void {
    const doubtful = waiter.state === 'doubtful'
    waiter.state = 'queued'
    const { rejectLate, timeout } = waiter.call
    if (rejectLate && expected > (timeout ?? NEVER)) return this.end(waiter, undefined, now)
    // If a message announced a grant before this reply arrived, Redis is asked now whether there is such a grant.
    if (doubtful) this.look(now)
    else this.lookWithin(ttl, now)
  }

  /**
   * Asks Redis about a grant before it is used. The token in Redis's answer counts, not the token in the message: the
   * waiter may have been granted the lock again after the message was sent.
   */
  #prove(waiter: Waiter, now: number): void {
    if (waiter.state === 'asking') waiter.state = 'doubtful'
    this.look(now)
  }

  // The queue.

  #beat(): void {
    const waiters = [...this.queue].filter(({ state }) => state === 'queued')
    if (waiters.length === 0) return
    this.#beating = true
    this.#port.beat(this, waiters)
  }

  #learnOfQueue(waiters: readonly Waiter[], answer: HeartbeatReply, now: number): void {
    const { sent, ttl, holder, owner, clock, waiters: places } = answer
    this.#holder = holder
    const owners = new Set(owner === undefined ? [] : [owner])
    for (const [i, place] of places.entries()) {
      const waiter = waiters[i] as Waiter
      if (typeof place !== 'number') this.#found(waiter, place, now)
      else if (!waiter.waits) this.takeBack(waiter)
      else {
        const position = Math.abs(place)
        const { ticket } = waiter.refusal as Refused
        const expected = answer.expected?.[i]
        waiter.refused({ granted: false, sent, ttl, position, ticket, holder, owner, clock, expected })
        if (place < 0) owners.add(waiter.claim.owner)
      }
    }
    for (const each of owners) this.onEntered(each, now)
    this.lookWithin(ttl, now)
  }

  // The line.

  /**
   * Lets the next waiter ask. All waiters in the line have waited for the answer to the failed attempt. So for limits.ts,
   * Redis was out of reach for each of them during this time.
   */
  onHeadFailed(now: number): void {
    if (this.#rounds.failed()) this.onSubscribed(now)
  }

  /** The lock may be free: lets the head ask. */
  wake(now: number): void {
    if (this.line.size === 0) return
    this.#rounds.wake()
    if (!this.#rounds.asking) this.#tryHead(now)
  }

  /** Another client has announced that the lock is free. */
  onUnlocked(now: number): void {
    if (this.#inUse) this.#holder = 'released'
    this.wake(now)
  }

  /** This client sends its release. The hand-off time in the statistics begins now. */
  onReleasing(now: number): void {
    if (this.#inUse) this.#releasedAt = now
  }

  onReleased(now: number): void {
    if (this.#inUse) this.#holder = 'released'
    if (this.line.size === 0) {
      if (!this.holds.any) this.#forgetIfIdle()
    } else if (!this.holds.run || !this.#behindOurselves(now)) this.wake(now)
  }

  onSubscribed(now: number): void {
    this.#rounds.wake()
    this.#tryHead(now)
  }

  #enlist(waiter: Waiter): void {
    const { owner } = waiter.claim
    if (!waiter.call.mayReenter) return
    this.#reentrants ??= new Map()
    this.#reentrants.set(owner, (this.#reentrants.get(owner) ?? new Set()).add(waiter))
  }

  #delist(waiter: Waiter): void {
    const { owner } = waiter.claim
    const same = this.#reentrants?.get(owner)
    if (same?.delete(waiter) && same.size === 0) this.#reentrants?.delete(owner)
  }

  #leaveLine(waiter: Waiter, now: number): void {
    const led = this.#port.shared && this.line.first === waiter
    this.line.delete(waiter)
    const next = led ? this.line.first : undefined
    // The old head may have been refused because it wanted more permits than were free. The new head wants a different
    // number of permits, so it may be granted the lock.
    if (next && next.claim.wants !== waiter.claim.wants) this.wake(now)
  }

  /** Lets the head ask if there is an unused wake-up. Must not be called while an attempt of the line is under way. */
  #tryHead(now: number): void {
    const head = this.line.first
    const most = this.#rounds.begin(head !== undefined)
    if (!head || most === 0) {
      if (!this.#inUse) this.#rested()
      return
    }
    // A refused head may park only if the subscription was active before its attempt. Otherwise it may have missed a
    // message.
    this.#listenedBefore = this.subscribed?.unlock === true
    const wanted = this.#refusal !== undefined || this.line.size > 1 || this.#releasedAt !== undefined
    this.#rounds.asked()
    this.ask(head, 'as-head', now, wanted && !head.call.mayReenter)
    let asked = 1
    for (let next = head.after; next && asked < most; next = next.after, asked += 1) {
      this.#rounds.asked()
      this.ask(next, 'as-head', now)
    }
  }

  /** An attempt of the line was answered. The waiter itself knows the answer already. */
  #headAnswered(head: Waiter, answer: Granted | Refused, now: number): void {
    if (this.waiting > 0) this.lookWithin(answer.granted ? head.claim.lease : answer.ttl, now)
    if (!answer.granted) this.#share(answer)
    // The answer names the owner that holds the lock. This owner may have other waiters in this client, and they may
    // re-enter. The message about the owner's grant may not have reached them, because this client may have subscribed
    // after it.
    const holder = answer.granted ? answer.via === 'reentry' && head.claim.owner : answer.owner
    if (holder) this.onEntered(holder, now)
    const round = this.#rounds.answered(answer.granted && this.#port.shared)
    if (!round) return
    if (round === 'all') return this.onSubscribed(now)
    if (this.line.size === 0) {
      this.#rounds.asking = false
      if (!this.#inUse) this.#rested()
    } else if (this.#listenedBefore || (answer.granted && this.#behindOurselves(now))) this.#tryHead(now)
    else this.#port.listen(head, now)
  }

  /**
   * Returns whether a hold of this client may still hand the lock on to the line. The waiters of the line then wait for
   * that hold to end.
   */
  #behindOurselves(now: number): boolean {
    const { oldest } = this.holds
    const ttl = this.holds.handsOnFor(now)
    if (!oldest || ttl <= 0) return false
    const holder = { label: oldest.claim.label, since: oldest.since }
    // No token is larger than this `clock`, so this refusal proves nothing about a grant.
    this.#share({ granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: NEVER })
    this.lookWithin(ttl, now)
    return true
  }

  /** Gives this refusal to all waiters of the line. `stand` gives it to waiters that come later. */
  #share(refusal: Refused): void {
    const first = this.#refusal === undefined
    this.#refusal = refusal
    this.#holder = refusal.holder
    if (!first) return
    // A listener of the event may end the waits of others.
    for (const waiter of [...this.line]) {
      if (waiter.state !== 'standing') continue
      waiter.refusal ??= refusal
      this.#park(waiter)
    }
  }

  #upToDate(refusal: Refused): Refused {
    const holder = this.#holder === 'released' ? undefined : (this.#holder ?? refusal.holder)
    return holder === refusal.holder ? refusal : { ...refusal, holder }
  }

  // The holds, and handing the lock on within the client.

  /**
   * Ends the hold and hands the lock on to the next waiter of this client, without asking Redis. Returns false if the
   * lock must be released in Redis. run.ts says why such a hand-off is safe.
   */
  handOn(hold: Hold, now: number): boolean {
    const { run } = hold
    if (!run || !this.#nextHolder(hold) || !this.holds.mayHandOn(hold, now) || !hold.end()) return false
    this.#handOffs.onHandedOn(hold, now)
    // A listener of the event may have closed the client, or aborted the call of the waiter that was to get the lock. So
    // the next waiter is looked up again.
    const next = this.#nextHolder(hold)
    if (next && run.left(now) > 0) {
      this.#handOffs.onPassed(run, now)
      run.owner = next.claim.owner
      const grant: Inherited = { granted: true, token: run.issue(), deadline: hold.deadline, via: 'handoff', run }
      this.#hold(next, grant, now)
    } else {
      this.holds.endRun(run)
      this.#handOffs.runEnded(run)
    }
    return true
  }

  /** Returns whether the hold could hand the lock on, but the key has no waiter in this client. */
  lacksNext(hold: Hold, now: number): boolean {
    return this.waiting === 0 && this.holds.goesOn(hold, now)
  }

  dropHold(hold: Hold): void {
    this.holds.drop(hold)
    if (!this.holds.any && this.present === 0) this.#forgetIfIdle()
  }

  /**
   * Returns the waiter that may take over the hold's lease: the head of the line, if no fair waiter of this client
   * waits, the head cannot re-enter, and it asks for a lease of the same length. It asks for no `minHold`, which Redis
   * would not know of.
   */
  #nextHolder({ length }: Hold): Waiter | undefined {
    const head = this.#queue?.size ? undefined : this.line.first
    if (!head || head.call.mayReenter || head.claim.minHold) return undefined
    return head.claim.lease === length ? head : undefined
  }

  /** Whether the key has waiters in this client, or an answer for a former waiter is still to come. */
  get #inUse(): boolean {
    return this.#rounds.asking || this.waiting > 0 || this.#beating
  }

  /** Marks the waiter as parked, and emits its `waiting` event once. */
  #park(waiter: Waiter): void {
    const { mode, fairAfter = NEVER, since } = waiter.call
    if (waiter.parked || mode === 'once') return
    waiter.told = 'parked'
    if (mode === 'line' && fairAfter < NEVER) {
      this.#leastFairAfter = Math.min(this.#leastFairAfter, fairAfter)
      this.#fairAt = Math.min(this.#fairAt, since + fairAfter)
      this.#planFor(this.#fairAt)
    }
    this.#port.onParked(waiter)
  }

  /**
   * Lets the waiters of the line join the queue that have waited for their `fairAfter`. This bounds starvation. A waiter
   * that was not refused yet joins when it is.
   */
  #queueOld(now: number): void {
    const old: Waiter[] = []
    this.#fairAt = NEVER
    for (const waiter of this.line) {
      const { fairAfter = NEVER, since } = waiter.call
      if (!waiter.parked) continue
      if (since + fairAfter <= now) {
        old.push(waiter)
        continue
      }
      this.#fairAt = Math.min(this.#fairAt, since + fairAfter)
      // The waiters behind this one came later.
      if (since + this.#leastFairAfter <= now) continue
      this.#fairAt = Math.min(this.#fairAt, since + this.#leastFairAfter)
      break
    }
    for (const waiter of old) if (waiter.state === 'standing') this.#port.queue(waiter, now)
  }

  #planFor(at: number): void {
    if (at < this.dueAt) this.#agenda.set(this, at)
  }

  /**
   * Forgets what is known about the lock, because it has no waiters in this client. The subscriptions end only when the
   * agenda is next due, or when the key is idle: under contention, the next waiter comes at once. In memory they cost
   * nothing, and what is due would keep the process alive.
   */
  #rested(): void {
    this.#holder = this.#refusal = this.#releasedAt = this.silence = undefined
    this.#lookAt = this.#fairAt = this.#leastFairAfter = NEVER
    if (this.#port.local) this.#agenda.delete(this)
    if (this.subscribed && this.dueAt === NEVER) this.#port.onRest(this)
    if (this.present === 0 && !this.holds.any) this.#forgetIfIdle()
  }

  #forgetIfIdle(): void {
    if (this.present > 0 || this.holds.any || this.#inUse) return
    if (this.dueAt < NEVER) this.#agenda.delete(this)
    if (this.subscribed) this.#port.onRest(this)
    this.#port.onIdle(this)
  }
}

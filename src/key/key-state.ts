/**
 * Everything that this client knows of one key: its waiters, its holds, and what replies and messages have said. Every
 * decision about them is made here. This file has no I/O, no timer and no clock: each public method reports an event,
 * and the time comes with it. What has to be done goes out through `Port`, which io.ts and holds.ts carry out.
 *
 *      line    unfair waiters, first come first; only the head, the first of them, asks Redis     A ─ B ─ C
 *      queue   fair waiters; Redis keeps their order                                            { D, E }
 *      holds   mostly one, and the run of hand-offs to which it belongs (run.ts)                { F }
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
 * client is the first to know when that hold ends. The heads of different clients take turns (others.ts), so a head may
 * leave the lock to other clients for a moment before it asks. If no other client received the message of this client's
 * last release, the line counts as `alone` until there is a sign of another client; its runs may then last longer.
 */
import { LockClosedError, LockConnectionError } from '../errors.ts'
import type { Channel, Claim, Granted, Holder, Refused, Renewed, Tended, Via } from '../kind.ts'
import { Hold } from './hold.ts'
import { Others, TURN } from './others.ts'
import { goesOn, type Inherited, type Records, Run } from './run.ts'
import type { Due } from './schedule.ts'
import { inState, type Waiter } from './waiter.ts'

/** What an attempt is for. */
export type Attempt =
  /** A waiter asks for itself only. It is neither in its client's line nor in the queue. */
  | 'alone'
  /** The head of the line asks on behalf of all waiters in the line. */
  | 'as-head'
  /** A fair waiter asks, and is queued if it is refused. */
  | 'to-join'
  /** The waiter's owner already holds the lock, in this process or in another. The waiter asks to re-enter. */
  | 'to-re-enter'

/**
 * A client's subscriptions for the waiters of a key: a promise while the subscription is being made, `true` once it is
 * active.
 */
export type Heard = { [C in Channel]?: Promise<void> | true | undefined }

/**
 * A time in which Redis does not answer. `since`: when the outage, or the first unanswered attempt, began, in ms of a
 * clock that counts only the time in which this process runs. `error`: the latest error.
 */
export interface Silence {
  readonly since: number
  error: Error
}

/** What a key asks of its client. io.ts implements the port. */
export interface Port {
  /** Whether several owners may hold a lock at a time. */
  readonly shared: boolean
  /** Whether unfair waiters of different clients take turns. */
  readonly inTurns: boolean
  /** Whether replicas have to confirm a grant. */
  readonly confirms: boolean
  /** For how many ms a waiter keeps trying while replicas do not confirm its grants. */
  readonly patience: number
  /** The longest time between two looks at a lock with waiters, in ms. */
  readonly pause: number
  /** Whether the client is closed. A closed client accepts no grants. */
  readonly closed: boolean
  /** Sends an attempt; then calls `answered`, or `failed` if there is no answer. `reserve`: for hand-offs. */
  ask(state: KeyState, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean, now: number): void
  /** Sends a heartbeat of these waiters, and calls `tended`. */
  tend(state: KeyState, waiters: readonly Waiter[]): void
  /** Asks replicas whether they have a grant, and calls `confirmed` or `unconfirmed`. */
  confirm(state: KeyState, waiter: Waiter, grant: Granted, now: number): void
  /** Takes back a grant that replicas did not confirm, and calls `undone` a moment later. */
  undo(state: KeyState, waiter: Waiter): void
  /** Removes the waiter from the queue in Redis, or releases what it was granted. */
  leave(waiter: Waiter): void
  /**
   * Asks Redis whether this waiter's hold still exists, if it is not the hold of the grant with this token. Takes the
   * grant back if the client no longer has such a hold.
   */
  check(waiter: Waiter, token?: number): void
  /** Subscribes to the unlock channel, and calls `listened` when the subscription is active or takes too long. */
  hear(state: KeyState, head: Waiter, now: number): void
  /** Subscribes to the unlock channel in the background. */
  listen(state: KeyState): void
  /** Whether a message about a release reaches this client, perhaps because of a subscription that was just dropped. */
  reached(key: string): boolean
  /** Called when the waiter has parked. */
  parked(waiter: Waiter): void
  /** Called when the waiter's wait is over, before its promise settles. */
  settled(waiter: Waiter): void
  /** Called when the key has no waiters left. */
  rested(state: KeyState): void
  /** Called when the key has neither waiters nor holds, and no call is about to add one. */
  idle(state: KeyState): void
}

/** Calls `due` of a key at the time that is set for it. */
export interface Agenda {
  set(state: KeyState, at: number): void
}

/** What a key asks for when it hands the lock on within the client. holds.ts implements it. */
export interface Succession {
  /** Called when the hold has ended because its lock is being handed on. */
  handedOn(hold: Hold, now: number): void
  /** Called after the lock was handed on within the run. */
  passed(run: Run, now: number): void
  /** Releases the lock in Redis, because its run can no longer hand it on. */
  abandoned(run: Run): void
}

/** A look for the end of a lease comes this many ms after that end. The server counts whole ms. */
const AFTER_LAPSE = 2
/** The pause between the moment when an unconfirmed grant is taken back and the next attempt, in ms. */
export const UNDO_PAUSE = 50
/** In a lock that several owners may hold, at most this many attempts are under way at a time. */
const WIDEST = 128
/** How long what is known about the turns of other clients is kept after its last use, in ms. */
const MEMORY = 1_000
const NEVER = Number.POSITIVE_INFINITY

const tooLate = new Error('the lease ended before enough replicas had confirmed the grant')
const nobody: ReadonlySet<Waiter> = new Set()

export class KeyState implements Due {
  readonly key: string
  /** The subscriptions for this key's waiters (io.ts). */
  heard: Heard | undefined
  /** Since when Redis has not answered the head of the line (limits.ts). */
  silence: Silence | undefined
  slot = -1
  dueAt = NEVER
  /**
   * Whether no other client received the message of this client's last release, and there has been no sign of another
   * client since then.
   */
  alone = false
  readonly #port: Port
  readonly #succession: Succession
  readonly #agenda: Agenda
  /** How many waiters have not settled, wherever they wait. io.ts counts each waiter that arrives. */
  present = 0
  /** Created when needed, because most keys have either fair or unfair waiters. */
  #line: Set<Waiter> | undefined
  #queue: Set<Waiter> | undefined
  /** Nearly every key has only one hold, which is then stored without a set. */
  #holds: Hold | Set<Hold> | undefined
  #run: Run | undefined
  /** The newest report of who holds the lock, whichever waiter received it; undefined if there was no report. */
  #holder: Holder | 'released' | undefined
  /** When the lock is next looked at, and when this client's turn comes. */
  #lookAt = NEVER
  #turnAt = NEVER
  /** The other clients' turns; undefined if no other client receives the messages about this client's releases. */
  #others: Others | undefined
  #sweepAt = NEVER
  /** The last refusal of the head, which applies to all waiters of the line. */
  #refusal: Refused | undefined
  /**
   * When this client sent its last release of the lock; undefined if it has been granted the lock since then, or if it
   * has no waiters for the lock.
   */
  #releasedAt: number | undefined
  /** Whether an attempt of the line is under way. */
  #asking = false
  /** Whether there is a wake-up that no attempt has used yet. */
  #woken = false
  /** How many attempts of the present round are unanswered. A round is the attempts that were sent together. */
  #unanswered = 0
  /** Whether an attempt was refused in the present round. */
  #refused = false
  /** The number of consecutive rounds in which all attempts were granted. */
  #row = 0
  /** Whether the subscription to the unlock channel was active before the attempt under way was sent. */
  #heardBefore = false
  /** Whether a heartbeat is under way, and whether another must follow it. */
  #tending = false
  #tendAgain = false

  constructor(key: string, port: Port, succession: Succession, agenda: Agenda) {
    this.key = key
    this.#port = port
    this.#succession = succession
    this.#agenda = agenda
  }

  /** How many waiters are in the line and in the queue. */
  get waiting(): number {
    return (this.#line?.size ?? 0) + (this.#queue?.size ?? 0)
  }

  get line(): ReadonlySet<Waiter> {
    return this.#line ?? nobody
  }

  get queue(): ReadonlySet<Waiter> {
    return this.#queue ?? nobody
  }

  get head(): Waiter | undefined {
    for (const waiter of this.#line ?? nobody) return waiter
    return undefined
  }

  // The arrival of a waiter.

  /**
   * Sends an attempt for this waiter only, outside the line. While it is the turn of other clients, the waiter joins
   * the line instead. So a re-entry can take a few ms longer. A waiter that makes only a single attempt does not join
   * the line.
   */
  tryAlone(waiter: Waiter, now: number): void {
    if (waiter.wish.mode !== 'once' && this.#others && this.#others.wait(now) > 0) this.stand(waiter, now)
    else this.#ask(waiter, 'alone', now)
  }

  /** Adds the waiter at the end of the line. */
  stand(waiter: Waiter, now: number): void {
    waiter.state = 'standing'
    this.#line ??= new Set()
    this.#line.add(waiter)
    if (this.#line.size === 1) {
      if (this.#run && this.#behindOurselves(now)) return
      if (this.#others) this.#tryInTurn(now)
      else this.#tryNow(now)
    } else if (this.#refusal) {
      // The head is parked, and its wake-ups are for the whole line. So the new waiter need not ask Redis.
      this.#refusal = this.#upToDate(this.#refusal)
      waiter.refusal ??= this.#refusal
      this.#park(waiter)
    }
  }

  /** Makes this a fair waiter. If it stands in the line, it leaves the line. */
  announce(waiter: Waiter, now: number): void {
    waiter.state = 'announced'
    this.#leaveLine(waiter, now)
    this.#queue ??= new Set()
    this.#queue.add(waiter)
  }

  /** Asks Redis for a place in the queue. Called for a fair waiter, once the subscription to its inbox is active. */
  join(waiter: Waiter, now: number): void {
    if (waiter.state === 'announced') waiter.state = 'joining'
    this.#ask(waiter, 'to-join', now)
  }

  // Answers to attempts.

  answered(waiter: Waiter, attempt: Attempt, join: boolean, answer: Granted | Refused, now: number): void {
    waiter.unanswered -= 1
    waiter.answered = true
    if (answer.granted) this.#granted(waiter, waiter.asSeen(answer), now)
    else this.#attemptRefused(waiter, join, answer)
    if (attempt === 'as-head') this.#headAnswered(waiter, answer, now)
    else if (answer.granted || !waiter.waits) return
    else if (attempt === 'to-join') this.#joined(waiter, answer, now)
    else if (attempt !== 'alone') return
    else if (waiter.wish.mode === 'once') this.end(waiter, undefined, now)
    else this.stand(waiter, now)
  }

  /**
   * Called when the head's attempt has failed. Lets the next waiter ask. All waiters in the line have waited for the
   * answer to the failed attempt. So for limits.ts, Redis was out of reach for each of them during this time.
   */
  failed(now: number): void {
    this.#row = 0
    this.#unanswered -= 1
    if (this.#unanswered <= 0) this.listened(now)
  }

  /**
   * Called when Redis has answered whether replicas have the grant. `begun`: when `Port.confirm` asked. If `deadline`
   * is a number, enough replicas have the grant, and the hold lasts until `deadline`. This time depends on the server's
   * clock, which may be wrong. So `confirmedUntil` limits the hold to the length of the lease.
   */
  confirmed(waiter: Waiter, grant: Granted, begun: number, deadline: Renewed, now: number): void {
    if (!waiter.waits) return
    const until = waiter.confirmedUntil(grant, begun, deadline)
    if (until > now) {
      this.#hold(waiter, { ...grant, deadline: until }, now)
      // Waiters may have joined the line during the confirmation. They have not tried yet.
      this.wake(now)
    } else if (
      !this.#outOfPatience(waiter, begun, new LockConnectionError('the lock was not replicated', tooLate), now)
    ) {
      this.undone(waiter, now)
    }
  }

  /** Called when too few replicas have the grant. */
  unconfirmed(waiter: Waiter, begun: number, error: Error, now: number): void {
    if (waiter.waits && !this.#outOfPatience(waiter, begun, error, now)) this.#port.undo(this, waiter)
  }

  /** Called after a grant that replicas did not confirm has been taken back. */
  undone(waiter: Waiter, now: number): void {
    if (!waiter.waits) return
    waiter.confirming = false
    this.#again(waiter, now)
  }

  /** Applies the answer to the heartbeat of these waiters; `answer` is undefined if the heartbeat failed. */
  tended(waiters: readonly Waiter[], answer: Tended | undefined, now: number): void {
    if (answer) this.#learnOfQueue(waiters, answer, now)
    this.#tending = false
    const again = this.#tendAgain && this.queue.size > 0
    this.#tendAgain = false
    if (again) this.#tend()
    else if (!this.#inUse) this.#rested()
  }

  // Messages and other reports about the lock.

  /** Called when the lock may be free. Lets the head ask when it is this client's turn. */
  wake(now: number): void {
    if (this.line.size === 0) return
    this.alone = false
    this.#tryInTurn(now)
  }

  /** Called when another client, `by`, has announced that the lock is free. */
  unlocked(by: string | undefined, now: number): void {
    if (by !== undefined) this.#others?.freed(by, now)
    if (this.#inUse) this.#holder = 'released'
    this.wake(now)
  }

  /** Called when this client sends its release. The hand-off time in the statistics begins now. */
  releasing(now: number): void {
    this.#others?.startRound(now)
    if (this.#inUse) this.#releasedAt = now
  }

  /**
   * Called when this client has released the lock. `heard`: how many clients received the message that the lock is
   * free, including this client if it listens.
   */
  released(heard: number, now: number): void {
    const others = this.#port.inTurns && (heard > 0 || this.#others) ? this.#othersReached(heard, now) : heard
    if (this.#inUse) this.#holder = 'released'
    if (this.line.size === 0) {
      if (!this.#holds) this.#forgetIfIdle()
      return
    }
    if (this.#run && this.#behindOurselves(now)) return
    this.alone = others === 0
    this.#tryInTurn(now)
  }

  /** Called when the subscription to the unlock channel is active, or has taken too long: a message may have been missed. */
  listened(now: number): void {
    this.#woken = true
    this.#tryHead(now)
  }

  /**
   * Called when it is known that this owner holds the lock. The owner's waiters ask to re-enter. Each waiter sends a
   * request of its own, because each hold has an id of its own, by which it is released.
   */
  entered(owner: string, now: number): void {
    for (const waiter of [...this.line, ...this.queue]) {
      if (waiter.claim.owner === owner && waiter.wish.mayReenter) this.#reenter(waiter, now)
    }
  }

  /**
   * Called when a message announces a grant. The message alone does not say when the grant was made. The reply to an
   * earlier request may prove that the grant was made after that request was sent. If so, this client counts the lease
   * from the time at which it sent that request. Otherwise it asks Redis about the grant.
   */
  granted(waiter: Waiter, token: number, via: Via, now: number): void {
    if (inState[waiter.state].message === 'ignore') return
    const grant = waiter.proven(token, via, now)
    if (grant) this.#granted(waiter, grant, now)
    else this.#prove(waiter, now)
  }

  /**
   * Called when the answer to a heartbeat, or to this client's own release, contains a grant. If the lease of this
   * grant is already over, the grant is not used, and Redis is asked again. This is done only once for each waiter,
   * because the lease may be shorter than any round trip, and then every answer arrives too late.
   */
  found(waiter: Waiter, grant: Granted, now: number): void {
    const dead = waiter.waits && grant.deadline <= now
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
    if (this.#port.shared) {
      // The head's refusal names only one of several holders. So each waiter whose owner may hold asks for itself, too.
      for (const waiter of [...this.line].slice(1)) if (waiter.wish.mayReenter) this.#reenter(waiter, now)
    }
    if (this.#releasedAt === undefined || now - this.#releasedAt >= TURN) this.#tryNow(now)
    // This client's own release is under way. An attempt now would reach Redis directly after the release, and so
    // overtake the attempts of other clients. When the release is answered, this client knows whose turn it is.
    else this.lookWithin(TURN, now)
  }

  /** Plans a look for the end of the holder's lease, in `ttl` ms. If an earlier look is planned, nothing changes. */
  lookWithin(ttl: number, now: number): void {
    if (this.waiting === 0) return
    const at = now + Math.min(ttl + AFTER_LAPSE, this.#port.pause)
    if (at >= this.#lookAt) return
    this.#lookAt = at
    this.#plan()
  }

  due(now: number): void {
    if (now >= this.#turnAt) {
      this.#others?.waited(now)
      this.#tryNow(now)
    }
    if (now >= this.#lookAt) this.look(now)
    if (now >= this.#sweepAt) {
      const used = this.waiting > 0 || now - (this.#others?.freedAt ?? 0) < MEMORY
      this.#sweepAt = used ? now + MEMORY : NEVER
      if (!used) this.#others = undefined
      this.#forgetIfIdle()
    }
    this.#plan()
  }

  // The end of a wait.

  /**
   * Ends the wait without the lock: because of an error, because the caller gave up, or because a single attempt was
   * refused.
   */
  end(waiter: Waiter, error: Error | undefined, now: number): void {
    const { end } = inState[waiter.state]
    if (end === 'ignore') return
    const leaves = end === 'leave' || waiter.confirming || waiter.unanswered > 0
    this.present -= 1
    this.#settle(waiter, 'over', now)
    if (leaves) this.#port.leave(waiter)
    waiter.settle(error, waiter, now)
  }

  /**
   * Called when a request may have reached Redis after its waiter had stopped waiting. Redis may then have queued the
   * waiter or granted it the lock. This method undoes that.
   */
  takeBack(waiter: Waiter): void {
    if (waiter.state === 'over') this.#port.leave(waiter)
    else this.#port.check(waiter)
  }

  /** Ends the wait with a grant. */
  #hold(waiter: Waiter, grant: Granted, now: number): void {
    waiter.alone = this.alone
    if (this.#releasedAt !== undefined) waiter.handoff = now - this.#releasedAt
    this.#releasedAt = undefined
    this.#others?.taken(grant.via === 'immediate' || grant.via === 'wakeup', now)
    this.#settle(waiter, 'holding', now)
    waiter.settle(grant, waiter, now)
    // Only now, because the key would have been forgotten before it had the hold.
    this.present -= 1
    if (!this.#holds) this.#forgetIfIdle()
  }

  #settle(waiter: Waiter, state: 'holding' | 'over', now: number): void {
    const { inQueue } = waiter
    waiter.state = state
    waiter.confirming = false
    this.#port.settled(waiter)
    if (this.#port.shared) this.#leaveLine(waiter, now)
    else this.#line?.delete(waiter)
    this.#queue?.delete(waiter)
    // The head asks Redis on behalf of the whole line. So if the head's refusal is newer than this waiter's own
    // refusal, it better explains why the wait ended.
    const refusal = this.#refusal
    if (refusal && !inQueue && refusal.sent > (waiter.refusal?.sent ?? 0)) waiter.refusal = refusal
    if (state === 'over' && waiter.refusal) waiter.refusal = this.#upToDate(waiter.refusal)
    if (!this.#inUse) this.#rested()
  }

  #granted(waiter: Waiter, grant: Granted, now: number): void {
    const { grant: meaning } = inState[waiter.state]
    if (meaning === 'take-back') return this.#port.leave(waiter)
    if (meaning === 'check') return this.#port.check(waiter, grant.token)
    if (this.#port.closed) {
      this.present -= 1
      this.#settle(waiter, 'over', now)
      this.#port.leave(waiter)
      return waiter.settle(new LockClosedError(), waiter, now)
    }
    // `waiter.lost` is the token of a grant that was taken away, according to a message. The message may be forged. So
    // the token is used only once, and a forged message costs the waiter only one more attempt.
    const lost = grant.token <= waiter.lost
    waiter.lost = 0
    if (lost && waiter.wish.mode !== 'once') return this.#again(waiter, now)
    if (!this.#port.confirms) {
      this.#hold(waiter, grant, now)
      if (lost) this.#port.check(waiter, NEVER)
      return
    }
    waiter.latest = Math.max(waiter.latest, grant.token)
    if (waiter.confirming) return
    waiter.confirming = true
    this.#port.confirm(this, waiter, grant, now)
  }

  /**
   * Called when replicas did not confirm a grant. If the waiter makes only a single attempt, its wait ends. Otherwise
   * the waiter would make its next attempt in `UNDO_PAUSE` ms. If it will have tried for `patience` ms or longer by
   * then, its wait ends now. Returns whether the wait has ended.
   */
  #outOfPatience(waiter: Waiter, begun: number, error: Error, now: number): boolean {
    waiter.unconfirmedSince ??= begun
    const waited = now + UNDO_PAUSE - waiter.unconfirmedSince
    const ended = waiter.wish.mode === 'once' || waited >= this.#port.patience
    if (ended) this.end(waiter, error, now)
    return ended
  }

  /** Makes a waiter ask again after a grant that it must not use (`inState` in waiter.ts). */
  #again(waiter: Waiter, now: number): void {
    const { again } = inState[waiter.state]
    if (again === 'stand') this.stand(waiter, now)
    else if (again === 'try') this.#tryNow(now)
    else if (again === 'join') this.join(waiter, now)
    else if (again === 'look') this.look(now)
  }

  #attemptRefused(waiter: Waiter, join: boolean, refusal: Refused): void {
    if (!waiter.waits) {
      if (join) this.takeBack(waiter)
    } else if (join || inState[waiter.state].refused === 'wait') {
      waiter.refusal = refusal
      this.#holder = refusal.holder
      this.#park(waiter)
    }
  }

  #joined(waiter: Waiter, { ticket, sent, ttl }: Refused, now: number): void {
    const { announced } = waiter
    waiter.state = 'queued'
    waiter.ticket = ticket
    waiter.announced = false
    waiter.seen = sent
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

  // The line.

  #leaveLine(waiter: Waiter, now: number): void {
    const led = this.#port.shared && this.head === waiter
    this.#line?.delete(waiter)
    const next = led ? this.head : undefined
    // The old head may have been refused because it wanted more permits than were free. The new head wants a different
    // number of permits, so it may be granted the lock.
    if (next && next.claim.wants !== waiter.claim.wants) this.#tryNow(now)
  }

  #tryInTurn(now: number): void {
    const turn = this.#others?.wait(now) ?? 0
    const wait = turn > 0 ? Math.min(turn, this.#mayWait(this.head, now)) : 0
    if (wait <= 0) return this.#tryNow(now)
    // If a message comes meanwhile, it says that the lock is free. If none comes, the head asks when its turn comes.
    this.#port.listen(this)
    this.#turnAt = now + wait
    this.#plan()
  }

  /** Lets the head ask now, even if it is another client's turn. */
  #tryNow(now: number): void {
    if (this.#turnAt < NEVER) {
      this.#turnAt = NEVER
      this.#plan()
    }
    this.#woken = true
    if (!this.#asking) this.#tryHead(now)
  }

  /** Lets the head ask if there is an unused wake-up. Must not be called while an attempt of the line is under way. */
  #tryHead(now: number): void {
    const { head } = this
    this.#asking = head !== undefined && this.#woken && !head.confirming
    if (!head || !this.#asking) {
      if (!this.#inUse) this.#rested()
      return
    }
    this.#woken = false
    // A refused head may park only if the subscription was active before its attempt. Otherwise it may have missed a
    // message.
    this.#heardBefore = this.heard?.unlock === true
    const wanted = this.#refusal !== undefined || this.line.size > 1 || this.#releasedAt !== undefined
    this.#unanswered = 1
    this.#refused = false
    this.#ask(head, 'as-head', now, wanted && !head.wish.mayReenter)
    if (this.#row > 1) this.#askBehind(head, Math.min(2 ** (this.#row - 1), WIDEST), now)
  }

  #askBehind(head: Waiter, most: number, now: number): void {
    for (const waiter of this.line) {
      if (waiter === head || waiter.confirming) continue
      if (this.#unanswered === most) return
      this.#unanswered += 1
      this.#ask(waiter, 'as-head', now)
    }
  }

  /** Called when an attempt of the line was answered. The waiter itself knows the answer already. */
  #headAnswered(head: Waiter, answer: Granted | Refused, now: number): void {
    if (this.waiting > 0) this.lookWithin(answer.granted ? head.claim.lease : answer.ttl, now)
    if (!answer.granted) {
      this.alone = false
      this.#share(answer)
    }
    // The answer names the owner that holds the lock. This owner may have other waiters in this client, and they may
    // re-enter. The message about the owner's grant may not have reached them, because this client may have subscribed
    // after it.
    const holder = answer.granted ? answer.via === 'reentry' && head.claim.owner : answer.owner
    if (holder) this.entered(holder, now)
    this.#refused ||= !answer.granted
    this.#unanswered -= 1
    if (this.#unanswered > 0) return
    // While replicas are asked to confirm the head's grant, the client need not subscribe to the unlock channel,
    // because the line tries again after the replicas' answer.
    const goesOn = this.#heardBefore || head.confirming
    // In a lock that several owners may hold, the next waiter may be granted the lock, too.
    if (this.#port.shared && !this.#refused) {
      this.#row += 1
      return this.listened(now)
    }
    this.#row = 0
    if (this.line.size === 0) {
      this.#asking = false
      if (!this.#inUse) this.#rested()
    } else if (goesOn || (answer.granted && this.#behindOurselves(now))) this.#tryHead(now)
    else this.#port.hear(this, head, now)
  }

  /**
   * Returns for how many ms the waiter may put off its first attempt, so that the answer still arrives before the
   * waiter gives up or joins the queue.
   */
  #mayWait(waiter: Waiter | undefined, now: number): number {
    if (!waiter || waiter.refusal) return NEVER
    const { timeout, fairAfter } = waiter.wish
    return waiter.since + Math.min(timeout ?? NEVER, fairAfter ?? NEVER) / 2 - now
  }

  /**
   * Returns whether a hold of this client may still hand the lock on to the line. The waiters of the line then wait for
   * that hold to end.
   */
  #behindOurselves(now: number): boolean {
    const hold = this.oldest
    const ttl = hold?.run?.left(now) ?? 0
    if (!hold || ttl <= 0) return false
    const holder = { label: hold.claim.label, since: hold.since }
    this.#share({ granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: 0 })
    this.lookWithin(ttl, now)
    return true
  }

  /** Gives this refusal to all waiters of the line. `stand` gives it to waiters that come later. */
  #share(refusal: Refused): void {
    const first = this.#refusal === undefined
    this.#refusal = refusal
    this.#holder = refusal.holder
    if (!first) return
    for (const waiter of this.line) {
      waiter.refusal ??= refusal
      this.#park(waiter)
    }
  }

  /** Learns from a release how many other clients wait, and so take turns with this one. Returns their number. */
  #othersReached(heard: number, now: number): number {
    const known = this.#others
    const reached = this.#port.reached(this.key)
    if (heard === 0 && reached) {
      // This client listens, so it would have received a message about the release. As no client has received one, none
      // was sent: the release did not free the lock for unfair waiters. So this client need not wait for the turns of
      // other clients.
      if (known) known.freedAt = now - TURN
      return known?.listening ?? 0
    }
    const listening = reached ? heard - 1 : heard
    if (listening === 0 || this.#port.closed) this.#others = undefined
    else {
      this.#others ??= new Others(now)
      this.#others.listening = listening
      this.#others.freedAt = now
      if (this.#sweepAt === NEVER) this.#sweepAt = now + MEMORY
      this.#plan()
    }
    return listening
  }

  // The queue.

  #tend(): void {
    const waiters = [...this.queue].filter(({ state }) => state === 'queued')
    if (waiters.length === 0) return
    this.#tending = true
    this.#port.tend(this, waiters)
  }

  #learnOfQueue(waiters: readonly Waiter[], answer: Tended, now: number): void {
    const { sent, ttl, holder, owner, clock, waiters: places } = answer
    this.#holder = holder
    const owners = new Set(owner === undefined ? [] : [owner])
    for (const [i, place] of places.entries()) {
      const waiter = waiters[i] as Waiter
      if (typeof place !== 'number') this.found(waiter, place, now)
      else if (!waiter.waits) this.takeBack(waiter)
      else {
        waiter.seen = sent
        const position = Math.abs(place)
        waiter.refusal = { ...(waiter.refusal as Refused), sent, ttl, position, holder, owner, clock }
        if (place < 0) owners.add(waiter.claim.owner)
      }
    }
    for (const each of owners) this.entered(each, now)
    this.lookWithin(ttl, now)
  }

  // The holds, and handing the lock on within the client.

  /** The holds, oldest first. */
  get holds(): Iterable<Hold> {
    const holds = this.#holds ?? []
    return holds instanceof Hold ? [holds] : holds
  }

  get oldest(): Hold | undefined {
    if (this.#holds instanceof Hold) return this.#holds
    for (const hold of this.#holds ?? []) return hold
    return undefined
  }

  /** Returns all holds of one grant: the first hold, and the re-entrant holds that have the same token. */
  ofGrant({ token }: Hold): Hold[] {
    return [...this.holds].filter(hold => hold.token === token)
  }

  addHold(hold: Hold): void {
    const holds = this.#holds
    if (holds instanceof Set) holds.add(hold)
    else this.#holds = holds ? new Set([holds, hold]) : hold
  }

  dropHold(hold: Hold): void {
    const holds = this.#holds
    if (!(holds instanceof Set)) this.#holds = undefined
    else if (holds.delete(hold) && holds.size === 1) for (const last of holds) this.#holds = last
    if (!this.#holds) this.#forgetIfIdle()
  }

  /**
   * Returns the run of hand-offs to which a grant belongs: the run that it continues, or a new one. Returns undefined
   * if the grant belongs to no run.
   */
  runOf(
    claim: Claim,
    grant: Granted | Inherited,
    now: number,
    alone: boolean,
    records: Pick<Records, 'late'>,
  ): Run | undefined {
    if ('run' in grant) {
      grant.run.owner = claim.owner
      return grant.run
    }
    // If the caller has set an owner, calls in other processes may have the same owner, and may hold the lock, too. So
    // after the end of this client's hold, another hold of the owner may remain. This client must not hand the lock on
    // then, so the grant begins no run.
    if (!grant.block || claim.owner !== claim.id) return undefined
    // Redis does not grant the lock while an earlier run lasts. As it has granted the lock, the earlier run has ended in
    // Redis, and it ends here, too.
    this.#run?.end()
    this.#run = new Run(claim, grant, now, alone, records)
    return this.#run
  }

  /**
   * Called when a call has set an owner, before the call's request is sent to Redis (see `Holds.record`). Returns the
   * key's run of hand-offs, because Redis may not know the newest hold of that run yet.
   */
  naming(owner: string): Run | undefined {
    // If this owner holds the lock now, the call may re-enter. Before Redis answers the call, the owner may release its
    // present hold. If this release handed the lock on to a waiter, the waiter and the re-entered owner would both hold
    // the lock. So the run ends.
    if (this.#run?.owner === owner) this.#run.end()
    return this.#run
  }

  /** Ends the run: the lock is no longer handed on within this client. */
  endRun(run: Run): void {
    run.end()
    if (this.#run === run) this.#run = undefined
  }

  /**
   * Ends the hold and hands the lock on to the next waiter of this client, without asking Redis. Returns false if the
   * lock must be released in Redis. run.ts says why such a hand-off is safe. It needs a hold that certainly lasts, that
   * is its owner's only hold, and about which Redis is not being asked; and a waiter to inherit it.
   */
  handOn(hold: Hold, now: number): boolean {
    const { run } = hold
    if (!run || !this.#heir(hold) || !goesOn(hold, now)) return false
    if (this.#holds !== hold || hold.inQuestion || !hold.end()) return false
    this.#succession.handedOn(hold, now)
    // `handedOn` emits an event. A listener may have closed the client, or aborted the call of the waiter that was to
    // get the lock. So the next waiter is looked up again.
    const heir = this.#heir(hold)
    if (heir && run.left(now) > 0) {
      this.#succession.passed(run, now)
      // No replica is asked, because the replicas have already confirmed the hold that is handed on.
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
   * waits, the head cannot re-enter, and it asks for a lease of the same length.
   */
  #heir({ length }: Hold): Waiter | undefined {
    const head = this.#queue?.size ? undefined : this.head
    return head && !head.wish.mayReenter && head.claim.lease === length ? head : undefined
  }

  // What all parts above use.

  /** Whether the key has waiters in this client, or an answer for a former waiter is still to come. */
  get #inUse(): boolean {
    return this.#asking || this.waiting > 0 || this.#tending
  }

  #ask(waiter: Waiter, attempt: Attempt, now: number, reserve = false): void {
    waiter.unanswered += 1
    const join = attempt === 'to-join' || (attempt === 'to-re-enter' && waiter.inQueue)
    // From now on, a message can announce a grant to this waiter. To check such a message, `proven` in waiter.ts needs
    // the time of this request.
    if (join) waiter.seen ??= now
    this.#port.ask(this, waiter, attempt, join, reserve, now)
  }

  #reenter(waiter: Waiter, now: number): void {
    if (!waiter.confirming) this.#ask(waiter, 'to-re-enter', now)
  }

  /** Marks the waiter as parked, and emits its `waiting` event once. */
  #park(waiter: Waiter): void {
    if (waiter.parked || waiter.wish.mode === 'once') return
    waiter.parked = true
    this.#port.parked(waiter)
  }

  #plan(): void {
    this.#agenda.set(this, Math.min(this.#lookAt, this.#turnAt, this.#sweepAt))
  }

  #upToDate(refusal: Refused): Refused {
    const holder = this.#holder === 'released' ? undefined : (this.#holder ?? refusal.holder)
    return holder === refusal.holder ? refusal : { ...refusal, holder }
  }

  /** Forgets what is known about the lock, if it has no waiters in this client. */
  #rested(): void {
    this.#holder = undefined
    this.#refusal = undefined
    this.alone = false
    this.#releasedAt = undefined
    if (this.#lookAt < NEVER || this.#turnAt < NEVER) {
      this.#lookAt = NEVER
      this.#turnAt = NEVER
      this.#plan()
    }
    if (this.heard || this.silence) this.#port.rested(this)
    if (!this.#holds) this.#forgetIfIdle()
  }

  #forgetIfIdle(): void {
    if (this.present === 0 && !this.#holds && !this.#others && !this.#inUse) this.#port.idle(this)
  }
}

/**
 * Waiting for a lock: the blocking loop, once for every kind of lock and both modes.
 *
 * A waiter parks on a promise. What un-parks it is a message (a grant to its inbox, or "unlocked"), a reply (a grant that
 * a heartbeat found, or that this client's own release made), or the end of its patience. Messages are hints: each may
 * be lost, late, early, doubled or forged, and then the slow timer, which re-reads the truth, costs time but never a
 * lock (I4).
 *
 * Fair (queue):                                     Unfair (line):
 *   1. hear the inbox                                 1. stand in the client's own line; only its head goes on
 *   2. put the waiter in the table                    2. try
 *   3. ask, to be queued if refused                   3. refused: hear the unlock channel, and try once more
 *   4. refused: park                                  4. refused: park until a wake-up or the timer, then try again
 *
 * Each list is "announce, re-check, park" in its order. A lost wake-up would need a release between the re-check and the
 * park: but that release finds the waiter announced (its entry in the queue; its subscription), so the message is on
 * its way, and the message finds the waiter in the table, because that was written before the request left: message
 * and reply come over two connections and in any order.
 *
 * The line has one contender for each client and key, so a release wakes one request a process, not one a waiter (I9).
 * A wake-up belongs to the room, not to the head: if the head is cancelled, the next head uses it.
 *
 * Beside this loop: ending.ts (the end of every wait, and what is taken back behind it), heartbeat.ts (the slow timer),
 * outage.ts (the end of patience without Redis), waiters.ts (the table, without I/O).
 */
import { type Clock, surelyUntil } from '../clock.ts'
import { LockClosedError } from '../errors.ts'
import type { Channel, Granted, Primitive, Refused, Via } from '../primitive.ts'
import { Ending } from './ending.ts'
import { Heartbeat, type Patience } from './heartbeat.ts'
import { Outage } from './outage.ts'
import { type Room, Waiter, Waiters, type Wish } from './waiters.ts'

/** The channels of a key, as far as waiting needs them. Each `hear` is matched by one `drop`. */
export interface Channels {
  /** Undefined: heard already. A promise: heard when it resolves. */
  hear(key: string, channel: Channel): Promise<void> | undefined
  drop(key: string, channel: Channel): void
}

export interface WaitListener {
  /** The waiter goes on waiting: it was refused, or stands behind one that was. */
  waiting(waiter: Waiter): void
  /** Whether the client has made a lease of the grant to this id, and it has not ended. */
  holds(id: string): boolean
  /** Something failed that no promise reports. */
  failed(error: unknown): void
}

export class Acquirer {
  readonly #primitive: Primitive
  readonly #channels: Channels
  readonly #clock: Clock
  readonly #listener: WaitListener
  readonly #waiters = new Waiters()
  readonly #ending: Ending
  readonly #heartbeat: Heartbeat
  readonly #outage: Outage
  #closed = false

  constructor(primitive: Primitive, channels: Channels, clock: Clock, patience: Patience, listener: WaitListener) {
    this.#primitive = primitive
    this.#channels = channels
    this.#clock = clock
    this.#listener = listener
    this.#ending = new Ending(this.#waiters, primitive, clock, patience.waiterTtl, {
      holds: id => listener.holds(id),
      failed: error => listener.failed(error),
      // The wake-up for a lock that was given back may have been the one that went to the waiter that gave it back.
      left: key => this.unlocked(key),
      drop: (key, channel) => channels.drop(key, channel),
    })
    this.#heartbeat = new Heartbeat(primitive, clock, this.#ending, patience, {
      granted: (waiter, grant) => this.#receive(waiter, grant),
      tryLine: room => this.#tryLine(room),
    })
    this.#outage = new Outage(this.#waiters, clock, patience.outage, (waiter, error) => this.#ending.end(waiter, error))
  }

  /** Waiters parked or on their way. */
  get waiting(): number {
    return this.#waiters.size
  }

  /** Why Redis is out of reach, while it is. */
  get outage(): Error | undefined {
    return this.#outage.error
  }

  /** Begins to wait; `outcome` of the result tells the rest. */
  start(wish: Wish): Waiter {
    const waiter = new Waiter(wish, this.#clock.now())
    this.#pursue(waiter).catch(error => this.#ending.end(waiter, error))
    return waiter
  }

  /** The caller gives up: whatever became of the wish is taken back, even a grant that it has not seen yet. */
  quit(waiter: Waiter): void {
    if (waiter.state === 'granted') this.#ending.leave(waiter)
    else this.#ending.end(waiter, undefined)
  }

  /** "The lock is free": wakes the head of the line. */
  unlocked(key: string): void {
    const room = this.#waiters.room(key)
    if (room && room.line.size > 0) this.#wake(room)
  }

  /** This client releases the lock now: the next grant of it is a hand-off. */
  releasing(key: string): void {
    const room = this.#waiters.room(key)
    if (room) room.releasedAt = this.#clock.now()
  }

  /** A grant by message. False: no waiter of this client has that id. */
  grantedByMessage(id: string, token: number, via: Via): boolean {
    const waiter = this.#waiters.find(id)
    if (!waiter) return false
    const { lease } = waiter.claim
    // A message that was long under way may tell of a grant that has lapsed, after which the waiter has joined again. Its
    // token is then no larger than the clock was at our last look; only of a newer grant does that look prove the time.
    const newer = token > (waiter.refusal?.clock ?? 0)
    const deadline = surelyUntil(waiter.seen ?? waiter.since, lease)
    if (newer && deadline - this.#clock.now() >= lease / 2) {
      this.#ending.grant(waiter, { granted: true, token, deadline, via })
    } else {
      // Too little of the lease is proven, because we last looked too long ago, or nothing at all.
      this.#lookFirst(waiter)
    }
    return true
  }

  /** A grant by the reply of this client's own release. False: no waiter has that id any more. */
  grantedByReply(id: string, grant: Granted): boolean {
    const waiter = this.#waiters.find(id)
    if (waiter) this.#receive(waiter, grant)
    return waiter !== undefined
  }

  /**
   * Redis is out of reach: `error` is the latest reason. Everybody looks at the truth as soon as there is a connection,
   * or gives up in time.
   */
  disconnected(error: Error): void {
    if (!this.#closed && this.#outage.begin(error)) this.lookAgain()
  }

  reconnected(): void {
    this.#outage.over()
    this.lookAgain()
  }

  /** Messages may have been missed: every room looks at the truth. */
  lookAgain(): void {
    for (const room of this.#waiters.rooms) this.#heartbeat.beat(room)
  }

  /** Rejects every waiter with LockClosedError; resolves when all have left, as far as Redis answers. */
  async close(): Promise<void> {
    this.#closed = true
    this.#outage.over()
    for (const room of this.#waiters.rooms) {
      for (const waiter of [...room.line, ...room.queued]) this.#ending.end(waiter, new LockClosedError(room.key))
    }
    await this.#ending.close()
  }

  async #pursue(waiter: Waiter): Promise<void> {
    const { mode, mayReenter } = waiter.wish
    if (mode === 'queue') return this.#queue(waiter)
    if (mode === 'once' || mayReenter) {
      await this.#attempt(waiter, false)
      if (waiter.state !== 'waiting') return
      if (mode === 'once') return this.#ending.end(waiter, undefined)
    }
    this.#line(waiter)
  }

  async #queue(waiter: Waiter): Promise<void> {
    const room = this.#waiters.queue(waiter)
    await this.#hear(room, 'inbox')
    if (waiter.state !== 'waiting') return
    const answer = await this.#attempt(waiter, true)
    if (answer.granted || waiter.state !== 'waiting') return
    waiter.ticket = answer.ticket
    waiter.seen = answer.sent
    // A message that could not be believed came before this reply, when there was no ticket to look with.
    if (waiter.told) this.#heartbeat.beat(room)
    else this.#heartbeat.schedule(room, answer.ttl)
  }

  #line(waiter: Waiter): void {
    const { fairAfter } = waiter.wish
    const room = this.#waiters.line(waiter)
    if (fairAfter !== undefined) {
      const timer = this.#clock.after(waiter.since + fairAfter - this.#clock.now(), () => {
        if (waiter.state === 'waiting') this.#queue(waiter).catch(error => this.#ending.end(waiter, error))
      })
      const cancel = () => timer.cancel()
      waiter.outcome.then(cancel, cancel)
    }
    // Behind a head that is parked there is nothing to ask: its wake-ups are ours.
    if (room.head === waiter) return this.#wake(room)
    if (!room.refusal) return
    waiter.refusal ??= room.refusal
    this.#park(waiter)
  }

  #wake(room: Room): void {
    room.woken = true
    if (!room.contending) this.#contend(room)
  }

  /** The head of the line tries, as long as there are wake-ups to use. Never two attempts of one room at a time. */
  async #contend(room: Room): Promise<void> {
    room.contending = true
    for (let head = room.head; head && room.woken; head = room.head) {
      room.woken = false
      try {
        const answer = await this.#attempt(head, false)
        this.#heartbeat.schedule(room, answer.granted ? head.claim.lease : answer.ttl)
        if (!answer.granted) this.#shareRefusal(room, answer)
        if (room.heard.has('unlock') || room.line.size === 0) continue
        await this.#hear(room, 'unlock')
      } catch (error) {
        this.#ending.end(head, error as Error)
      }
      room.woken = true
    }
    room.contending = false
    this.#ending.closeIfEmpty(room)
  }

  /** A look at the truth for the line: its head tries, and so does everybody whom the head's attempts cannot stand for. */
  #tryLine(room: Room): void {
    for (const waiter of room.line) {
      // Re-entry is open to an owner who may hold the lock elsewhere, and to nobody else.
      if (waiter.wish.mayReenter && waiter !== room.head) this.#attempt(waiter, false).catch(() => {})
    }
    this.#wake(room)
  }

  /** Resolves when the room hears the channel. One that cannot be heard is not counted as heard by the next waiter. */
  #hear(room: Room, channel: Channel): Promise<void> | undefined {
    const known = room.heard.get(channel)
    if (known) return known
    const hearing = this.#channels.hear(room.key, channel) ?? Promise.resolve()
    room.heard.set(channel, hearing)
    hearing.catch(() => {
      if (room.heard.get(channel) !== hearing) return
      room.heard.delete(channel)
      this.#channels.drop(room.key, channel)
    })
    return hearing
  }

  async #attempt(waiter: Waiter, queue: boolean): Promise<Granted | Refused> {
    waiter.seen ??= this.#clock.now()
    waiter.unanswered += 1
    if (queue) waiter.askedToQueue = true
    // An attempt that fails stays unanswered: it may run yet.
    let answer = await this.#primitive.attempt(waiter.claim, queue)
    // A grant whose reply was under way for longer than its lease proves nothing. The same id asks again: it gets the same
    // grant with a fresh proof, or another if that has lapsed. Once: a lease may be shorter than any way to Redis.
    if (answer.granted && answer.deadline <= this.#clock.now() && waiter.state === 'waiting') {
      answer = await this.#primitive.attempt(waiter.claim, queue)
    }
    waiter.unanswered -= 1
    if (answer.granted) {
      this.#ending.grant(waiter, { ...answer, via: arrival(answer.via, waiter.parked) })
    } else if (waiter.state === 'ended') {
      if (queue) this.#ending.leave(waiter)
    } else if (waiter.state === 'waiting' && (queue || !waiter.askedToQueue)) {
      waiter.refusal = answer
      this.#park(waiter)
    }
    return answer
  }

  /** A grant by a reply; one that was under way for longer than its lease is asked about before it is used. */
  #receive(waiter: Waiter, grant: Granted): void {
    const dead = waiter.state === 'waiting' && grant.deadline <= this.#clock.now()
    if (dead) this.#lookFirst(waiter)
    else this.#ending.grant(waiter, grant)
  }

  /**
   * The waiter was told of a grant that may have lapsed: looks at the truth before it is used. The look, not the message,
   * says with which token it holds, for it may have been granted anew since.
   */
  #lookFirst(waiter: Waiter): void {
    waiter.told = true
    const room = this.#waiters.room(waiter.claim.key)
    if (room) this.#heartbeat.beat(room)
  }

  /** From now on the caller knows that it waits. */
  #park(waiter: Waiter): void {
    if (waiter.parked || waiter.wish.mode === 'once') return
    waiter.parked = true
    this.#listener.waiting(waiter)
  }

  /** Who stands behind the head waits for the same reason. Who comes later learns it on arrival. */
  #shareRefusal(room: Room, refusal: Refused): void {
    const first = room.refusal === undefined
    room.refusal = refusal
    if (!first) return
    for (const waiter of room.line) {
      waiter.refusal ??= refusal
      this.#park(waiter)
    }
  }
}

/** A lock that was free when a parked waiter tried is a wake-up; one that had lapsed before anyone waited is not. */
function arrival(via: Via, waited: boolean): Via {
  if (via === 'immediate' && waited) return 'wakeup'
  if (via === 'expiry' && !waited) return 'immediate'
  return via
}

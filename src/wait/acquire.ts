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
 * The end of a wait is in one place, `#end`. A caller that gives up is answered at once (I6); behind it, `leave` takes
 * back whatever its request has become: a place in the queue, a grant that crossed it, or nothing yet. A request whose
 * outcome is unknown may run even after that `leave`; so a late grant for a waiter that has ended is given back again.
 *
 * One timer serves a room. It never moves to a later time than it has, so a busy room cannot starve its heartbeat.
 */
import { type Clock, surelyUntil, type Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError } from '../errors.ts'
import type { Channel, Granted, Primitive, Refused, Via } from '../primitive.ts'
import { Leaving } from './leaving.ts'
import { type Room, Waiter, Waiters, type Wish } from './waiters.ts'

/** The channels of a key, as far as waiting needs them. Each `hear` is matched by one `drop`. */
export interface Channels {
  /** Undefined: heard already. A promise: heard when it resolves. */
  hear(key: string, channel: Channel): Promise<void> | undefined
  drop(key: string, channel: Channel): void
}

export interface Patience {
  /** Expiry of a queued waiter, in ms; the longest time between two looks at the truth is a third of it. */
  readonly waiterTtl: number
  /** How long waiters ride out a Redis that is out of reach, in ms. */
  readonly outage: number
}

export interface WaitListener {
  /** The waiter was refused for the first time and goes on waiting. */
  waiting(waiter: Waiter): void
  /** Something failed that no promise reports. */
  failed(error: unknown): void
}

/** A lapsed lease is looked at this many ms after its end: the server counts whole ms. */
const AFTER_LAPSE = 2
/** The longest pause between heartbeats, in ms, however long `waiterTtl` is: the queue's keys live by them. */
const LONGEST_HEARTBEAT = 60_000
const NEVER = Number.POSITIVE_INFINITY

export class Acquirer {
  readonly #primitive: Primitive
  readonly #channels: Channels
  readonly #clock: Clock
  readonly #outage: number
  readonly #heartbeat: number
  readonly #listener: WaitListener
  readonly #waiters = new Waiters()
  readonly #leaving: Leaving
  /** Since when Redis is out of reach, why, and the timer that ends the patience of waiters. */
  #down: { since: number; error: Error; timer: Timer } | undefined

  constructor(primitive: Primitive, channels: Channels, clock: Clock, patience: Patience, listener: WaitListener) {
    this.#primitive = primitive
    this.#channels = channels
    this.#clock = clock
    this.#outage = patience.outage
    this.#heartbeat = Math.min(patience.waiterTtl / 3, LONGEST_HEARTBEAT)
    this.#listener = listener
    this.#leaving = new Leaving(primitive, clock, patience.waiterTtl, error => listener.failed(error))
  }

  /** Waiters parked or on their way. */
  get waiting(): number {
    return this.#waiters.size
  }

  /** Begins to wait; `outcome` of the result tells the rest. */
  start(wish: Wish): Waiter {
    const waiter = new Waiter(wish, this.#clock.now())
    this.#pursue(waiter).catch(error => this.#end(waiter, error))
    return waiter
  }

  /** The caller gives up: whatever became of the wish is taken back, even a grant that it has not seen yet. */
  quit(waiter: Waiter): void {
    if (waiter.state === 'granted') this.#leave(waiter)
    else this.#end(waiter, undefined)
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
    const { lease, key } = waiter.claim
    // A message that was long under way may tell of a grant that has lapsed, after which the waiter has joined again. Its
    // token is then no larger than the clock was at our last look; only of a newer grant does that look prove the time.
    const newer = token > (waiter.refusal?.clock ?? 0)
    const deadline = surelyUntil(waiter.seen ?? waiter.since, lease)
    if (newer && deadline - this.#clock.now() >= lease / 2) {
      this.#grant(waiter, { granted: true, token, deadline, via })
      return true
    }
    // Too little of the lease is proven, because we last looked too long ago, or nothing at all: ask before it is used.
    const look = () => this.#beat(this.#waiters.room(key))
    this.#primitive.renew([{ hold: { key, id }, ms: lease }]).then(([until]) => {
      if (until === undefined) look()
      else this.#grant(waiter, { granted: true, token, deadline: until, via })
    }, look)
    return true
  }

  /** A grant by the reply of this client's own release. False: no waiter has that id any more. */
  grantedByReply(id: string, grant: Granted): boolean {
    const waiter = this.#waiters.find(id)
    if (waiter) this.#grant(waiter, grant)
    return waiter !== undefined
  }

  /**
   * Redis is out of reach: `error` is the latest reason. Everybody looks at the truth as soon as there is a connection,
   * or gives up in time.
   */
  disconnected(error: Error): void {
    if (this.#down) {
      this.#down.error = error
      return
    }
    const timer = this.#clock.after(this.#outage, () => this.#loseHope())
    this.#down = { since: this.#clock.now(), error, timer }
    this.lookAgain()
  }

  reconnected(): void {
    this.#down?.timer.cancel()
    this.#down = undefined
    this.lookAgain()
  }

  /** Messages may have been missed: every room looks at the truth. */
  lookAgain(): void {
    for (const room of this.#waiters.rooms) this.#beat(room)
  }

  /** Rejects every waiter with LockClosedError; resolves when all have left, as far as Redis answers. */
  async close(): Promise<void> {
    this.#down?.timer.cancel()
    for (const room of this.#waiters.rooms) {
      for (const waiter of [...room.line, ...room.queued]) this.#end(waiter, new LockClosedError(room.key))
    }
    await this.#leaving.close()
  }

  async #pursue(waiter: Waiter): Promise<void> {
    const { mode, mayReenter } = waiter.wish
    if (mode === 'queue') return this.#queue(waiter)
    if (mode === 'once' || mayReenter) {
      await this.#attempt(waiter, false)
      if (waiter.state !== 'waiting') return
      if (mode === 'once') return this.#end(waiter, undefined)
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
    this.#schedule(room, answer.ttl)
  }

  #line(waiter: Waiter): void {
    const { fairAfter } = waiter.wish
    const room = this.#waiters.line(waiter)
    if (fairAfter !== undefined) {
      const timer = this.#clock.after(waiter.since + fairAfter - this.#clock.now(), () => {
        if (waiter.state === 'waiting') this.#queue(waiter).catch(error => this.#end(waiter, error))
      })
      const cancel = () => timer.cancel()
      waiter.outcome.then(cancel, cancel)
    }
    // Behind a head that is parked there is nothing to ask: its wake-ups are ours.
    if (room.head === waiter) this.#wake(room)
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
        this.#schedule(room, answer.granted ? head.claim.lease : answer.ttl)
        if (room.heard.has('unlock') || room.line.size === 0) continue
        await this.#hear(room, 'unlock')
      } catch (error) {
        this.#end(head, error as Error)
      }
      room.woken = true
    }
    room.contending = false
    this.#closeIfEmpty(room)
  }

  /** Resolves when the room hears the channel. One that cannot be heard is not counted as heard by the next waiter. */
  #hear(room: Room, channel: Channel): Promise<void> | undefined {
    const known = room.heard.get(channel)
    if (known) return known
    const hearing = this.#channels.hear(room.key, channel) ?? Promise.resolve()
    room.heard.set(channel, hearing)
    hearing.catch(() => {
      room.heard.delete(channel)
      this.#channels.drop(room.key, channel)
    })
    return hearing
  }

  async #attempt(waiter: Waiter, queue: boolean): Promise<Granted | Refused> {
    waiter.seen ??= this.#clock.now()
    waiter.leavesTrace = true
    const answer = await this.#primitive.attempt(waiter.claim, queue)
    if (answer.granted) {
      this.#grant(waiter, { ...answer, via: arrival(answer.via, waiter.refusal !== undefined) })
      return answer
    }
    waiter.leavesTrace = queue
    if (waiter.state === 'ended' && queue) this.#leave(waiter)
    if (waiter.state !== 'waiting') return answer
    const first = waiter.refusal === undefined
    waiter.refusal = answer
    if (first && waiter.wish.mode !== 'once') this.#listener.waiting(waiter)
    return answer
  }

  /** Looks at the truth for everybody in the room. */
  #beat(room: Room | undefined): void {
    if (!room) return
    room.timer?.cancel()
    room.due = NEVER
    if (room.queued.size > 0 && !room.tending) this.#tend(room)
    this.#schedule(room, NEVER)
    if (room.line.size === 0) return
    // Owners who may hold the lock elsewhere cannot count on the head's attempts: re-entry is open to them alone.
    for (const waiter of room.line) {
      if (waiter.wish.mayReenter && waiter !== room.head) this.#attempt(waiter, false).catch(() => {})
    }
    this.#wake(room)
  }

  async #tend(room: Room): Promise<void> {
    const waiters = [...room.queued].filter(waiter => waiter.ticket !== undefined)
    if (waiters.length === 0) return
    room.tending = true
    try {
      const queued = waiters.map(waiter => ({ claim: waiter.claim, ticket: waiter.ticket as string }))
      const { sent, ttl, holder, clock, waiters: places } = await this.#primitive.tend(room.key, queued)
      for (const [i, place] of places.entries()) {
        const waiter = waiters[i] as Waiter
        if (typeof place !== 'number') this.#grant(waiter, place)
        else if (waiter.state === 'ended') this.#leave(waiter)
        else if (waiter.state === 'waiting') {
          waiter.seen = sent
          waiter.refusal = { ...(waiter.refusal as Refused), sent, ttl, position: place, holder, clock }
        }
      }
      this.#schedule(room, ttl)
    } catch (error) {
      // A heartbeat that fails is repeated; a server that refuses them all is as good as out of reach.
      for (const waiter of waiters) {
        if (this.#clock.now() - (waiter.seen ?? waiter.since) >= this.#outage) this.#end(waiter, error as Error)
      }
    } finally {
      room.tending = false
      this.#closeIfEmpty(room)
    }
  }

  /** Plans the next look: when the holder's lease has lapsed, and at the latest after a heartbeat. */
  #schedule(room: Room, ttl: number): void {
    if (room.empty) return
    const due = this.#clock.now() + Math.min(ttl + AFTER_LAPSE, this.#heartbeat)
    if (due >= room.due) return
    room.due = due
    room.timer?.cancel()
    room.timer = this.#clock.after(due - this.#clock.now(), () => this.#beat(room))
  }

  /** Ends every waiter that has sat through `outage` ms without Redis. */
  #loseHope(): void {
    if (!this.#down) return
    const { since, error } = this.#down
    const now = this.#clock.now()
    let next = now + this.#outage
    for (const room of this.#waiters.rooms) {
      for (const waiter of [...room.line, ...room.queued]) {
        const end = Math.max(waiter.since, since) + this.#outage
        if (end > now) next = Math.min(next, end)
        else this.#end(waiter, new LockConnectionError('Redis is out of reach', error, room.key))
      }
    }
    this.#down.timer = this.#clock.after(next - now, () => this.#loseHope())
  }

  /** The grant reaches the waiter; or, if that has ended without one, goes back. Told twice, it is the same grant. */
  #grant(waiter: Waiter, grant: Granted): void {
    if (waiter.state === 'waiting') {
      const room = this.#waiters.room(waiter.claim.key)
      if (room?.releasedAt !== undefined) waiter.handoff = this.#clock.now() - room.releasedAt
      if (room) room.releasedAt = undefined
      this.#settle(waiter, 'granted')
      waiter.resolve(grant)
    } else if (waiter.state === 'ended') {
      this.#leave(waiter)
    }
  }

  /** The wait is over without a grant. */
  #end(waiter: Waiter, error: Error | undefined): void {
    if (waiter.state !== 'waiting') return
    this.#settle(waiter, 'ended')
    if (waiter.leavesTrace) this.#leave(waiter)
    if (error) waiter.reject(error)
    else waiter.resolve(undefined)
  }

  #settle(waiter: Waiter, state: 'granted' | 'ended'): void {
    waiter.state = state
    const room = this.#waiters.remove(waiter)
    if (room) this.#closeIfEmpty(room)
  }

  #closeIfEmpty(room: Room): void {
    if (!room.empty || room.contending || room.tending) return
    room.timer?.cancel()
    for (const channel of room.heard.keys()) this.#channels.drop(room.key, channel)
    room.heard.clear()
    this.#waiters.close(room)
  }

  #leave(waiter: Waiter): void {
    // Had it been granted, the lock is open now, and the wake-up for that may have been this waiter's.
    this.#leaving.start(waiter.claim, () => this.unlocked(waiter.claim.key))
  }
}

/** A lock that was free when a parked waiter tried is a wake-up; one that had lapsed before anyone waited is not. */
function arrival(via: Via, waited: boolean): Via {
  if (via === 'immediate' && waited) return 'wakeup'
  if (via === 'expiry' && !waited) return 'immediate'
  return via
}

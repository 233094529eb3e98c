/**
 * Waiting for a lock: the blocking loop, once for every kind of lock and both modes.
 *
 * A waiter parks. What un-parks it is a message (a grant to its inbox, or "unlocked"), a reply (a grant that a heartbeat
 * found, or that this client's own release made), or the end of its patience. Messages are hints: each may be lost, late,
 * early, doubled or forged, and then the slow timer, which re-reads the truth, costs time but never a lock (I4).
 *
 * Fair (queue):                                     Unfair (line): see line.ts
 *   1. hear the inbox
 *   2. put the waiter in the table
 *   3. ask, to be queued if refused
 *   4. refused: park
 *
 * The order is "announce, re-check, park" in both. A lost wake-up would need a release between the re-check and the
 * park: but that release finds the waiter announced (its entry in the queue; its subscription), so the message is on
 * its way, and the message finds the waiter in the table, because that was written before the request left: message
 * and reply come over two connections and in any order.
 *
 * Beside this loop: asking.ts (one attempt), line.ts (the unfair waiters), aging.ts (those of them that join the queue),
 * ending.ts (the end of every wait, and what is taken back behind it), heartbeat.ts (the slow timer), outage.ts (the end of
 * patience without Redis), single.ts (that of single attempts), waiters.ts (the table, without I/O).
 */
import { awake, type Clock, surelyUntil } from '../clock.ts'
import { LockClosedError, type LockConnectionError, outOfReach } from '../errors.ts'
import type { Channel, Granted, Kind, Refused, Via } from '../kind.ts'
import { Aging } from './aging.ts'
import { Asking, type Channels } from './asking.ts'
import { Ending, type Patience } from './ending.ts'
import { Heartbeat } from './heartbeat.ts'
import { Line } from './line.ts'
import { Outage } from './outage.ts'
import { SingleAttempts } from './single.ts'
import { Turns } from './turns.ts'
import { type Room, type Settle, Waiter, Waiters, type Wish } from './waiters.ts'

export interface WaitListener {
  /** The waiter goes on waiting: it was refused, or stands behind one that was. */
  waiting(waiter: Waiter): void
  /** Whether the client has a lease under this hold, and it has not ended. */
  holds(id: string): boolean
  /**
   * What Redis would say of a lock that this client holds itself and may hand on without asking, with the time for which
   * that is so in place of the ttl; undefined: it is not so.
   */
  ours(key: string): Refused | undefined
  /** Something said that the hold of this id may be gone; with a token: that it was granted anew with that. */
  doubt(id: string, token?: number): void
  /** Why nothing is answered, although there is a connection; undefined: nothing has said so. */
  trouble(): Error | undefined
  /** Something failed that no promise reports. */
  failed(error: unknown): void
}

/** An inbox that is heard after so many ms has not used up the patience of who waits for it. */
const AT_ONCE = 50

export class Acquirer {
  readonly #clock: Clock
  readonly #awake: Clock
  readonly #patience: number
  readonly #listener: WaitListener
  readonly #waiters = new Waiters()
  readonly #aging: Aging
  readonly #asking: Asking
  readonly #turns: Turns
  readonly #line: Line
  readonly #ending: Ending
  readonly #heartbeat: Heartbeat
  readonly #outage: Outage
  readonly #single: SingleAttempts
  #closed = false

  constructor(kind: Kind, channels: Channels, clock: Clock, patience: Patience, listener: WaitListener) {
    this.#clock = clock
    this.#awake = awake(clock)
    this.#patience = patience.outage
    this.#listener = listener
    this.#aging = new Aging(clock, waiter => {
      this.#queue(waiter).catch(error => this.#ending.end(waiter, error))
    })
    this.#ending = new Ending(this.#waiters, kind, clock, patience, {
      settled: waiter => this.#aging.delete(waiter),
      holds: id => listener.holds(id),
      doubt: (id, token) => listener.doubt(id, token),
      failed: error => listener.failed(error),
      taken: (key, via) => this.#turns.taken(key, via === 'immediate' || via === 'wakeup'),
      // The wake-up for a lock that was given back may have been the one that went to the waiter that gave it back.
      left: key => this.#wake(key),
      again: waiter => this.#again(waiter),
      drop: (key, channel) => channels.drop(key, channel),
    })
    this.#asking = new Asking(kind, channels, clock, this.#ending, waiter => {
      this.#aging.add(waiter)
      listener.waiting(waiter)
    })
    this.#heartbeat = new Heartbeat(kind, clock, this.#ending, patience, {
      granted: (waiter, grant) => this.#receive(waiter, grant),
      entered: (room, owner) => this.#reenter(room, owner),
      tryLine: room => this.#line.look(room),
    })
    this.#turns = new Turns(
      clock,
      key => channels.hears(key, 'unlock'),
      key => this.awaited(key),
    )
    const end = (waiter: Waiter, error: Error) => this.#ending.end(waiter, error)
    this.#outage = new Outage(this.#waiters, clock, patience.outage, end)
    this.#line = new Line(this.#asking, clock, this.#ending, this.#heartbeat, this.#outage, this.#turns, {
      ours: key => listener.ours(key),
      entered: (room, owner) => this.#reenter(room, owner),
    })
    this.#single = new SingleAttempts(clock, patience.outage, (waiter, limit) => end(waiter, this.#unreached(limit)))
  }

  /** Waiters parked or on their way. */
  get waiting(): number {
    return this.#waiters.size
  }

  /** Why Redis is out of reach, while it is. */
  get outage(): Error | undefined {
    return this.#outage.error ?? this.#listener.trouble()
  }

  /**
   * Of a wait that has ended without a grant: why that says nothing about the lock. Undefined: somebody else has it. That
   * was answered since the call; or before, to those ahead of it, and nothing has been in the way of news since.
   */
  unanswered({ refusal, since, latest }: Waiter): LockConnectionError | undefined {
    if (latest > 0 || (refusal && (refusal.sent >= since || !this.outage))) return undefined
    return this.#unreached(this.#clock.now() - since)
  }

  /** Begins to wait; `settle` is told the end, once and in the moment when it happens. */
  start(wish: Wish, settle: Settle): Waiter {
    const waiter = new Waiter(wish, this.#clock.now(), this.#awake.now(), settle)
    this.#waiters.add(waiter)
    this.#pursue(waiter)?.catch(error => this.#ending.end(waiter, error))
    return waiter
  }

  /** The caller gives up: whatever became of the wish is taken back. */
  quit(waiter: Waiter): void {
    this.#ending.end(waiter, undefined)
  }

  /** "The lock is free", said by another client, if it has named itself: the head of the line tries when it is its turn. */
  unlocked(key: string, by?: string): void {
    if (by !== undefined) this.#turns.freed(key, by)
    const room = this.#waiters.room(key)
    if (room) room.holder = 'released'
    this.#wake(key)
  }

  #wake(key: string): void {
    const room = this.#waiters.room(key)
    if (!room || room.line.size === 0) return
    room.alone = false
    this.#line.unlocked(room)
  }

  /** An owner with this name holds the lock: whoever of ours has the same one need not wait. */
  entered(key: string, owner: string): void {
    const room = this.#waiters.room(key)
    if (room) this.#reenter(room, owner)
  }

  /** This client releases the lock now: the next grant of it is a hand-off. */
  releasing(key: string): void {
    this.#turns.releasing(key)
    const room = this.#waiters.room(key)
    if (room) room.releasedAt = this.#clock.now()
  }

  /** This client has released the lock, and so many clients were told, this one included if it listens. */
  released(key: string, heard: number): void {
    const others = this.#turns.released(key, heard)
    const room = this.#waiters.room(key)
    if (!room) return
    room.holder = 'released'
    if (room.line.size > 0) this.#line.released(room, others)
  }

  /** The waiter that a lease of this length may be handed to without asking Redis: nobody is ahead of it, here. */
  heir(key: string, lease: number): Waiter | undefined {
    const room = this.#waiters.room(key)
    const head = room?.queued.size === 0 ? room.head : undefined
    return head && !head.wish.mayReenter && head.claim.lease === lease ? head : undefined
  }

  /** Whether anybody of this client waits for the key. */
  awaited(key: string): boolean {
    const room = this.#waiters.room(key)
    return room !== undefined && !room.empty
  }

  /** Hands the lock to a waiter of this client. */
  inherit(heir: Waiter, grant: Granted): void {
    this.#ending.inherit(heir, grant)
  }

  /** A grant by message. False: no waiter of this client has that id. */
  grantedByMessage(id: string, token: number, via: Via): boolean {
    const waiter = this.#waiters.find(id)
    if (!waiter) return false
    // Nobody grants what is not queued. The reply to its request may be under way, and that grant must not be given back.
    if (!waiter.askedToQueue) return true
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

  /** A grant has been taken away, of which the waiter may not have heard: its reply is under way. */
  lost(id: string, token: number): void {
    const waiter = this.#waiters.find(id)
    if (waiter) waiter.lost = token
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
    if (!this.#closed && this.#outage.begin(error, true)) this.lookAgain()
  }

  /** The first connection has not been made yet. That is no news, but uses up patience. */
  unconnected(): void {
    this.#outage.begin(new Error('there is no connection yet'), false)
  }

  reconnected(): void {
    this.#outage.over()
    this.lookAgain()
  }

  /** Messages may have been missed: every room looks at the truth, or that of one key. */
  lookAgain(key?: string): void {
    const room = key === undefined ? undefined : this.#waiters.room(key)
    if (room) this.#heartbeat.beat(room)
    else if (key === undefined) for (const room of this.#waiters.rooms) this.#heartbeat.beat(room)
  }

  /** Rejects every waiter with LockClosedError, and makes no more grants. What has to be taken back for that, is. */
  refuse(): void {
    this.#closed = true
    this.#outage.close()
    this.#single.close()
    this.#ending.refuse()
    this.#turns.close()
    // One for all: each caller gets its own from it, and there may be very many.
    const closed = new LockClosedError()
    for (const waiter of this.#waiters.all) this.#ending.end(waiter, closed)
  }

  /** Refuses, and resolves when all have left, as far as Redis answers. */
  async close(): Promise<void> {
    this.refuse()
    await this.#ending.close()
  }

  /** Undefined where there is nothing to wait for here. */
  #pursue(waiter: Waiter): Promise<void> | undefined {
    const { mode, mayReenter } = waiter.wish
    if (mode === 'queue') return this.#queue(waiter)
    if (mode === 'once') return this.#tryOnce(waiter)
    if (mayReenter) return this.#tryFirst(waiter)
    this.#stand(waiter)
    return undefined
  }

  /** Where there is no connection, none is waited for: but the first one is about to be there. */
  #tryOnce(waiter: Waiter): Promise<void> {
    const { known } = this.#outage
    if (known) return Promise.reject(outOfReach(known))
    this.#single.asked(waiter)
    return this.#tryFirst(waiter)
  }

  /** Not behind others: a single attempt, and one that may re-enter. */
  async #tryFirst(waiter: Waiter): Promise<void> {
    const { after } = waiter.wish
    if (after) await after
    if (waiter.state !== 'waiting') return
    // The lock is for others to take now. If one of them is its owner, by another client, it re-enters a few ms later.
    if (waiter.wish.mode !== 'once' && this.#turns.wait(waiter.claim.key) > 0) return this.#stand(waiter)
    const answer = await this.#asking.attempt(waiter)
    this.#single.answered(waiter)
    if (answer.granted || waiter.state !== 'waiting') return
    if (waiter.wish.mode === 'once') this.#ending.end(waiter, undefined)
    else this.#stand(waiter)
  }

  async #queue(waiter: Waiter): Promise<void> {
    const room = this.#waiters.queue(waiter)
    const begun = this.#awake.now()
    const limit = Math.min(this.#heartbeat.pause, this.#patience / 2)
    const { after, mayReenter } = waiter.wish
    // On the unlock channel it is told when its owner has been granted the lock by another call.
    const channels: Channel[] = mayReenter ? ['inbox', 'unlock'] : ['inbox']
    await Promise.all(channels.map(channel => this.#asking.heed(room, channel, limit)))
    if (after) await after
    if (waiter.state !== 'waiting') return
    const waited = this.#awake.now() - begun
    if (waited < AT_ONCE) return this.#askToQueue(waiter, room)
    // The request has a patience of its own; but its waiter has used up a part of that.
    const giveUp = () => this.#ending.end(waiter, this.#unreached(this.#patience))
    const timer = this.#awake.after(this.#patience - waited, giveUp)
    await this.#askToQueue(waiter, room).finally(() => timer.cancel())
  }

  #askToQueue(waiter: Waiter, room: Room): Promise<void> {
    return this.#asking.attempt(waiter, 'queue').then(answer => {
      if (answer.granted || waiter.state !== 'waiting') return
      waiter.ticket = answer.ticket
      waiter.seen = answer.sent
      // A message that could not be believed came before this reply, when there was no ticket to look with.
      if (waiter.told) this.#heartbeat.beat(room)
      else this.#heartbeat.schedule(room, answer.ttl)
    })
  }

  /** Its owner holds the lock, so each of its waiters asks again, by a request of its own: a release has one id for each hold. */
  #reenter(room: Room, owner: string): void {
    for (const waiter of [...room.line, ...room.queued]) {
      if (waiter.claim.owner !== owner || !waiter.wish.mayReenter || waiter.confirming) continue
      this.#asking.attempt(waiter, waiter.askedToQueue ? 'queue' : undefined).catch(() => {})
    }
  }

  /** Its grant did not count. One that has a ticket joins again by the next look; in the line, its head is woken. */
  #again(waiter: Waiter): void {
    const room = this.#waiters.room(waiter.claim.key)
    if (!room || !(waiter.askedToQueue || room.line.has(waiter))) this.#stand(waiter)
    else if (!waiter.askedToQueue) this.#line.wake(room)
    else if (waiter.ticket !== undefined) this.#heartbeat.beat(room)
    else this.#askToQueue(waiter, room).catch(error => this.#ending.end(waiter, error))
  }

  #unreached(limit: number): LockConnectionError {
    return outOfReach(
      this.outage ?? new Error('it was left unanswered'),
      `Redis did not answer for ${Math.round(limit)} ms`,
    )
  }

  #stand(waiter: Waiter): void {
    this.#line.join(this.#waiters.line(waiter), waiter)
  }

  /**
   * A grant by a reply; one that was under way for longer than its lease is asked about before it is used. Once: a lease
   * may be shorter than any way to Redis.
   */
  #receive(waiter: Waiter, grant: Granted): void {
    const dead = waiter.state === 'waiting' && grant.deadline <= this.#clock.now()
    if (!dead || waiter.late) return this.#ending.grant(waiter, grant)
    waiter.late = true
    this.#lookFirst(waiter)
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
}

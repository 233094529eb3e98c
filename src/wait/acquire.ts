/**
 * Waiting for a lock, for every kind of lock, fair or unfair. This file does the I/O and the timing for the locks of
 * this client (local/local-lock.ts). local/states.ts has the states of a waiter, and the effect of each event.
 *
 * A waiter parks until something wakes it: a message (a grant in its inbox, or "unlocked"), a reply (a grant that a
 * heartbeat found, or that this client's own release made), or the end of its patience. Messages are only hints: each
 * may be lost, late, early, duplicated or forged. So a slow timer also reads the lock's state from Redis. A bad message
 * costs time, but never a lock (I4).
 *
 * A fair waiter
 *   1. enters this client's table of waiters
 *   2. listens to its inbox
 *   3. sends a request: to get the lock, or to join the queue if the lock is not free
 *   4. is refused and queued, and parks
 *
 * The steps of an unfair waiter are in local/line.ts. Both kinds of waiter first announce themselves (by an entry in
 * the queue, or by a subscription), then check the lock again, then park. A wake-up could be lost only if a release
 * came between the check and the park. But that release finds the announcement, and sends the waiter a message. The
 * message may arrive before the reply to the waiter's request, because the two come over different connections. Even
 * then, the message finds the waiter in the table, which the waiter entered before it sent the request.
 *
 * The rest of the folder: requests.ts (requests, and late answers), ears.ts (channels), heartbeat.ts (the slow timer),
 * turns.ts (turns among clients), fair-after.ts (unfair waiters that join the queue), cleanup.ts (cleanup in the
 * background), outage.ts (the end of patience while Redis is out of reach), single.ts (the time limit of single
 * attempts), patience.ts (the caller's timeout and signal).
 */
import { awake, type Clock, type Timer } from '../clock.ts'
import { LockClosedError, type LockConnectionError, outOfReach } from '../errors.ts'
import type { Channels, Kind, Via } from '../kind.ts'
import type { WaitEffects } from '../local/effects.ts'
import type { Line } from '../local/line.ts'
import type { LocalLock } from '../local/local-lock.ts'
import type { LocalLocks } from '../local/local-locks.ts'
import { type Settle, type Waiter, WaiterRecord, type Wish } from '../local/waiter.ts'
import { Cleanup } from './cleanup.ts'
import { Ears } from './ears.ts'
import { FairAfter } from './fair-after.ts'
import { Heartbeat } from './heartbeat.ts'
import { Outage } from './outage.ts'
import { Requests } from './requests.ts'
import { SingleAttempts } from './single.ts'

export interface Patience {
  /** The expiry of a queued waiter, in ms. */
  readonly waiterTtl: number
  /** For how many ms waiters tolerate an outage of Redis. */
  readonly outage: number
}

export interface WaitListener {
  /**
   * Called when the waiter has to wait: Redis has refused it. Of this client's unfair waiters for a key, only the first
   * asks Redis, so a refusal of the first one is a refusal of all.
   */
  waiting(waiter: Waiter): void
  /**
   * Called when the hold of this id may be gone, for example because its waiter has received a newer grant. `token` is
   * the token of that grant. If the hold's own token is smaller, Redis has to be asked whether the hold still exists.
   */
  doubt(id: string, token: number): void
  /** Returns why Redis does not answer although it is connected, or undefined if no reason is known. */
  trouble(): Error | undefined
  /** Reports a failure that no caller's promise reports. */
  failed(error: unknown): void
}

/** If a fair waiter's subscriptions take less than this many ms, that time does not count against its patience. */
const AT_ONCE = 50

export class Acquirer {
  readonly #clock: Clock
  readonly #awake: Clock
  readonly #patience: number
  readonly #listener: WaitListener
  readonly #locks: LocalLocks
  readonly #ears: Ears
  readonly #heartbeat: Heartbeat
  /**
   * The timers of lines that leave the lock to other clients. A line is this client's unfair waiters for one key. When
   * such a timer fires, the first waiter of the line tries.
   */
  readonly #turnTimers = new Map<Line, Timer>()
  readonly #fairAfter: FairAfter
  readonly #cleanup: Cleanup
  readonly #outage: Outage
  readonly #single: SingleAttempts
  readonly #requests: Requests

  constructor(
    kind: Kind,
    channels: Channels,
    clock: Clock,
    patience: Patience,
    locks: LocalLocks,
    listener: WaitListener,
  ) {
    this.#clock = clock
    this.#awake = awake(clock)
    this.#patience = patience.outage
    this.#listener = listener
    this.#ears = new Ears(channels, clock)
    this.#heartbeat = new Heartbeat(clock, patience.waiterTtl)
    this.#locks = locks
    this.#fairAfter = new FairAfter(clock, waiter => this.#queue(waiter))
    this.#cleanup = new Cleanup(kind, clock, patience.waiterTtl, error => listener.failed(error))
    this.#outage = new Outage(locks, clock, patience.outage)
    this.#single = new SingleAttempts(clock, patience.outage, (waiter, limit) =>
      this.#end(waiter, waiter.wish.mode === 'once' ? this.#unreached(limit) : undefined),
    )
    // Called when a waiter has been removed from Redis, or its grant has been released there. This client may have
    // received only one message that the lock is free, and that waiter may have been the one that reacted to it. So the
    // first unfair waiter tries.
    const freed = (key: string) => locks.get(key)?.line.wake()
    this.#requests = new Requests(kind, clock, patience.outage, this.#outage, this.#single, this.#cleanup, freed)
    locks.requests = this.#requests
    locks.heartbeat = this.#heartbeat
    locks.waitEffects = this.#carryOut()
  }

  /** Why Redis is out of reach; undefined if Redis is reachable. */
  get outage(): Error | undefined {
    return this.#outage.error ?? this.#listener.trouble()
  }

  /** For how many ms there has been no connection to Redis; 0 if there is one. */
  get awayFor(): number {
    return this.#outage.length
  }

  /**
   * Called after a wait that ended without a lease. Returns the error to report if Redis did not answer, otherwise
   * undefined. A grant to this waiter counts as an answer, even if replicas did not confirm it. A refusal counts if the
   * refused request was sent during this wait. A refusal of an earlier request counts only if there is no outage now.
   */
  unanswered({ refusal, since, latest }: Waiter): LockConnectionError | undefined {
    if (latest > 0 || (refusal && (refusal.sent >= since || !this.outage))) return undefined
    return this.#unreached(this.#clock.now() - since)
  }

  /** Begins a wait. `settle` is called once, when the wait ends. */
  start(wish: Wish, settle: Settle): Waiter {
    const waiter = new WaiterRecord(wish, this.#clock.now(), this.#awake.now(), settle)
    const lock = this.#locks.arrive(waiter)
    if (wish.mode === 'queue') this.#queue(waiter)
    else if (wish.mode === 'once') this.#tryOnce(lock, waiter)
    else if (wish.mayReenter) this.#tryAlone(lock, waiter)
    else lock.stand(waiter)
    return waiter
  }

  /**
   * Ends the wait of a caller that gives up. In the background, the waiter is removed from the queue in Redis, or its
   * grant is released.
   */
  quit(waiter: Waiter): void {
    this.#end(waiter, undefined)
  }

  /**
   * Ends the wait of a caller whose `timeout` is over. If its first attempt is unanswered, the wait ends with the
   * answer: otherwise a call with a short `timeout` would never get a free lock while the first connection is being
   * made, although a single attempt would. single.ts limits the time for the answer.
   */
  outOfTime(waiter: Waiter): void {
    if (waiter.parked || waiter.latest > 0 || this.#outage.known) this.quit(waiter)
    else this.#single.asked(waiter)
  }

  /**
   * Called when another client announces that the lock is free. `by` is that client's id, if the message contains it.
   * The first unfair waiter tries when it is this client's turn.
   */
  unlocked(key: string, by?: string): void {
    if (by !== undefined) this.#locks.turns.freed(key, by)
    this.#locks.get(key)?.unlocked()
  }

  /** Called when the owner with this name holds the lock, so that the owner's other waiters can re-enter. */
  entered(key: string, owner: string): void {
    this.#locks.get(key)?.entered(owner)
  }

  /**
   * Called when a message grants the lock to the waiter with this id. Returns false if this client has no such waiter.
   */
  grantedByMessage(id: string, token: number, via: Via): boolean {
    const waiter = this.#locks.waiter(id)
    if (!waiter) return false
    this.#locks.of(waiter.claim.key).granted(waiter, token, via)
    return true
  }

  /**
   * Called when the grant with this token was taken away before the reply with the grant arrived. The waiter must not
   * use the grant in that reply.
   */
  lost(id: string, token: number): void {
    const waiter = this.#locks.waiter(id)
    if (waiter) this.#locks.of(waiter.claim.key).lost(waiter, token)
  }

  /**
   * Called when Redis is out of reach; `error` is the latest reason. A waiter gives up if its patience ends before
   * there is a connection again. As soon as there is a connection, the state of every lock is read again. `brief`: there
   * will probably be one at once, so single attempts wait for it.
   */
  disconnected(error: Error, brief = false): void {
    if (!this.#locks.closed && this.#outage.begin(error, !brief)) this.lookAgain()
  }

  /**
   * Called while the first connection is being made. From now on, waiters wait for it as long as they tolerate an
   * outage. Single attempts do not fail at once, because no connection has failed yet.
   */
  unconnected(): void {
    this.#outage.begin(new Error('the client has not made its first connection yet; check the address of Redis'), false)
  }

  reconnected(): void {
    this.#outage.over()
    this.lookAgain()
  }

  /**
   * Reads the state of the lock of `key` again, or of every lock, because messages may have been missed. With `ms`,
   * reads it when a lease has ended, in `ms`, or earlier.
   */
  lookAgain(key?: string, ms?: number): void {
    const locks = key === undefined ? [...this.#locks.all] : [this.#locks.get(key)]
    for (const lock of locks) {
      if (!lock || lock.waiting === 0) continue
      if (ms === undefined) this.#heartbeat.look(lock)
      else if (ms >= 0) this.#heartbeat.lookWithin(lock, ms)
    }
  }

  /** Rejects these waiters with LockClosedError, and removes them from Redis. */
  refuse(which: (waiter: Waiter) => boolean): void {
    // There may be very many waiters, so they all get the same error here. Each caller then gets a copy of it.
    let closed: LockClosedError | undefined
    for (const waiter of this.#locks.waiters) {
      if (!which(waiter)) continue
      closed ??= new LockClosedError()
      this.#end(waiter, closed)
    }
  }

  /**
   * Refuses every waiter, and accepts no more grants. Resolves when no waiter is left in Redis, or when the last
   * attempts to remove waiters have failed.
   */
  async close(): Promise<void> {
    this.#locks.closed = true
    this.#outage.close()
    this.#single.close()
    this.#locks.turns.close()
    this.refuse(() => true)
    await this.#cleanup.close()
  }

  #end(waiter: Waiter, error: Error | undefined): void {
    // If the waiter no longer waits, this client may have deleted its record of the lock, and `locks.of` would create a
    // new one.
    if (waiter.waits) this.#locks.of(waiter.claim.key).end(waiter, error)
  }

  /**
   * Makes a single attempt. If the connection has been lost, the attempt fails at once. If the client's first
   * connection is still being made, the attempt waits for it, because it should be up soon.
   */
  #tryOnce(lock: LocalLock, waiter: Waiter): void {
    const { known } = this.#outage
    if (known) return lock.end(waiter, outOfReach(known))
    this.#single.asked(waiter)
    this.#tryAlone(lock, waiter)
  }

  /** Asks Redis for this waiter alone: for a single attempt, or because the waiter may re-enter. */
  #tryAlone(lock: LocalLock, waiter: Waiter): void {
    const { after } = waiter.wish
    if (!after) return lock.tryAlone(waiter)
    after.then(
      () => waiter.waits && lock.tryAlone(waiter),
      error => this.#end(waiter, error),
    )
  }

  #queue(waiter: Waiter): void {
    const lock = this.#locks.of(waiter.claim.key)
    lock.announce(waiter)
    const { after, mayReenter } = waiter.wish
    const limit = Math.min(this.#heartbeat.pause, this.#patience / 2)
    const inbox = this.#ears.heed(lock.key, 'inbox', limit)
    // The unlock channel also announces that another call of the same owner was granted the lock. Then this waiter
    // re-enters.
    const unlock = mayReenter ? this.#ears.heed(lock.key, 'unlock', limit) : undefined
    if (!inbox && !unlock && !after) lock.join(waiter)
    else this.#joinLater(lock, waiter, [inbox, unlock]).catch(error => this.#end(waiter, error))
  }

  /** Joins the queue after the subscriptions are active and `wish.after` has resolved. */
  async #joinLater(lock: LocalLock, waiter: Waiter, hearings: readonly (Promise<void> | undefined)[]): Promise<void> {
    const begun = this.#awake.now()
    await Promise.all(hearings)
    await waiter.wish.after
    if (!waiter.waits) return
    const waited = this.#awake.now() - begun
    if (waited >= AT_ONCE) {
      // The request has a time limit of its own, which begins now. But the waiter has already used up a part of its
      // patience, so an earlier limit is set as well.
      const giveUp = () => this.#end(waiter, this.#unreached(this.#patience))
      this.#requests.limitJoining(waiter, this.#patience - waited, giveUp)
    }
    lock.join(waiter)
  }

  #carryOut(): WaitEffects {
    return {
      check: (waiter, token) => {
        const { id } = waiter.claim
        if (!this.#locks.hold(id)) this.#requests.leave(waiter)
        else if (token !== undefined) this.#listener.doubt(id, token)
      },
      hearsUnlock: line => this.#ears.hears(line.key, 'unlock'),
      hearUnlock: (line, head) => this.#hearUnlock(line, head),
      leaveTurn: (line, ms) => this.#leaveTurn(line, ms),
      endTurn: line => this.#endTurn(line),
      parked: waiter => {
        if (this.#single.has(waiter)) return this.quit(waiter)
        this.#fairAfter.add(waiter)
        this.#listener.waiting(waiter)
      },
      settled: waiter => {
        this.#locks.settled(waiter)
        if (waiter.parked) this.#fairAfter.delete(waiter)
        this.#single.answered(waiter)
      },
      empty: lock => {
        this.#heartbeat.stop(lock)
        this.#endTurn(lock.line)
        this.#ears.drop(lock.key)
        this.#outage.answered(lock)
      },
    }
  }

  #hearUnlock(line: Line, head: Waiter): void {
    const begun = this.#awake.now()
    const hearing = this.#ears.heed(line.key, 'unlock', this.#heartbeat.pause)
    if (!hearing) return line.heard()
    hearing.then(
      () => line.heard(),
      error => {
        this.#end(head, error)
        this.#requests.headFailed(this.#locks.of(line.key), begun, error)
      },
    )
  }

  #leaveTurn(line: Line, ms: number): void {
    this.#ears.hear(line.key, 'unlock')?.catch(() => {})
    this.#endTurn(line)
    const timer = this.#clock.after(ms, () => {
      this.#locks.turns.waited(line.key)
      line.tryNow()
    })
    this.#turnTimers.set(line, timer)
  }

  #endTurn(line: Line): void {
    if (this.#turnTimers.size === 0) return
    this.#turnTimers.get(line)?.cancel()
    this.#turnTimers.delete(line)
  }

  #unreached(limit: number): LockConnectionError {
    return outOfReach(
      this.outage ?? new Error('the request got no reply'),
      `Redis did not answer for ${Math.round(limit)} ms`,
    )
  }
}

/**
 * Waiting for a lock, for every kind of lock, fair or unfair. This file does the I/O and the timing for the locks of
 * this client (local/local-lock.ts). local/states.ts has the states of a waiter, and the effect of each event.
 *
 * A waiter parks until something wakes it: a message (a grant in its inbox, or "unlocked"), a reply (a grant that a
 * heartbeat found, or that this client's own release made), or the end of its patience. Messages are only hints: each
 * may be lost, late, early, duplicated or forged. The slow timer then reads the lock's state from Redis again, so a bad
 * message costs time but never a lock (I4).
 *
 * A fair waiter
 *   1. enters this client's table of waiters
 *   2. listens to its inbox
 *   3. asks for the lock, to be queued if refused
 *   4. is refused, and parks
 *
 * The steps of an unfair waiter are in local/line.ts. Both kinds of waiter first announce themselves, then check the
 * lock again, then park. A wake-up could be lost only if a release came between the check and the park. But that
 * release finds the waiter announced (by its entry in the queue, or by its subscription) and sends it a message. The
 * message finds the waiter in the table, which the waiter entered before it sent its request. So message and reply may
 * come over two connections, in any order.
 *
 * The rest of the folder: requests.ts (requests, and late answers), ears.ts (channels), heartbeat.ts (the slow timer),
 * turns.ts (turns among clients), fair-after.ts (unfair waiters that join the queue), cleanup.ts (cleanup in the
 * background), outage.ts (the end of patience while Redis is out of reach), single.ts (the same for single attempts),
 * patience.ts (the caller's timeout and signal).
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

/** What waiters report to their client, and what they ask of it. */
export interface WaitListener {
  /** Called when the waiter has to wait, because the waiter or the head of its line was refused. */
  waiting(waiter: Waiter): void
  /**
   * Called when the hold of this id may be gone. If the hold's token is smaller than `token`, Redis has to be asked.
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
  /** For each line that leaves the lock to other clients: the timer after which its head tries. */
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
      this.#end(waiter, this.#unreached(limit)),
    )
    // The waiter whose grant was taken back may have used this client's only wake-up. So the head of the line tries.
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

  /**
   * Returns the error to report if a wait ended without a grant because Redis did not answer. Returns undefined if
   * Redis did answer: it has granted this waiter the lock (without a confirmation by replicas), or has refused a
   * request that was sent during this wait. A refusal of an earlier request also counts as an answer if there is no
   * outage now.
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

  /** Ends the wait of a caller that gives up. Its queue entry or grant is taken back in the background. */
  quit(waiter: Waiter): void {
    this.#end(waiter, undefined)
  }

  /**
   * Called when another client announces that the lock is free. `by` is that client's id, if the message contains it.
   * The head of the line tries when it is this client's turn.
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
   * there is a connection again. As soon as there is a connection, the state of every lock is read again.
   */
  disconnected(error: Error): void {
    if (!this.#locks.closed && this.#outage.begin(error, true)) this.lookAgain()
  }

  /**
   * Called while the first connection is being made. The waiters' patience counts from now, but no connection has
   * failed.
   */
  unconnected(): void {
    this.#outage.begin(new Error('the client has not made its first connection yet; check the address of Redis'), false)
  }

  reconnected(): void {
    this.#outage.over()
    this.lookAgain()
  }

  /** Reads the state of the lock of `key` again, or of every lock, because messages may have been missed. */
  lookAgain(key?: string): void {
    const locks = key === undefined ? [...this.#locks.all] : [this.#locks.get(key)]
    for (const lock of locks) if (lock && lock.waiting > 0) this.#heartbeat.look(lock)
  }

  /** Rejects every waiter with LockClosedError, accepts no more grants, and removes all waiters from Redis. */
  refuse(): void {
    this.#locks.closed = true
    this.#outage.close()
    this.#single.close()
    this.#locks.turns.close()
    // One error serves all waiters, because there may be very many. Each caller gets an error of its own, made from
    // this one.
    const closed = new LockClosedError()
    for (const waiter of this.#locks.waiters) this.#end(waiter, closed)
  }

  /** Calls `refuse`. Resolves when no waiter is left in Redis, or when Redis does not answer. */
  async close(): Promise<void> {
    this.refuse()
    await this.#cleanup.close()
  }

  #end(waiter: Waiter, error: Error | undefined): void {
    // If the waiter no longer waits, its lock may be gone from this client, and `of` would create the lock again.
    if (waiter.waits) this.#locks.of(waiter.claim.key).end(waiter, error)
  }

  /**
   * Makes a single attempt. If the connection has been lost, the attempt fails at once. An attempt waits only for the
   * client's first connection, because that comes soon.
   */
  #tryOnce(lock: LocalLock, waiter: Waiter): void {
    const { known } = this.#outage
    if (known) return lock.end(waiter, outOfReach(known))
    this.#single.asked(waiter)
    this.#tryAlone(lock, waiter)
  }

  /** Sends an attempt outside the line, for a single attempt or a waiter that may re-enter. */
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
      // The request has a time limit of its own. But the waiter has used up some of its patience before the request, so
      // this earlier limit is set, too.
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
        this.#fairAfter.add(waiter)
        this.#listener.waiting(waiter)
      },
      settled: waiter => {
        this.#locks.settled(waiter)
        if (waiter.parked) this.#fairAfter.delete(waiter)
        if (waiter.wish.mode === 'once') this.#single.answered(waiter)
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

/**
 * Waiting for a lock, for every kind of lock, fair or unfair. This file carries out what the locks of this client
 * (local/local-lock.ts) ask for. local/states.ts lists the states of a waiter and what each event means in them.
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
 * An unfair waiter's steps are in local/line.ts. Both kinds first announce themselves, then check the lock again, then
 * park. A wake-up could be lost only if a release came between the check and the park. But that release finds the
 * waiter announced (by its entry in the queue, or by its subscription) and sends it a message. That message finds the
 * waiter in the table, which it entered before its request was sent. So it does not matter that message and reply come
 * over two connections and in any order.
 *
 * The rest of the folder: requests.ts (what is sent, and late answers), ears.ts (channels), heartbeat.ts (the slow
 * timer), turns.ts (turns among clients), fair-after.ts (unfair waiters that join the queue), cleanup.ts (what is taken
 * back in the background), outage.ts (the end of patience while Redis is out of reach), single.ts (the same for single
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
  /** Expiry of a queued waiter, in ms. */
  readonly waiterTtl: number
  /** How long waiters ride out an outage of Redis, in ms. */
  readonly outage: number
}

/** What waiting asks of the rest of its client, and what it reports to it. */
export interface WaitListener {
  /** The waiter keeps waiting: it was refused, or it is in line behind a waiter that was refused. */
  waiting(waiter: Waiter): void
  /** The hold of this id may be gone. If its token is smaller than `token`, Redis is to be asked. */
  doubt(id: string, token: number): void
  /** Why Redis does not answer although a connection is up; undefined: no reason is known. */
  trouble(): Error | undefined
  /** A failure that no caller's promise reports. */
  failed(error: unknown): void
}

/** If the subscription to the inbox takes less than this many ms, the waiter's patience counts as unused. */
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
    // The waiter that gave the lock back may have used up this client's wake-up, so the line's head has to try.
    const freed = (key: string) => locks.get(key)?.line.wake()
    this.#requests = new Requests(kind, clock, patience.outage, this.#outage, this.#single, this.#cleanup, freed)
    locks.requests = this.#requests
    locks.heartbeat = this.#heartbeat
    locks.waitEffects = this.#carryOut()
  }

  /** Why Redis is out of reach; undefined while it is reachable. */
  get outage(): Error | undefined {
    return this.#outage.error ?? this.#listener.trouble()
  }

  /**
   * For a wait that ended without a grant: the error to report if Redis has not answered. Undefined if it has, because
   * then somebody else has the lock. It has answered if this waiter's own call was answered, or if a waiter ahead of it
   * was refused earlier and there is no outage now.
   */
  unanswered({ refusal, since, latest }: Waiter): LockConnectionError | undefined {
    if (latest > 0 || (refusal && (refusal.sent >= since || !this.outage))) return undefined
    return this.#unreached(this.#clock.now() - since)
  }

  /** Begins to wait. `settle` is called once, at the moment when the wait ends. */
  start(wish: Wish, settle: Settle): Waiter {
    const waiter = new WaiterRecord(wish, this.#clock.now(), this.#awake.now(), settle)
    const lock = this.#locks.arrive(waiter)
    if (wish.mode === 'queue') this.#queue(waiter)
    else if (wish.mode === 'once') this.#tryOnce(lock, waiter)
    else if (wish.mayReenter) this.#tryAlone(lock, waiter)
    else lock.stand(waiter)
    return waiter
  }

  /** The caller gives up: whatever its request has become in Redis is taken back. */
  quit(waiter: Waiter): void {
    this.#end(waiter, undefined)
  }

  /**
   * Another client says that the lock is free; `by` is that client, if it gave its name. The head of the line tries
   * when it is this client's turn.
   */
  unlocked(key: string, by?: string): void {
    if (by !== undefined) this.#locks.turns.freed(key, by)
    this.#locks.get(key)?.unlocked()
  }

  /** The owner of this name holds the lock, so its other waiters can re-enter instead of waiting. */
  entered(key: string, owner: string): void {
    this.#locks.get(key)?.entered(owner)
  }

  /** A message grants the lock to the waiter of this id. False: this client has no such waiter. */
  grantedByMessage(id: string, token: number, via: Via): boolean {
    const waiter = this.#locks.waiter(id)
    if (!waiter) return false
    this.#locks.of(waiter.claim.key).granted(waiter, token, via)
    return true
  }

  /** The grant with this token was taken away before its reply arrived, so the waiter must not believe that reply. */
  lost(id: string, token: number): void {
    const waiter = this.#locks.waiter(id)
    if (waiter) this.#locks.of(waiter.claim.key).lost(waiter, token)
  }

  /**
   * Redis is out of reach; `error` is the latest reason. Every lock is checked as soon as there is a connection again.
   * Waiters whose patience ends before that give up.
   */
  disconnected(error: Error): void {
    if (!this.#locks.closed && this.#outage.begin(error, true)) this.lookAgain()
  }

  /** The first connection has not been made yet. That uses up patience, but it is not a failure. */
  unconnected(): void {
    this.#outage.begin(new Error('not connected yet'), false)
  }

  reconnected(): void {
    this.#outage.over()
    this.lookAgain()
  }

  /** Messages may have been missed: reads the state of every lock again, or of the lock of `key` only. */
  lookAgain(key?: string): void {
    const locks = key === undefined ? [...this.#locks.all] : [this.#locks.get(key)]
    for (const lock of locks) if (lock && lock.waiting > 0) this.#heartbeat.look(lock)
  }

  /** Rejects every waiter with LockClosedError, makes no more grants, and takes back what the waiters left in Redis. */
  refuse(): void {
    this.#locks.closed = true
    this.#outage.close()
    this.#single.close()
    this.#locks.turns.close()
    // One error for all waiters, because there may be very many. Each caller receives its own error, made from this
    // one.
    const closed = new LockClosedError()
    for (const waiter of this.#locks.waiters) this.#end(waiter, closed)
  }

  /** Like `refuse`. Resolves when everything is taken back, or when Redis has failed to answer. */
  async close(): Promise<void> {
    this.refuse()
    await this.#cleanup.close()
  }

  #end(waiter: Waiter, error: Error | undefined): void {
    // If the waiter's wait is over, its lock may be forgotten already, and `of` would create it again.
    if (waiter.waits) this.#locks.of(waiter.claim.key).end(waiter, error)
  }

  /**
   * A single attempt does not wait for a lost connection to return, but it waits for the first one, which is about to
   * be made.
   */
  #tryOnce(lock: LocalLock, waiter: Waiter): void {
    const { known } = this.#outage
    if (known) return lock.end(waiter, outOfReach(known))
    this.#single.asked(waiter)
    this.#tryAlone(lock, waiter)
  }

  /** Asks without standing in line. For single attempts, and for waiters that may re-enter. */
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
    // A message on the unlock channel says when another call of the same owner was granted the lock: then this waiter
    // re-enters.
    const unlock = mayReenter ? this.#ears.heed(lock.key, 'unlock', limit) : undefined
    if (!inbox && !unlock && !after) lock.join(waiter)
    else this.#joinLater(lock, waiter, [inbox, unlock]).catch(error => this.#end(waiter, error))
  }

  /** Joins once the subscriptions are active and `wish.after` has resolved. */
  async #joinLater(lock: LocalLock, waiter: Waiter, hearings: readonly (Promise<void> | undefined)[]): Promise<void> {
    const begun = this.#awake.now()
    await Promise.all(hearings)
    await waiter.wish.after
    if (!waiter.waits) return
    const waited = this.#awake.now() - begun
    if (waited >= AT_ONCE) {
      // The request has its own time limit, but its waiter has already used up part of its patience.
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

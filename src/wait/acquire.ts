/**
 * Waiting for a lock: carries out what the locks of this client ask for (local/local-lock.ts), for every kind of lock and both
 * modes. What can happen to a waiter is in local/states.ts.
 *
 * A waiter parks. What un-parks it is a message (a grant to its inbox, or "unlocked"), a reply (a grant that a heartbeat
 * found, or that this client's own release made), or the end of its patience. Messages are hints: each may be lost, late,
 * early, doubled or forged, and then the slow timer, which re-reads the truth, costs time but never a lock (I4).
 *
 * A fair waiter
 *   1. hears the inbox
 *   2. is known to this client
 *   3. asks, to be queued if refused
 *   4. is refused, and parks
 *
 * For an unfair one see local/line.ts. The order is "announce, re-check, park" in both. A lost wake-up would need a release
 * between the re-check and the park: but that release finds the waiter announced (its entry in the queue; its subscription),
 * so the message is on its way, and the message finds the waiter in the table, because that was written before the request
 * left: message and reply come over two connections and in any order.
 *
 * Beside this: requests.ts (what is sent, and late answers), ears.ts (channels), heartbeat.ts (the slow timer), turns.ts (among
 * clients), fair-after.ts (unfair waiters that join the queue), cleanup.ts (what is taken back in the background), outage.ts (the end of
 * patience without Redis), single.ts (that of single attempts), patience.ts (that of the caller).
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
  /** How long waiters ride out a Redis that is out of reach, in ms. */
  readonly outage: number
}

/** What waiting needs to know of the leases of its client, and what it says of its waiters. */
export interface WaitListener {
  /** The waiter goes on waiting: it was refused, or stands behind one that was. */
  waiting(waiter: Waiter): void
  /** Something said that the hold of this id may be gone, because it was granted anew with this token, or with any. */
  doubt(id: string, token: number): void
  /** Why nothing is answered, although there is a connection; undefined: nothing has said so. */
  trouble(): Error | undefined
  /** Something failed that no promise reports. */
  failed(error: unknown): void
}

/** An inbox that is heard after so many ms has not used up the patience of the waiter. */
const AT_ONCE = 50

export class Acquirer {
  readonly #clock: Clock
  readonly #awake: Clock
  readonly #patience: number
  readonly #listener: WaitListener
  readonly #locks: LocalLocks
  readonly #ears: Ears
  readonly #heartbeat: Heartbeat
  /** When the heads go on that leave the lock to other clients. */
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
    // The wake-up for a lock that was given back may have been the one that went to the waiter that gave it back.
    const freed = (key: string) => locks.get(key)?.line.wake()
    this.#requests = new Requests(kind, clock, patience.outage, this.#outage, this.#single, this.#cleanup, freed)
    locks.requests = this.#requests
    locks.heartbeat = this.#heartbeat
    locks.waitEffects = this.#carryOut()
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

  /** Begins to wait; `settle` receives the end, once and in the moment when it happens. */
  start(wish: Wish, settle: Settle): Waiter {
    const waiter = new WaiterRecord(wish, this.#clock.now(), this.#awake.now(), settle)
    const lock = this.#locks.arrive(waiter)
    if (wish.mode === 'queue') this.#queue(waiter)
    else if (wish.mode === 'once') this.#tryOnce(lock, waiter)
    else if (wish.mayReenter) this.#tryAlone(lock, waiter)
    else lock.stand(waiter)
    return waiter
  }

  /** The caller gives up: whatever became of the wish is taken back. */
  quit(waiter: Waiter): void {
    this.#end(waiter, undefined)
  }

  /** "The lock is free", said by another client, if it has named itself: the head of the line tries when it is its turn. */
  unlocked(key: string, by?: string): void {
    if (by !== undefined) this.#locks.turns.freed(key, by)
    this.#locks.get(key)?.unlocked()
  }

  /** An owner with this name holds the lock: its other waiters need not wait. */
  entered(key: string, owner: string): void {
    this.#locks.get(key)?.entered(owner)
  }

  /** A grant by message. False: no waiter of this client has that id. */
  grantedByMessage(id: string, token: number, via: Via): boolean {
    const waiter = this.#locks.waiter(id)
    if (!waiter) return false
    this.#locks.of(waiter.claim.key).granted(waiter, token, via)
    return true
  }

  /** A grant has been taken away, of which the waiter may not have heard: its reply is under way. */
  lost(id: string, token: number): void {
    const waiter = this.#locks.waiter(id)
    if (waiter) this.#locks.of(waiter.claim.key).lost(waiter, token)
  }

  /**
   * Redis is out of reach: `error` is the latest reason. Everybody looks at the truth as soon as there is a connection,
   * or gives up in time.
   */
  disconnected(error: Error): void {
    if (!this.#locks.closed && this.#outage.begin(error, true)) this.lookAgain()
  }

  /** The first connection has not been made yet. That is no news, but uses up patience. */
  unconnected(): void {
    this.#outage.begin(new Error('not connected yet'), false)
  }

  reconnected(): void {
    this.#outage.over()
    this.lookAgain()
  }

  /** Messages may have been missed: looks at the truth of every lock, or of that of one key. */
  lookAgain(key?: string): void {
    const locks = key === undefined ? [...this.#locks.all] : [this.#locks.get(key)]
    for (const lock of locks) if (lock && lock.waiting > 0) this.#heartbeat.look(lock)
  }

  /** Rejects every waiter with LockClosedError, and makes no more grants. What has to be taken back for that, is. */
  refuse(): void {
    this.#locks.closed = true
    this.#outage.close()
    this.#single.close()
    this.#locks.turns.close()
    // One for all: each caller gets its own from it, and there may be very many.
    const closed = new LockClosedError()
    for (const waiter of this.#locks.waiters) this.#end(waiter, closed)
  }

  /** Refuses, and resolves when all have left, as far as Redis answers. */
  async close(): Promise<void> {
    this.refuse()
    await this.#cleanup.close()
  }

  #end(waiter: Waiter, error: Error | undefined): void {
    // One that does not wait any more may have been the last of its lock.
    if (waiter.waits) this.#locks.of(waiter.claim.key).end(waiter, error)
  }

  /** Where there is no connection, none is waited for: but the first one is about to be there. */
  #tryOnce(lock: LocalLock, waiter: Waiter): void {
    const { known } = this.#outage
    if (known) return lock.end(waiter, outOfReach(known))
    this.#single.asked(waiter)
    this.#tryAlone(lock, waiter)
  }

  /** Not behind others: a single attempt, and one that may re-enter. */
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
    // On the unlock channel it hears that its owner has been granted the lock by another call.
    const unlock = mayReenter ? this.#ears.heed(lock.key, 'unlock', limit) : undefined
    if (!inbox && !unlock && !after) lock.join(waiter)
    else this.#joinLater(lock, waiter, [inbox, unlock]).catch(error => this.#end(waiter, error))
  }

  /** As soon as the channels are heard, and Redis knows what it has to know by then. */
  async #joinLater(lock: LocalLock, waiter: Waiter, hearings: readonly (Promise<void> | undefined)[]): Promise<void> {
    const begun = this.#awake.now()
    await Promise.all(hearings)
    await waiter.wish.after
    if (!waiter.waits) return
    const waited = this.#awake.now() - begun
    if (waited >= AT_ONCE) {
      // The request has a patience of its own; but its waiter has used up a part of that.
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

/**
 * Carries out what the keys of a client ask for (`Port` in port.ts): requests to Redis, subscriptions, timers.
 * Answers, messages and failures come back as events, each with its time.
 *
 * A waiter is in the table before its first request is sent. So if the message of its grant comes before the reply to
 * its request, because the two come over different connections, the message finds it.
 */
import { type AwakeClock, awake, type Clock, mayBeOver } from '../clock.ts'
import { LockClosedError, type LockConnectionError, LockQueueFullError, outOfReach } from '../errors.ts'
import type { Channels, Granted, HoldName, Kind, Refused } from '../kind.ts'
import type { Outcome } from '../outcome.ts'
import { Cleanups } from './cleanups.ts'
import { FairAfter } from './fair-after.ts'
import type { KeyState } from './key-state.ts'
import { Outage, SingleAttempts } from './limits.ts'
import type { Attempt, Heeded, Key, Port } from './port.ts'
import { Schedule } from './schedule.ts'
import { Subscriptions } from './subscriptions.ts'
import type { Table } from './table.ts'
import { type Settle, Waiter, type Wish } from './waiter.ts'

export interface Patience {
  /** The expiry of a queued waiter, in ms. */
  readonly waiterTtl: number
  /** For how many ms waiters tolerate an outage of Redis. */
  readonly outage: number
}

export interface IoListener {
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
  /** Releases a hold that has ended here, and that Redis may still have. */
  release(hold: HoldName): void
  /** Called when Redis has released what a waiter had been granted that no longer waits. */
  left(hold: HoldName): void
  /** Returns why Redis does not answer although it is connected; undefined if no reason is known. */
  trouble(): Error | undefined
  /** Reports a failure that no caller's promise reports. */
  failed(error: unknown): void
}

/**
 * If other waiters of the client stand behind the first unfair waiter, its grant reserves this many fencing tokens for
 * hand-offs within the client. So this is also the largest number of hand-offs that can follow one grant by Redis.
 */
const BLOCK = 1_000
/** The longest pause between heartbeats, in ms, even if `waiterTtl` is long: heartbeats keep the queue's keys alive. */
const LONGEST_PAUSE = 60_000
/** The pause, in ms, before it is checked what an attempt has left behind a release that is under way. */
const BEHIND = 50
/** If a fair waiter's subscriptions take less than this many ms, that time does not count against its patience. */
const AT_ONCE = 50

/** One attempt that was sent for a waiter. `begun`: when, on the clock of `awake`, if the head of a line asks. */
class Asked implements Outcome<Granted | Refused> {
  /** Whether the attempt was sent again, because its first reply came late. */
  again = false

  constructor(
    readonly io: Io,
    readonly state: Key,
    readonly waiter: Waiter,
    readonly attempt: Attempt,
    readonly join: boolean,
    readonly reserve: boolean,
    readonly begun: number,
  ) {}

  done(answer: Granted | Refused): void {
    this.io.answered(this, answer)
  }

  failed(error: Error): void {
    this.io.failed(this, error)
  }
}

export class Io implements Port {
  readonly shared: boolean
  readonly local: boolean
  readonly pause: number
  closed = false
  readonly #patience: number
  readonly #kind: Kind
  readonly #subscriptions: Subscriptions
  readonly #clock: Clock
  readonly #awake: AwakeClock
  readonly #table: Table
  readonly #listener: IoListener
  readonly #outage: Outage
  readonly #single: SingleAttempts
  readonly #fairAfter: FairAfter
  /** Timers of fair waiters whose subscriptions took long. Each fires when its waiter's patience is over. */
  readonly #joining = new Map<Waiter, { cancel(): void }>()
  readonly #cleanups: Cleanups

  constructor(
    kind: Kind,
    channels: Channels,
    schedule: Schedule,
    patience: Patience,
    table: Table,
    listener: IoListener,
  ) {
    const { clock } = schedule
    this.shared = kind.shared
    this.local = kind.background !== undefined
    this.#patience = patience.outage
    this.pause = Math.min(patience.waiterTtl / 3, LONGEST_PAUSE)
    this.#kind = kind
    this.#subscriptions = new Subscriptions(channels, clock)
    this.#clock = clock
    this.#awake = awake(clock)
    this.#table = table
    this.#listener = listener
    const background = kind.background ?? { kind, clock }
    this.#cleanups = new Cleanups(background.kind, background.clock, patience.waiterTtl, error =>
      listener.failed(error),
    )
    const silences = new Schedule(this.#awake)
    this.#outage = new Outage(table.states, silences, patience.outage, (state, waiter, error) =>
      state.end(waiter, error, clock.now()),
    )
    this.#single = new SingleAttempts(silences, patience.outage, (waiter, limit) =>
      this.end(waiter, waiter.wish.mode === 'once' ? this.#unreached(limit) : undefined),
    )
    this.#fairAfter = new FairAfter(schedule, (waiter, now) => this.#queue(table.of(waiter.claim.key), waiter, now))
    table.port = this
  }

  // Calls.

  /**
   * Begins a wait. `settle` is called once, when the wait ends. `before`: the former waiter of the same call, whose grant
   * does not count.
   */
  start(wish: Wish, settle: Settle, before?: Waiter): Waiter {
    const now = this.#clock.now()
    const waiter = new Waiter(wish, before?.since ?? now, before?.begun ?? this.#awake.at(now), settle)
    if (before) waiter.answered = true
    this.#table.waiters.set(wish.claim.id, waiter)
    const state = this.#table.of(wish.claim.key)
    state.present += 1
    this.#outage.arrived(state, waiter)
    if (wish.mode === 'queue') this.#queue(state, waiter, now)
    else if (wish.mode === 'once') this.#tryOnce(state, waiter, now)
    else if (wish.mayReenter) this.#tryAlone(state, waiter, now)
    else state.stand(waiter, now)
    return waiter
  }

  /**
   * Ends the wait without a grant: because of an error, or because the caller gives up. In the background, the waiter
   * is removed from the queue in Redis, or its grant is released.
   */
  end(waiter: Waiter, error: Error | undefined): void {
    // If the waiter no longer waits, this client may have forgotten the key, and `of` would make a new state.
    if (waiter.waits) this.#table.of(waiter.claim.key).end(waiter, error, this.#clock.now())
  }

  /**
   * Ends the wait of a caller whose `timeout` is over. If its first attempt is unanswered, the wait ends with the
   * answer: otherwise a call with a short `timeout` would never get a free lock while the first connection is being
   * made, although a single attempt would. `SingleAttempts` limits the time for the answer.
   */
  outOfTime(waiter: Waiter): void {
    if (waiter.parked || waiter.answered || this.#outage.known) this.end(waiter, undefined)
    else this.#single.asked(waiter)
  }

  /** Rejects these waiters with LockClosedError, and removes them from Redis. */
  refuse(which: (waiter: Waiter) => boolean): void {
    // There may be very many waiters, so they all get the same error here. Each caller then gets a copy of it.
    let closed: LockClosedError | undefined
    for (const waiter of this.#table.waiters.values().sort((a, b) => a.since - b.since)) {
      if (!which(waiter)) continue
      closed ??= new LockClosedError()
      this.end(waiter, closed)
    }
  }

  /**
   * Refuses every waiter, and accepts no more grants. Resolves when no waiter is left in Redis, or when the last
   * attempts to remove waiters have failed.
   */
  async close(): Promise<void> {
    this.closed = true
    this.#outage.close()
    this.#single.close()
    this.refuse(() => true)
    await this.#cleanups.close()
  }

  // The connection.

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
   * undefined. An answer to an attempt of the waiter itself counts, and a refusal of the head if the refused request was
   * sent during this wait. A refusal of an earlier request counts only if there is no outage now.
   */
  unanswered(waiter: Waiter): LockConnectionError | undefined {
    const { refusal, since, answered } = waiter
    if (answered || (refusal && (refusal.sent >= since || !this.outage))) return undefined
    return this.#unreached(this.#clock.now() - since)
  }

  /**
   * Called when Redis is out of reach; `error` is the latest reason. A waiter gives up if its patience ends before
   * there is a connection again. As soon as there is a connection, the state of every lock is read again. `brief`: there
   * will probably be one at once, so single attempts wait for it.
   */
  disconnected(error: Error, brief = false): void {
    if (!this.closed && this.#outage.begin(error, !brief)) this.look()
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
    this.look()
  }

  /**
   * Reads the state of the lock of `key` again, or of every lock, because messages may have been missed. With `ms`,
   * reads it when a lease has ended, in `ms`, or earlier.
   */
  look(key?: string, ms?: number): void {
    const now = this.#clock.now()
    for (const state of key === undefined ? this.#table.states.values() : [this.#table.states.get(key)]) {
      if (!state || state.waiting === 0) continue
      if (ms === undefined) state.look(now)
      else if (ms >= 0) state.lookWithin(ms, now)
    }
  }

  // The port of the keys.

  mayBeOver({ claim }: Waiter, deadline: number, now: number): boolean {
    return mayBeOver(this.#clock, deadline, claim.lease, now)
  }

  ask(state: Key, waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean, sent: number): void {
    const begun = attempt === 'as-head' ? this.#awake.at(sent) : 0
    this.#attempt(new Asked(this, state, waiter, attempt, join, reserve, begun), waiter.answered)
  }

  #attempt(asked: Asked, waits: boolean): void {
    this.#kind.attempt(asked.waiter.claim, asked.join ? 'queue' : 'try', asked.reserve ? BLOCK : 0, waits, asked)
  }

  /** Called when Redis has answered an attempt. */
  answered(asked: Asked, answer: Granted | Refused): void {
    const { state, waiter, attempt, join } = asked
    const now = this.#clock.now()
    // If the reply took longer than the lease that it grants, the lease may be over. So the waiter asks again with
    // the same id. The answer is the same grant with a later deadline, or a new grant if the first has expired. The
    // waiter asks only once more, because the lease may be shorter than any round trip to Redis.
    if (answer.granted && this.mayBeOver(waiter, answer.deadline, now) && waiter.waits && !asked.again) {
      asked.again = true
      return this.#attempt(asked, true)
    }
    if (waiter.wish.mode === 'once') this.#single.answered(waiter)
    else if (attempt === 'as-head') state.silence = undefined
    else if (attempt === 'to-join' && this.#joining.size > 0) this.#endJoining(waiter)
    state.answered(waiter, attempt, join, answer, now)
  }

  /**
   * Called when an attempt has failed. Redis may execute the attempt after that. If the waiter has given up, a cleanup
   * has been sent as well, but Redis may execute the attempt after that cleanup. So `takeBack` sends another cleanup.
   */
  failed({ state, waiter, attempt, begun }: Asked, error: Error): void {
    if (error instanceof LockQueueFullError) return state.turnedAway(waiter, error, this.#clock.now())
    const { claim } = waiter
    // The caller has used the lock, which may be taken until its `minHold` has passed.
    const used = waiter.state === 'holding' && claim.minHold && !this.#table.holds.has(claim.id)
    if (used) this.#listener.release(claim)
    else if (!waiter.waits) state.takeBack(waiter)
    if (attempt === 'to-re-enter') return
    this.#endJoining(waiter)
    state.end(waiter, error, this.#clock.now())
    if (attempt === 'as-head') this.#headFailed(state, begun, error)
  }

  tend(state: Key, waiters: readonly Waiter[]): void {
    const queued = waiters.map(({ claim, ticket }) => ({ claim, ticket }))
    this.#kind.tend?.(state.key, queued).then(
      answer => state.tended(waiters, answer, this.#clock.now()),
      error => {
        const now = this.#clock.now()
        // A failed heartbeat is sent again. If every heartbeat fails for `patience` ms, the waiter's wait ends.
        for (const waiter of waiters) {
          if (now - (waiter.seen ?? waiter.since) >= this.#patience) state.end(waiter, error, now)
        }
        state.tended(waiters, undefined, now)
      },
    )
  }

  leave(waiter: Waiter): void {
    const { claim, heldToken } = waiter
    const { key, id } = claim
    this.#cleanups.begin(waiter, () => {
      if (heldToken > 0) this.#listener.left({ key, id })
      this.#freed(key)
    })
  }

  check(waiter: Waiter, token?: number): void {
    const { claim } = waiter
    const hold = this.#table.holds.get(claim.id)
    if (!hold) this.leave(waiter)
    else if (token !== undefined) this.#listener.doubt(claim.id, token)
    // Behind the release, the request may have queued the waiter.
    else if (hold.state.is === 'releasing' && !this.closed) this.#clock.after(BEHIND, () => this.check(waiter))
  }

  hear(state: Heeded, head: Waiter, now: number): void {
    const begun = this.#awake.at(now)
    const hearing = this.#subscriptions.heed(state, 'unlock', this.pause)
    if (!hearing) return state.listened(now)
    hearing.then(
      () => state.listened(this.#clock.now()),
      error => {
        this.end(head, error)
        this.#headFailed(state, begun, error)
      },
    )
  }

  parked(waiter: Waiter): void {
    if (this.#single.asking > 0 && this.#single.has(waiter)) return this.end(waiter, undefined)
    const { mode, fairAfter } = waiter.wish
    if (mode === 'line' && fairAfter !== undefined) this.#fairAfter.add(waiter, fairAfter)
    this.#listener.waiting(waiter)
  }

  settled(waiter: Waiter): void {
    const { claim, mode, fairAfter } = waiter.wish
    this.#table.waiters.delete(claim.id)
    if (this.#table.waiters.size === 0) this.#outage.rest()
    if (waiter.parked && mode === 'line' && fairAfter !== undefined)
      this.#fairAfter.generations.get(fairAfter)?.delete(waiter)
    if (this.#single.asking > 0) this.#single.answered(waiter)
  }

  rested(state: Key): void {
    this.#subscriptions.drop(state)
  }

  idle(state: Key): void {
    if (this.#table.states.get(state.key) === state) this.#table.states.delete(state.key)
  }

  // The first request of a waiter.

  /**
   * Makes a single attempt. If the connection has been lost, the attempt fails at once. If the client's first
   * connection is still being made, the attempt waits for it, because it should be up soon.
   */
  #tryOnce(state: KeyState, waiter: Waiter, now: number): void {
    const { known } = this.#outage
    if (known) return state.end(waiter, outOfReach(known), now)
    this.#single.asked(waiter)
    this.#tryAlone(state, waiter, now)
  }

  /** Asks Redis for this waiter alone: for a single attempt, or because the waiter may re-enter. */
  #tryAlone(state: KeyState, waiter: Waiter, now: number): void {
    const { after } = waiter.wish
    if (!after) return state.tryAlone(waiter, now)
    after.then(
      () => waiter.waits && state.tryAlone(waiter, this.#clock.now()),
      error => this.end(waiter, error),
    )
  }

  #queue(state: KeyState, waiter: Waiter, now: number): void {
    state.announce(waiter, now)
    const { after, mayReenter } = waiter.wish
    const limit = Math.min(this.pause, this.#patience / 2)
    const inbox = this.#subscriptions.heed(state, 'inbox', limit)
    // The unlock channel also announces that another call of the same owner was granted the lock. Then this waiter
    // re-enters.
    const unlock = mayReenter ? this.#subscriptions.heed(state, 'unlock', limit) : undefined
    if (!inbox && !unlock && !after) state.join(waiter, now)
    else this.#joinLater(state, waiter, [inbox, unlock]).catch(error => this.end(waiter, error))
  }

  /** Joins the queue after the subscriptions are active and `wish.after` has resolved. */
  async #joinLater(state: KeyState, waiter: Waiter, hearings: readonly (Promise<void> | undefined)[]): Promise<void> {
    const begun = this.#awake.now()
    await Promise.all(hearings)
    await waiter.wish.after
    if (!waiter.waits) return
    const waited = this.#awake.now() - begun
    if (waited >= AT_ONCE) {
      // The request has a time limit of its own, which begins now. But the waiter has already used up a part of its
      // patience, so an earlier limit is set as well.
      const giveUp = () => this.end(waiter, this.#unreached(this.#patience))
      this.#joining.set(waiter, this.#awake.after(this.#patience - waited, giveUp))
    }
    state.join(waiter, this.#clock.now())
  }

  #endJoining(waiter: Waiter): void {
    this.#joining.get(waiter)?.cancel()
    this.#joining.delete(waiter)
  }

  // Requests and subscriptions.

  /** `begun`: when the head sent its request, or began to subscribe, on the clock of `#awake`. */
  #headFailed(state: Heeded, begun: number, error: Error): void {
    this.#outage.failed(state, begun, error)
    state.failed(this.#clock.now())
  }

  /**
   * Called when a waiter has been removed from Redis, or its grant has been released there. This client may have
   * received only one message that the lock is free, and that waiter may have been the one that reacted to it. So the
   * first unfair waiter tries.
   */
  #freed(key: string): void {
    this.#table.states.get(key)?.wake(this.#clock.now())
  }

  #unreached(limit: number): LockConnectionError {
    const error = this.outage ?? new Error('the request got no reply')
    return outOfReach(error, `Redis did not answer for ${Math.round(limit)} ms`)
  }
}

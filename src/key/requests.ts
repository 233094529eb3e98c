/**
 * Carries out what the keys of a client ask for (`Port` in port.ts): requests to Redis, subscriptions, timers.
 * Answers, messages and failures come back as events, each with its time.
 *
 * A waiter is in the table before its first request is sent. So if the message of its grant comes before the reply to
 * its request, because the two come over different connections, the message finds it.
 */
import { type AwakeClock, awake, type Clock, mayBeOver } from '../clock.ts'
import { isRefusal, LockClosedError, type LockConnectionError, LockQueueFullError, outOfReach } from '../errors.ts'
import type { Channel, Channels, Claim, Granted, Kind, Refused } from '../kind.ts'
import type { Outcome } from '../outcome.ts'
import { Outage, SingleAttempts } from './limits.ts'
import type { Port } from './port.ts'
import { Schedule } from './schedule.ts'
import type { Table } from './table.ts'
import { type Attempt, type Call, Waiter, type WaiterKey } from './waiter.ts'
import type { Withdrawals } from './withdrawals.ts'

export interface Patience {
  /** The expiry of a queued waiter, in ms. */
  readonly waiterTtl: number
  /** For how many ms waiters tolerate an outage of Redis. */
  readonly outage: number
}

export interface RequestsListener {
  /**
   * The waiter has to wait: Redis has refused it. Of this client's unfair waiters for a key, only the first asks Redis, so
   * a refusal of the first one is a refusal of all.
   */
  onWaiting(waiter: Waiter): void
  /** Returns why Redis does not answer although it is connected; undefined if no reason is known. */
  trouble(): Error | undefined
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

/** One attempt that was sent for a waiter. `begun`: when, on the clock of `awake`, if the head of a line asks. */
class Asked implements Outcome<Granted | Refused> {
  /** Whether the attempt was sent again, because its first reply came late. */
  again = false

  constructor(
    readonly requests: Requests,
    readonly waiter: Waiter,
    readonly attempt: Attempt,
    readonly join: boolean,
    readonly reserve: boolean,
    readonly begun: number,
  ) {}

  done(answer: Granted | Refused, now?: number): void {
    this.requests.onAnswer(this, answer, now)
  }

  failed(error: Error): void {
    this.requests.onFailure(this, error)
  }
}

export class Requests implements Port {
  readonly shared: boolean
  readonly local: boolean
  readonly pause: number
  closed = false
  readonly #patience: number
  readonly #kind: Kind
  readonly #channels: Channels
  readonly #clock: Clock
  readonly #awake: AwakeClock
  readonly #table: Table
  readonly #withdrawals: Withdrawals
  readonly #listener: RequestsListener
  readonly #outage: Outage
  readonly #single: SingleAttempts

  constructor(
    kind: Kind,
    channels: Channels,
    schedule: Schedule,
    patience: Patience,
    table: Table,
    withdrawals: Withdrawals,
    listener: RequestsListener,
  ) {
    const { clock } = schedule
    this.shared = kind.traits.shared
    this.local = kind.traits.background !== undefined
    this.#patience = patience.outage
    this.pause = Math.min(patience.waiterTtl / 3, LONGEST_PAUSE)
    this.#kind = kind
    this.#channels = channels
    this.#clock = clock
    this.#awake = awake(clock)
    this.#table = table
    this.#withdrawals = withdrawals
    this.#listener = listener
    const silences = new Schedule(this.#awake)
    this.#outage = new Outage(table.keys, silences, patience.outage, (waiter, error) =>
      waiter.key.end(waiter, error, clock.now()),
    )
    this.#single = new SingleAttempts(silences, patience.outage, (waiter, limit) =>
      this.end(waiter, waiter.call.mode === 'once' ? this.#unreached(limit) : undefined),
    )
    table.port = this
  }

  // Calls.

  /** When a call that is made at `now` begins, on the clock that counts only while this process runs. */
  begunAt(now: number): number {
    return this.#awake.at(now)
  }

  /** Begins a wait, at `now`. */
  start(claim: Claim, call: Call, now: number): Waiter {
    const key = this.#table.of(claim.key)
    const waiter = new Waiter(claim, call, key)
    this.#table.addWaiter(waiter)
    key.present += 1
    this.#outage.arrived(waiter)
    if (call.mode === 'queue') this.queue(waiter, now)
    else if (call.mode === 'once') this.#tryOnce(waiter, now)
    else if (call.mayReenter) this.#tryAlone(waiter, now)
    else key.stand(waiter, now)
    return waiter
  }

  /**
   * Ends the wait without a grant: because of an error, or because the caller gives up. In the background, the waiter
   * is removed from the queue in Redis, or its grant is released.
   */
  end(waiter: Waiter, error: Error | undefined): void {
    waiter.key.end(waiter, error, this.#clock.now())
  }

  /**
   * Ends the wait of a caller whose `timeout` is over. If its first attempt is unanswered, the wait ends with the
   * answer: otherwise a call with a short `timeout` would never get a free lock while the first connection is being
   * made, although a single attempt would. `SingleAttempts` limits the time for the answer.
   */
  outOfTime(waiter: Waiter): void {
    if (waiter.parked || waiter.call.answered || this.#outage.known) this.end(waiter, undefined)
    else this.#single.asked(waiter)
  }

  /** Rejects these waiters with LockClosedError, and removes them from Redis. */
  refuse(which: (waiter: Waiter) => boolean): void {
    // There may be very many waiters, so they all get the same error here. Each caller then gets a copy of it.
    let closed: LockClosedError | undefined
    for (const waiter of this.#table.allWaiters) {
      if (!which(waiter)) continue
      closed ??= new LockClosedError()
      this.end(waiter, closed)
    }
  }

  /** Refuses every waiter, and accepts no more grants. */
  close(): void {
    this.closed = true
    this.#outage.close()
    this.#single.close()
    this.refuse(() => true)
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
   * For a wait that ended without a lease. Returns the error to report if Redis did not answer, otherwise
   * undefined. An answer to an attempt of the waiter itself counts, and a refusal of the head if the refused request was
   * sent during this wait. A refusal of an earlier request counts only if there is no outage now.
   */
  unanswered(waiter: Waiter): LockConnectionError | undefined {
    const { refusal, since, call } = waiter
    if (call.answered || (refusal && (refusal.sent >= since || !this.outage))) return undefined
    return this.#unreached(this.#clock.now() - since)
  }

  /**
   * Redis is out of reach; `error` is the latest reason. A waiter gives up if its patience ends before there is a
   * connection again. `brief`: there will probably be one at once, so single attempts wait for it.
   */
  onDisconnected(error: Error, brief = false): void {
    if (!this.closed && this.#outage.begin(error, !brief)) this.look()
  }

  /**
   * The first connection is being made. From now on, waiters wait for it as long as they tolerate an
   * outage. Single attempts do not fail at once, because no connection has failed yet.
   */
  onUnconnected(): void {
    this.#outage.begin(new Error('the client has not made its first connection yet; check the address of Redis'), false)
  }

  onReconnected(): void {
    this.#outage.over()
  }

  /**
   * Reads the state of the lock of `key` again, or of every lock, because messages may have been missed. With `ms`,
   * reads it when a lease has ended, in `ms`, or earlier.
   */
  look(key?: string, ms?: number): void {
    const now = this.#clock.now()
    for (const each of key === undefined ? this.#table.keys.values() : [this.#table.keys.get(key)]) {
      if (!each || each.waiting === 0) continue
      if (ms === undefined) each.look(now)
      else if (ms >= 0) each.lookWithin(ms, now)
    }
  }

  // The port of the keys.

  mayBeOver({ claim }: Waiter, deadline: number, now: number): boolean {
    return mayBeOver(this.#clock, deadline, claim.lease, now)
  }

  ask(waiter: Waiter, attempt: Attempt, join: boolean, reserve: boolean, now: number): void {
    const begun = attempt === 'as-head' ? this.#awake.at(now) : 0
    this.#attempt(new Asked(this, waiter, attempt, join, reserve, begun), waiter.call.answered)
  }

  #attempt(asked: Asked, waits: boolean): void {
    this.#kind.attempt(asked.waiter.claim, asked.join ? 'queue' : 'try', asked.reserve ? BLOCK : 0, waits, asked)
  }

  onAnswer(asked: Asked, answer: Granted | Refused, now = this.#clock.now()): void {
    const { waiter, attempt, join } = asked
    const { key } = waiter
    // If the reply took longer than the lease that it grants, the lease may be over. So the waiter asks again with
    // the same id. The answer is the same grant with a later deadline, or a new grant if the first has expired. The
    // waiter asks only once more, because the lease may be shorter than any round trip to Redis.
    if (answer.granted && this.mayBeOver(waiter, answer.deadline, now) && waiter.waits && !asked.again) {
      asked.again = true
      return this.#attempt(asked, true)
    }
    key.silence = undefined
    if (waiter.call.mode === 'once') this.#single.answered(waiter)
    key.onAnswer(waiter, attempt, join, answer, now)
  }

  /**
   * An attempt has failed. Redis may execute the attempt after that. If the waiter has given up, a cleanup has been sent
   * as well, but Redis may execute the attempt after that cleanup. So `takeBack` sends another cleanup.
   */
  onFailure({ waiter, attempt, begun }: Asked, error: Error): void {
    const now = this.#clock.now()
    const { claim, key } = waiter
    if (error instanceof LockQueueFullError) return key.onFull(waiter, error, now)
    // The caller has used the lock, which may be taken until its `minHold` has passed.
    const used = waiter.state === 'holding' && claim.minHold && !this.#table.hold(claim.id)
    if (used) this.#withdrawals.release(claim)
    else if (!waiter.waits) key.takeBack(waiter)
    if (attempt === 'to-re-enter') return
    key.end(waiter, error, now)
    if (attempt === 'as-head') this.#headFailed(key, begun, error)
  }

  queue(waiter: Waiter, now: number): void {
    const { key } = waiter
    key.announce(waiter, now)
    const { recorded, mayReenter } = waiter.call
    const limit = Math.min(this.pause, this.#patience / 2)
    const inbox = this.#subscribe(key, 'inbox', limit)
    // The unlock channel also announces that another call of the same owner was granted the lock. Then this waiter
    // re-enters.
    const unlock = mayReenter ? this.#subscribe(key, 'unlock', limit) : undefined
    if (!inbox && !unlock && !recorded) return key.join(waiter, now)
    Promise.all([inbox, unlock, recorded]).then(
      () => waiter.waits && key.join(waiter, this.#clock.now()),
      error => this.end(waiter, error),
    )
  }

  beat(key: WaiterKey, waiters: readonly Waiter[]): void {
    const begun = this.#awake.now()
    const queued = waiters.map(({ claim, refusal }) => ({ claim, ticket: (refusal as Refused).ticket }))
    this.#kind.tend(key.key, queued).then(
      answer => {
        key.silence = undefined
        key.onHeartbeat(waiters, answer, this.#clock.now())
      },
      failure => {
        // It is sent again when the key next looks.
        this.#outage.silent(key, begun, failure)
        key.onHeartbeat(waiters, undefined, this.#clock.now())
      },
    )
  }

  leave(waiter: Waiter): void {
    this.#withdrawals.leave(waiter)
  }

  check(waiter: Waiter, token?: number): void {
    const hold = this.#table.hold(waiter.claim.id)
    if (!hold) this.leave(waiter)
    else if (token !== undefined) hold.keeper.doubt(hold, token)
    // Behind the release, the request may have queued the waiter.
    else if (hold.state.is === 'releasing' && !this.closed) this.#clock.after(BEHIND, () => this.check(waiter))
  }

  listen(head: Waiter, now: number): void {
    const { key } = head
    const begun = this.#awake.at(now)
    const subscribing = this.#subscribe(key, 'unlock', this.pause)
    if (!subscribing) return key.onSubscribed(now)
    subscribing.then(
      () => key.onSubscribed(this.#clock.now()),
      error => {
        this.end(head, error)
        this.#headFailed(key, begun, error)
      },
    )
  }

  onParked(waiter: Waiter): void {
    if (this.#single.asking > 0 && this.#single.has(waiter)) return this.end(waiter, undefined)
    this.#listener.onWaiting(waiter)
  }

  onSettled(waiter: Waiter): void {
    this.#table.dropWaiter(waiter)
    if (this.#table.waiters === 0) this.#outage.rest()
    if (this.#single.asking > 0) this.#single.answered(waiter)
  }

  /** Ends the subscriptions of this key. */
  onRest(key: WaiterKey): void {
    const { subscribed = {} } = key
    key.subscribed = undefined
    for (const channel of Object.keys(subscribed) as Channel[]) {
      if (subscribed[channel]) this.#channels.unsubscribe(key.key, channel)
      subscribed[channel] = undefined
    }
  }

  onIdle({ key }: WaiterKey): void {
    this.#table.keys.delete(key)
  }

  // The first request of a waiter.

  /**
   * Makes a single attempt. If the connection has been lost, the attempt fails at once. If the client's first
   * connection is still being made, the attempt waits for it, because it should be up soon.
   */
  #tryOnce(waiter: Waiter, now: number): void {
    const { known } = this.#outage
    if (known) return this.end(waiter, outOfReach(known))
    this.#single.asked(waiter)
    this.#tryAlone(waiter, now)
  }

  /** Asks Redis for this waiter alone: for a single attempt, or because the waiter may re-enter. */
  #tryAlone(waiter: Waiter, now: number): void {
    const { call, key } = waiter
    if (!call.recorded) return key.ask(waiter, 'alone', now)
    call.recorded.then(
      () => waiter.waits && key.ask(waiter, 'alone', this.#clock.now()),
      error => this.end(waiter, error),
    )
  }

  // Subscriptions and silence.

  /**
   * Subscribes for the waiters of this key. Returns undefined if the subscription is active. The promise resolves when it
   * is, but also after `limit` ms, and if the connection for messages is broken. Then the waiters go on without
   * messages: their requests may still reach Redis, and the lock's state is read from time to time (I4). It rejects if
   * Redis refuses the subscription.
   */
  #subscribe(key: WaiterKey, channel: Channel, limit: number): Promise<void> | undefined {
    const subscribing = this.#subscription(key, channel)
    if (!subscribing) return undefined
    const begun = this.#awake.now()
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(limit, () => {
        this.#outage.silent(key, begun, new Error('the subscription got no reply'))
        resolve()
      })
      const refused = (error: LockConnectionError) => {
        if (error.cause === undefined || isRefusal(error)) reject(error)
      }
      subscribing.catch(refused).then(() => {
        timer.cancel()
        resolve()
      })
    })
  }

  /** The waiters of a key share a subscription. If it fails, the next waiter subscribes again. */
  #subscription(state: WaiterKey, channel: Channel): Promise<void> | undefined {
    state.subscribed ??= {}
    const { subscribed, key } = state
    const known = subscribed[channel]
    if (known === true) {
      if (this.#channels.isSubscribed(key, channel)) return undefined
      // The connection for messages was lost since this key subscribed, perhaps while it had no waiters.
      this.#channels.unsubscribe(key, channel)
    } else if (known) return known
    const subscribing = this.#channels.subscribe(key, channel)
    subscribed[channel] = subscribing ?? true
    subscribing?.then(
      () => {
        if (subscribed[channel] === subscribing) subscribed[channel] = true
      },
      () => {
        if (subscribed[channel] !== subscribing) return
        subscribed[channel] = undefined
        this.#channels.unsubscribe(key, channel)
      },
    )
    return subscribing
  }

  /** `begun`: when the head sent its request, or began to subscribe, on the clock of `#awake`. */
  #headFailed(key: WaiterKey, begun: number, error: Error): void {
    this.#outage.silent(key, begun, error)
    key.onHeadFailed(this.#clock.now())
  }

  #unreached(limit: number): LockConnectionError {
    const error = this.outage ?? new Error('the request got no reply')
    return outOfReach(error, `Redis did not answer for ${Math.round(limit)} ms`)
  }
}

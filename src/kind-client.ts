/**
 * One kind of lock in one client: turns a call into a lease, and passes on what arrives from Redis.
 *
 *      LockClient ──▶ KindClient ─┬─▶ KeyState ─▶ Io ─┬─▶ Kind ─▶ Redis      key/: waiting for the grant
 *                                 └─▶ Holds ──────────┘                       and keeping it
 */
import { AsyncResource } from 'node:async_hooks'
import type { Backend } from './backend.ts'
import { type Clock, toMicros } from './clock.ts'
import { type Details, type HolderInfo, LockClosedError, outageOf, outOfReach, rejection } from './errors.ts'
import { Hold, type Loss } from './key/hold.ts'
import { Holds } from './key/holds.ts'
import { Io } from './key/io.ts'
import { Lease } from './key/lease.ts'
import { limit } from './key/limits.ts'
import { LossNews } from './key/loss-news.ts'
import { Schedule } from './key/schedule.ts'
import { Table } from './key/table.ts'
import type { Waiter, Wish } from './key/waiter.ts'
import type { Granted, Kind } from './kind.ts'
import type { Stats } from './observe/stats.ts'
import type { Keys } from './redis/keys.ts'
import { type Replicas, startReplicated } from './replicated.ts'
import type { CallTerms, Settings } from './settings.ts'

/** The events in a client, each with its arguments. `held`: how many ms the hold lasted. */
export interface Happenings {
  /** The waiter was refused for the first time. */
  waiting: [waiter: Waiter, client: KindClient]
  acquired: [hold: Hold, waiter: Waiter]
  renewed: [hold: Hold]
  /** The hold ended by its release. */
  released: [hold: Hold, held: number]
  /** The hold ended without being released. */
  lost: [hold: Hold, loss: Loss]
  /**
   * `disconnected`: a connection is gone. `reconnected`: all connections are up again. Over a quorum, both events are
   * about a majority of the servers.
   */
  disconnected: [error: Error]
  reconnected: []
  /** An error that no promise reports. */
  error: [error: Error]
}

/** Receives every event as it happens. */
export interface Observer {
  /** Whether somebody listens to `waiting`, `acquired` or `released`. These run in the async context of their call. */
  readonly listening: boolean
  tell<H extends keyof Happenings>(what: H, ...about: Happenings[H]): void
}

/** What all kinds of lock share in one client. */
export interface Host {
  readonly backend: Backend
  readonly clock: Clock
  readonly settings: Settings
  readonly stats: Stats
  readonly observer: Observer
  /** Reports an error that no promise reports. */
  failed(error: unknown): void
  /**
   * Returns whether `close` has been called, and calls of this owner for this key do not re-enter a hold that this
   * client still has. `owner`: undefined if the call cannot re-enter.
   */
  closedTo(keys: Keys, key: string, owner: string | undefined): boolean
  /** Whether `close` has been called. */
  readonly closing: boolean
  /** Called when a hold has ended, in whatever way, after `close` has been called. */
  ended(): void
}

/** Says how a call ends if it gets no lease. */
export interface Without<T> {
  /**
   * Called when the time-out passed, or when the single attempt was refused. If `refused` returns an error, the call
   * rejects with it. Otherwise the call resolves to the returned value.
   */
  refused(waiter: Waiter): T | Error
  /** Adds the key to an error, for the rejection of the call. */
  failed(error: unknown, key: string): unknown
}

export class KindClient<State = unknown> {
  readonly keys: Keys
  readonly kind: Kind<State>
  readonly io: Io
  readonly holding: Holds
  readonly #host: Host
  readonly #schedule: Schedule
  readonly #table: Table
  readonly #lossNews: LossNews | undefined
  readonly #replicas: Replicas

  constructor(host: Host, kind: Kind<State>, keys: Keys) {
    const { backend, clock, settings, stats, observer, failed } = host
    this.#host = host
    this.kind = kind
    this.keys = keys
    const channels = backend.channels(keys)
    const patience = { waiterTtl: settings.waiterTtl, outage: settings.outageTimeout }
    this.#schedule = new Schedule(clock)
    const keeping = kind.background ? new Schedule(kind.background.clock) : this.#schedule
    this.#table = new Table(this.#schedule)
    this.io = new Io(kind, channels, this.#schedule, patience, this.#table, {
      waiting: waiter => within(waiter.wish.context, () => observer.tell('waiting', waiter, this)),
      doubt: (id, token) => this.holding.doubt(id, token),
      release: hold => this.holding.endings.begin(hold),
      left: hold => this.holding.endings.recent?.add(hold),
      trouble: () => backend.trouble(),
      failed,
    })
    this.holding = new Holds(kind, keeping, this.#table, {
      renewed: hold => {
        if (this.#replicas.asked.has(hold)) return
        stats.renewed += 1
        observer.tell('renewed', hold)
      },
      released: (hold, held, context) => {
        stats.ended('released', held)
        within(context, () => observer.tell('released', hold, held))
      },
      context: () => (observer.listening ? new AsyncResource('RELEASE') : undefined),
      lost: (hold, loss, held) => {
        if (this.#replicas.asked.has(hold)) return
        stats.ended('lost', held)
        observer.tell('lost', hold, loss)
      },
      failed,
      outage: () => {
        const { outage, awayFor } = this.io
        return outage && outOfReach(outage, outageOf(awayFor))
      },
      get closing() {
        return host.closing
      },
      ended: host.ended,
    })
    const { io, holding } = this
    this.#replicas = { io, holding, clock, patience: patience.outage, asked: new Map() }
    if (backend.inboxPerLock) this.#lossNews = new LossNews(clock, channels, id => this.holding.doubt(id))
  }

  /** How many calls wait, in lines and queues, or for replicas. */
  get waiting(): number {
    return (
      this.#table.waiting +
      [...this.#replicas.asked.values()].filter(({ waiter }) => waiter.wish.mode !== 'once').length
    )
  }

  /** How many holds this client has that their callers have got. */
  get held(): number {
    return this.#table.holds.size - [...this.#replicas.asked.keys()].filter(({ state }) => state.is === 'held').length
  }

  /**
   * Resolves to the lease. If the wait ends without a lease, `without` says how the call ends. If `owner` is undefined,
   * the call's id is its owner. With `once`, the call makes a single attempt.
   *
   * The caller awaits the promise that is made here. There is no second promise in between, which would delay the
   * caller after the grant. Thousands of calls may wait at the same time, so a waiting call uses little memory: only a
   * call with a time-out has a timer, and only a call with a signal has a listener.
   */
  acquire<T>(
    key: string,
    owner: string | undefined,
    call: CallTerms,
    once: boolean,
    without: Without<T>,
  ): Promise<Lease | T> {
    if (this.#host.closing && this.#host.closedTo(this.keys, key, this.kind.reentrant ? owner : undefined)) {
      return Promise.reject(without.failed(new LockClosedError(), key))
    }
    const { signal } = call
    if (signal?.aborted) return Promise.reject(without.failed(signal.reason, key))
    return new Promise<Lease | T>((resolve, reject) => {
      let unlimited: (() => void) | undefined
      const settle = (end: Granted | Hold | Error | undefined, waiting: Waiter, now: number) => {
        unlimited?.()
        const lease = end && 'token' in end ? this.#take(waiting, end, call, now) : undefined
        // A listener of the `acquired` event may have aborted the signal.
        if (signal?.aborted) {
          if (lease) this.releaseQuietly(lease)
          // The reason is the caller's own object, so it keeps its stack.
          return reject(without.failed(signal.reason, key))
        }
        const outcome = lease ?? (end ? without.failed(end, key) : without.refused(waiting))
        resolve(outcome instanceof Error ? rejection(outcome) : (outcome as Lease | T))
      }
      const replicated = this.kind.replicated
        ? startReplicated(this.#replicas, () => this.#wish(key, owner, call, once), call, settle)
        : undefined
      const first = replicated?.waiter ?? this.io.start(this.#wish(key, owner, call, once), settle)
      const timeout = once ? undefined : call.timeout
      const giveUp = () => {
        const waiter = replicated?.waiter ?? first
        if (!waiter.waits) replicated?.end(undefined)
        else if (signal?.aborted) this.io.end(waiter, undefined)
        else this.io.outOfTime(waiter)
      }
      if ((signal || timeout !== undefined) && first.waits) unlimited = limit(signal, timeout, this.#host.clock, giveUp)
    })
  }

  /**
   * Returns the holder for which the waiter waits, and how long it has held the lock. Undefined: the holder is not
   * known.
   */
  holder({ claim, refusal, since }: Waiter): HolderInfo | undefined {
    const holder = this.holding.holder(claim.key, refusal?.sent ?? since) ?? refusal?.holder
    return holder && { label: holder.label, heldFor: toMicros(Math.max(0, this.#host.clock.now() - holder.since)) }
  }

  /** Returns what the message about a wait that took too long says about its lock. */
  details({ claim, refusal, due = 0 }: Waiter): Details {
    const { kind, io } = this
    const now = this.#host.clock.now()
    return {
      noun: kind.noun,
      heldBy: refusal?.holder && kind.heldBy?.(refusal.holder, claim),
      away: io.awayFor,
      expected: refusal?.position && now < due ? refusal.expected : undefined,
    }
  }

  /**
   * Releases a lease at the end of the work that needed it. A failed release must not hide the outcome of that work. So
   * if the release fails, an `error` event reports the failure, and the promise resolves to false.
   */
  releaseQuietly(lease: Lease): Promise<boolean> {
    return this.holding.quietly(lease.key, lease.release())
  }

  /**
   * Called when a message says that a forced release has taken away the grant with this id and token. `why`: the hold is
   * certainly gone, for this reason. Otherwise Redis is asked about it.
   */
  taken(id: string, token: number, why?: string): void {
    if (why === undefined) this.holding.taken(id)
    else this.holding.gone(id, why)
    // If the grant itself arrives later, the waiter must not use it.
    const waiter = this.#table.waiters.get(id)
    if (waiter && why === undefined) waiter.lost = token
    else if (waiter) waiter.leastToken = token + 1
  }

  /** Called when another client announces that the lock is free. The head of the line tries. */
  unlocked(key: string): void {
    this.#table.states.get(key)?.unlocked(this.#host.clock.now())
  }

  /** Called when the owner with this name holds the lock, so that the owner's other waiters can re-enter. */
  entered(key: string, owner: string): void {
    this.#table.states.get(key)?.entered(owner, this.#host.clock.now())
  }

  /**
   * Called when messages may have been lost, perhaps because another server has taken over. Asks Redis about the waiters
   * and holds of one key, or of all keys, and about holds that were released lately.
   */
  heard(key?: string): void {
    this.io.look(key)
    this.holding.doubtAll(key)
    this.holding.endings.sendAgain(each => key === undefined || each === key)
  }

  /** Returns whether this owner has a hold of the lock that has not ended, and is not being released. */
  holds(key: string, owner: string): boolean {
    for (const hold of this.#table.states.get(key)?.holds ?? []) {
      if (hold.claim.owner === owner && this.holding.lasts(hold) && !this.#replicas.asked.has(hold)) return true
    }
    return false
  }

  /** Rejects every waiter with LockClosedError, except those that re-enter a hold of this client. */
  refuse(): void {
    const closed = ({ claim, wish }: Waiter) =>
      this.#host.closedTo(this.keys, claim.key, wish.mayReenter ? claim.owner : undefined)
    this.io.refuse(closed)
    for (const call of [...this.#replicas.asked.values()]) if (closed(call.waiter)) call.end(new LockClosedError())
  }

  /** Stops renewing and watching the holds. */
  close(): void {
    this.#lossNews?.close()
    this.holding.close()
    this.#schedule.close()
  }

  #wish(key: string, owner: string | undefined, call: CallTerms, once: boolean): Wish {
    const mayReenter = owner !== undefined && this.kind.reentrant
    const id = this.#host.backend.ids.next()
    // A kind without a queue has no fair waiters: all its waiters wait in the line of the unfair ones.
    const fairly = this.kind.tend !== undefined
    const { label, lease, headStart, wants, minHold, maxWaiters } = call
    return {
      claim: { key, id, owner: owner ?? id, label, lease, headStart, wants, minHold, maxWaiters },
      mode: once ? 'once' : call.fair && fairly ? 'queue' : 'line',
      fairAfter: fairly ? call.fairAfter : undefined,
      timeout: call.timeout,
      rejectLate: call.rejectLate,
      mayReenter,
      after: mayReenter ? this.holding.record(key, owner) : undefined,
      context: this.#host.observer.listening ? new AsyncResource('LOCK') : undefined,
    }
  }

  #take(waiter: Waiter, grant: Granted | Hold, { renew, maxHold }: CallTerms, now: number): Lease {
    const { claim, since, handoff } = waiter
    const { stats, observer } = this.#host
    const hold = grant instanceof Hold ? grant : this.holding.take({ claim, since, renew, maxHold }, grant, now)
    this.#lossNews?.add(hold)
    const lease = new Lease(hold, this.holding)
    hold.lease = lease
    stats.acquired(hold.via, hold.waited)
    if (handoff !== undefined) stats.handedOff(handoff)
    within(waiter.wish.context, () => observer.tell('acquired', hold, waiter))
    return lease
  }
}

/** Runs `tell` in the async context that was captured; replies of Redis arrive in another one. */
function within(context: AsyncResource | undefined, tell: () => void): void {
  if (context) context.runInAsyncScope(tell)
  else tell()
}

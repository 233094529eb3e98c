/**
 * One kind of lock in one client: checks the arguments of a call, turns its grant into a lease, and passes on what
 * arrives from Redis.
 *
 *      LockClient ──▶ KindClient ─▶ LockCall ─┬─▶ Requests ─▶ Key ─▶ Requests ─┬─▶ Kind ─▶ Redis      waiting
 *                                             └─▶ Holds ───────────────────────┘                      keeping
 */
import { AsyncResource } from 'node:async_hooks'
import type { Backend } from './backend.ts'
import { type CallClient, LockCall, type TellRefused } from './call.ts'
import { type Clock, toMicros } from './clock.ts'
import {
  about,
  type Details,
  type HolderInfo,
  LockArgumentError,
  LockClosedError,
  LockTimeoutError,
  named,
  outageOf,
  outOfReach,
} from './errors.ts'
import { Hold, type Loss } from './key/hold.ts'
import { Holds } from './key/holds.ts'
import { Lease } from './key/lease.ts'
import { Requests } from './key/requests.ts'
import { Schedule } from './key/schedule.ts'
import { type Named, Table } from './key/table.ts'
import type { Waiter } from './key/waiter.ts'
import { Withdrawals } from './key/withdrawals.ts'
import type { Granted, Inspection, Kind } from './kind.ts'
import type { Stats } from './observe/stats.ts'
import type { LockOptions, SemaphoreOptions } from './options.ts'
import type { Keys } from './redis/keys.ts'
import type { Reentry } from './reentry.ts'
import { Confirmations } from './replicated.ts'
import { type CallTerms, callTermsOf, checkLongest, checkText, type Settings } from './settings.ts'

/** The events in a client, each with its arguments. `held`: how many ms the hold lasted. */
export interface EventArguments {
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
  tell<E extends keyof EventArguments>(event: E, ...about: EventArguments[E]): void
}

/** Wraps each call that takes a lock, and each function that runs under a lock. */
export interface Spectator {
  call<T extends Lease | null>(
    on: Pick<KindClient, 'name' | 'shared'>,
    operation: 'lock' | 'tryLock',
    key: string,
    options: LockOptions | undefined,
    make: () => Promise<T>,
  ): Promise<T>
  under<T>(lease: Lease, fn: () => T): () => T
}

/** What all kinds of lock share in one client. */
export interface ClientContext {
  readonly backend: Backend
  readonly clock: Clock
  readonly settings: Settings
  readonly stats: Stats
  readonly observer: Observer
  readonly reentry: Reentry
  readonly named: Named
  /** Observes every call, for tracing. */
  spectator?: Spectator | undefined
  /** Reports an error that no promise reports. */
  failed(error: unknown): void
  /**
   * Returns whether `close` has been called, and calls of this owner for this key do not re-enter a hold that this
   * client still has. `owner`: undefined if the call cannot re-enter.
   */
  closedTo(keys: Keys, key: string, owner: string | undefined): boolean
  /** Whether `close` has been called. */
  readonly closing: boolean
  /** A hold has ended, in whatever way, after `close` was called. */
  onEnded(): void
}

export class KindClient<State = unknown> implements CallClient {
  /** The word for this kind of lock in the names of Redis keys; '' for the mutex. */
  readonly name: string
  readonly keys: Keys
  readonly kind: Kind<State>
  /** The same object for all locks of one client. Another client has another object. */
  readonly context: ClientContext
  readonly requests: Requests
  readonly holding: Holds
  /** Undefined without the option `replicas`. */
  readonly confirmations: Confirmations | undefined
  readonly withdrawals: Withdrawals
  readonly #schedule: Schedule
  readonly #table: Table
  /** The defaults of the client, for a call that passes no options. */
  readonly #usual: CallTerms

  constructor(context: ClientContext, name: string, kind: Kind<State>, keys: Keys) {
    const { backend, clock, settings, stats, observer, failed } = context
    this.context = context
    this.name = name
    this.kind = kind
    this.keys = keys
    this.#usual = callTermsOf({}, settings)
    const channels = backend.channels(keys)
    const patience = { waiterTtl: settings.waiterTtl, outage: settings.outageTimeout }
    this.#schedule = new Schedule(clock)
    this.#table = new Table(context.named, this.#schedule)
    const background = kind.traits.background ?? { kind, clock }
    const withdrawals = new Withdrawals(background.kind, background.clock, settings.waiterTtl, {
      onReleased: (key, released, now) => this.holding.follow(key, released, now),
      onFreed: key => this.#table.keys.get(key)?.wake(clock.now()),
      failed,
    })
    this.withdrawals = withdrawals
    this.requests = new Requests(kind, channels, this.#schedule, patience, this.#table, withdrawals, {
      onWaiting: waiter => {
        // Replies of Redis arrive in another async context than that of the call.
        if (waiter.call.context) waiter.call.context.runInAsyncScope(() => observer.tell('waiting', waiter, this))
        else observer.tell('waiting', waiter, this)
      },
      trouble: () => backend.trouble(),
    })
    const keeping = kind.traits.background ? new Schedule(kind.traits.background.clock) : this.#schedule
    const asked = (hold: Hold) => this.confirmations?.asksAbout(hold) === true
    this.holding = new Holds(
      kind,
      keeping,
      this.#table,
      withdrawals,
      {
        onRenewed: hold => {
          if (asked(hold)) return
          stats.renewed += 1
          observer.tell('renewed', hold)
        },
        onReleased: (hold, held, resource) => {
          stats.ended('released', held)
          if (resource) resource.runInAsyncScope(() => observer.tell('released', hold, held))
          else observer.tell('released', hold, held)
        },
        onLost: (hold, loss, held) => {
          if (asked(hold)) return
          stats.ended('lost', held)
          observer.tell('lost', hold, loss)
        },
        onEnded: () => context.closing && context.onEnded(),
        context: () => (observer.listening ? new AsyncResource('RELEASE') : undefined),
        outage: () => {
          const { outage, awayFor } = this.requests
          return outage && outOfReach(outage, outageOf(awayFor))
        },
        failed,
      },
      backend.inboxPerLock ? channels : undefined,
    )
    if (kind.traits.replicated)
      this.confirmations = new Confirmations(this.requests, this.holding, clock, patience.outage)
  }

  /** Whether several owners may hold the lock at a time. */
  get shared(): boolean {
    return this.kind.traits.shared
  }

  /** How many calls wait, in lines and queues, or for replicas. */
  get waiting(): number {
    const asked = this.confirmations?.calls.filter(({ mode }) => mode !== 'once') ?? []
    return this.#table.waiting + asked.length
  }

  /** How many holds this client has that their callers have got. */
  get held(): number {
    return this.#table.holds - (this.confirmations?.held ?? 0)
  }

  // Calls.

  /**
   * Resolves to the lease. If another owner has the lock and the call is not `blocking`, resolves to null. `permits` is
   * how many permits the semaphore has. `told` is called with the holder before a call resolves to null. `spectator`
   * observes the call. This is not an async function, because thousands of calls may wait, and each would keep an async
   * frame in memory.
   */
  acquire(
    key: string,
    options: SemaphoreOptions | undefined,
    blocking: boolean,
    permits?: number,
    told?: TellRefused,
    spectator: Spectator | null | undefined = this.context.spectator,
  ): Promise<Lease | null> {
    if (spectator) {
      // This is a `bind` and not a closure. For a closure, V8 would copy the arguments to the heap in every call, even
      // if there is no spectator.
      const make = this.acquire.bind(this, key, options, blocking, permits, told, null)
      return spectator.call(this, blocking ? 'lock' : 'tryLock', key, options, make)
    }
    try {
      checkText('key', key)
      const { reentry } = this.context
      const usual = options === undefined && permits === undefined
      const terms = usual ? this.#usual : this.termsOf(options === undefined ? {} : options, permits)
      const once = blocking ? terms.timeout === 0 : !terms.timeout
      return this.begin(key, terms.owner ?? reentry.ownerOf(this.name, key), terms, once, blocking, told)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Checks the options of a call, and completes them with the client's defaults. */
  termsOf(options: SemaphoreOptions, permits?: number): CallTerms {
    const terms = callTermsOf(options, this.context.settings, permits)
    const { lacks = [], longestLease } = this.kind.traits
    for (const name of lacks) {
      const value = options[name]
      if (value === undefined) continue
      const why = `no option \`${name}\`, because each server of a quorum has its own queue`
      throw new LockArgumentError(name, value, why)
    }
    checkLongest('lease', terms.lease, longestLease)
    return terms
  }

  /** Does what `acquire` does, with arguments that are known to be right. With `once`, makes a single attempt. */
  begin(
    key: string,
    owner: string | undefined,
    terms: CallTerms,
    once: boolean,
    blocking: boolean,
    told?: TellRefused,
  ): Promise<Lease | null> {
    const { context } = this
    if (context.closing && context.closedTo(this.keys, key, this.kind.traits.reentrant ? owner : undefined)) {
      return Promise.reject(this.failed(new LockClosedError(), key))
    }
    if (terms.signal?.aborted) return Promise.reject(this.failed(terms.signal.reason, key))
    return new LockCall(this, key, owner, terms, once, blocking, told).start()
  }

  take(call: LockCall, grant: Granted | Hold, now: number, handoff: number | undefined): Lease {
    const { waiter, terms } = call
    const { claim, since, key } = waiter
    const { renew, maxHold } = terms
    const { stats, observer } = this.context
    const hold = grant instanceof Hold ? grant : this.holding.take({ claim, since, renew, maxHold }, key, grant, now)
    const lease = new Lease(hold)
    hold.lease = lease
    stats.acquired(hold.via, hold.waited)
    if (handoff !== undefined) stats.handedOff(handoff)
    if (call.context) call.context.runInAsyncScope(() => observer.tell('acquired', hold, waiter))
    else observer.tell('acquired', hold, waiter)
    return lease
  }

  failed(error: unknown, key: string): unknown {
    this.context.stats.failed += 1
    return named(key, error)
  }

  refused({ waiter, blocking, mode, told }: LockCall): Error | null {
    const unanswered = this.requests.unanswered(waiter)
    if (unanswered && !blocking) return this.failed(unanswered, waiter.claim.key) as Error
    const { stats, clock } = this.context
    stats[mode === 'once' ? 'refused' : 'timedOut'] += 1
    const holder = this.holder(waiter)
    told?.(holder)
    if (!blocking) return null
    const waited = toMicros(clock.now() - waiter.since)
    const position = waiter.refusal?.position || undefined
    const cause = this.requests.outage ?? unanswered
    return new LockTimeoutError(waiter.claim.key, waited, holder, position, cause, this.#details(waiter))
  }

  /** Runs `fn` in an async context in which calls on the lease's key re-enter. */
  within<T>(lease: Lease, fn: () => T): T {
    const { reentry, spectator } = this.context
    return reentry.within(this.name, lease, spectator ? spectator.under(lease, fn) : fn)
  }

  /**
   * Releases a lease at the end of the work that needed it. A failed release must not hide the outcome of that work. So
   * if the release fails, an `error` event reports the failure, and the promise resolves to false.
   */
  releaseQuietly(lease: Lease): Promise<boolean> {
    return this.holding.quietly(lease.key, lease.release())
  }

  async inspect(key: string): Promise<State> {
    return about(key, this.inspection(key).inspect(key))
  }

  /** Checks the key and returns the inspection of this kind of lock. */
  inspection(key: string): Inspection<State> {
    checkText('key', key)
    if (this.context.closing) throw new LockClosedError(key)
    return this.kind.inspection
  }

  /**
   * Returns the holder for which the waiter waits, and how long it has held the lock. Undefined: the holder is not
   * known.
   */
  holder({ claim, refusal, since }: Waiter): HolderInfo | undefined {
    const holder = this.holding.holder(claim.key, refusal?.sent ?? since) ?? refusal?.holder
    return holder && { label: holder.label, heldFor: toMicros(Math.max(0, this.context.clock.now() - holder.since)) }
  }

  /** What the message about a wait that took too long says about its lock. */
  #details(waiter: Waiter): Details {
    const { kind } = this
    const { claim, refusal } = waiter
    return {
      noun: kind.traits.noun,
      heldBy: refusal?.holder && kind.traits.heldBy?.(refusal.holder, claim),
      away: this.requests.awayFor,
      expected: waiter.expected(this.context.clock.now()),
    }
  }

  // What arrives from Redis.

  /** Another client announces that the lock is free. The head of the line tries. */
  onUnlocked(key: string): void {
    this.#table.keys.get(key)?.onUnlocked(this.context.clock.now())
  }

  /** The owner with this name holds the lock, so that the owner's other waiters can re-enter. */
  onEntered(key: string, owner: string): void {
    this.#table.keys.get(key)?.onEntered(owner, this.context.clock.now())
  }

  /**
   * Messages may have been lost, perhaps because another server has taken over. Asks Redis about the waiters and holds of
   * one key, or of all keys, and about holds that were released lately.
   */
  onMessagesResumed(key?: string): void {
    this.requests.look(key)
    this.holding.doubtAll(key)
    this.withdrawals.sendAgain(each => key === undefined || each === key)
  }

  // The end of the client.

  /** Returns whether this owner has a hold of the lock that has not ended, and is not being released. */
  holds(key: string, owner: string): boolean {
    for (const hold of this.#table.keys.get(key)?.holds.all ?? []) {
      if (hold.claim.owner === owner && this.holding.lasts(hold) && !this.confirmations?.asksAbout(hold)) return true
    }
    return false
  }

  /** Rejects every waiter with LockClosedError, except those that re-enter a hold of this client. */
  refuse(): void {
    const { closedTo } = this.context
    const closed = ({ claim, call }: Waiter) =>
      closedTo(this.keys, claim.key, call.mayReenter ? claim.owner : undefined)
    this.requests.refuse(closed)
    for (const call of this.confirmations?.calls ?? []) {
      if (closed(call.waiter)) this.confirmations?.end(call, new LockClosedError())
    }
  }

  /** Refuses every waiter and ends every hold. Resolves when Redis has answered. */
  async end(): Promise<void> {
    this.requests.close()
    await this.holding.releaseAll()
    await this.withdrawals.close()
  }

  /** Stops renewing and watching the holds. */
  close(): void {
    this.holding.close()
    this.#schedule.close()
  }
}

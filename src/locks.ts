/**
 * The locks of one kind in one client: takes a request from its call to its lease.
 *
 *      LockClient ──▶ Locks ─┬─▶ Acquirer ─┬─▶ Kind
 *                            └─▶ Holds ────┘
 */
import type { Clock } from './clock.ts'
import { type HolderInfo, LockClosedError } from './errors.ts'
import type { Granted, Kind, Via } from './kind.ts'
import { Holds } from './lease/holds.ts'
import { Lease } from './lease/lease.ts'
import { LossNews } from './lease/loss-news.ts'
import type { Hold } from './local/hold.ts'
import { LocalLocks } from './local/local-locks.ts'
import type { Loss } from './local/states.ts'
import type { Waiter, Wish } from './local/waiter.ts'
import type { Stats } from './observe/stats.ts'
import type { CallTerms, Settings } from './options.ts'
import type { Keys } from './redis/keys.ts'
import { Acquirer } from './wait/acquire.ts'
import { limit } from './wait/patience.ts'
import { noTurns, Turns } from './wait/turns.ts'
import type { Ways } from './ways.ts'

/** What happens in a client, and to whom. `held`: for so many ms. */
export interface Happenings {
  /** The waiter has been refused for the first time. */
  waiting: [waiter: Waiter, locks: Locks]
  acquired: [hold: Hold, waiter: Waiter]
  renewed: [hold: Hold]
  /** It has ended by its release. */
  released: [hold: Hold, held: number]
  /** It has ended without. */
  lost: [hold: Hold, loss: Loss]
  /** A connection is gone; all are there again. */
  disconnected: [error: Error]
  reconnected: []
  /** What no promise reports. */
  error: [error: unknown]
}

/** Told of everything in the moment when it happens. */
export interface Observer {
  tell<H extends keyof Happenings>(what: H, ...about: Happenings[H]): void
}

/** What the locks of all kinds of a client have in common. */
export interface Host {
  readonly ways: Ways
  readonly clock: Clock
  readonly settings: Settings
  readonly stats: Stats
  readonly observer: Observer
  /** Something failed that no promise reports. */
  failed(error: unknown): void
  /** Whether `close` has been called. */
  closed(): boolean
  /** One kind holds nothing any more. */
  idle(): void
}

/** What becomes of a call that ends without a lease. */
export interface Without<T> {
  /** Out of time, or refused its single attempt. An error: the call rejects with it. */
  refused(waiter: Waiter): T | Error
  /** What the call rejects with, for an error that is not named yet. */
  failed(error: unknown, key: string): unknown
}

export class Locks<State = unknown> {
  readonly keys: Keys
  readonly kind: Kind<State>
  /** Its waiters and holds. */
  readonly local: LocalLocks
  readonly acquirer: Acquirer
  readonly holding: Holds
  readonly #host: Host
  readonly #lossNews: LossNews | undefined

  constructor(host: Host, kind: Kind<State>, keys: Keys) {
    const { ways, clock, settings, stats, observer, failed } = host
    this.#host = host
    this.kind = kind
    this.keys = keys
    const channels = ways.channels(keys)
    const patience = { waiterTtl: settings.waiterTtl, outage: settings.outageTimeout }
    const awaited = (key: string) => (this.local.get(key)?.waiting ?? 0) > 0
    const turns = kind.inTurns ? new Turns(clock, key => channels.hears(key, 'unlock'), awaited) : noTurns
    this.local = new LocalLocks(turns, settings.outageTimeout, kind.shared)
    this.acquirer = new Acquirer(kind, channels, clock, patience, this.local, {
      waiting: waiter => observer.tell('waiting', waiter, this),
      doubt: (id, token) => this.holding.doubt(id, token),
      trouble: () => ways.trouble,
      failed,
    })
    this.holding = new Holds(kind, clock, this.local, {
      renewed: hold => {
        stats.renewed += 1
        observer.tell('renewed', hold)
      },
      released: (hold, held) => {
        stats.ended('released', held)
        observer.tell('released', hold, held)
      },
      lost: (hold, loss, held) => {
        stats.ended('lost', held)
        observer.tell('lost', hold, loss)
      },
      failed,
      idle: host.idle,
    })
    if (ways.inboxPerLock) this.#lossNews = new LossNews(clock, channels, id => this.holding.doubt(id))
  }

  /**
   * The lease, or what `without` makes of the end of a wait that goes without. `owner`: undefined, if the call is its own. `once`: a
   * single attempt.
   *
   * The promise is the caller's own, so that nothing stands between the grant and the caller. Thousands of calls may wait, so each
   * keeps no other promise, and what limits its patience only if something does.
   */
  acquire<T>(
    key: string,
    owner: string | undefined,
    call: CallTerms,
    once: boolean,
    without: Without<T>,
  ): Promise<Lease | T> {
    if (this.#host.closed()) return Promise.reject(without.failed(new LockClosedError(), key))
    const { signal } = call
    if (signal?.aborted) return Promise.reject(without.failed(signal.reason, key))
    const id = this.#host.ways.ids.next()
    // Without a queue there is nothing but the line.
    const { queue } = this.kind
    const { label, lease, headStart, wants } = call
    const mayReenter = owner !== undefined && this.kind.reentrant
    const wish: Wish = {
      claim: { key, id, owner: owner ?? id, label, lease, headStart, wants },
      mode: once ? 'once' : call.fair && queue ? 'queue' : 'line',
      fairAfter: queue && call.fairAfter,
      timeout: call.timeout,
      mayReenter,
      after: mayReenter ? this.holding.record(key, owner) : undefined,
    }
    return new Promise<Lease | T>((resolve, reject) => {
      let unlimited: (() => void) | undefined
      const waiter = this.acquirer.start(wish, (end, waiting) => {
        unlimited?.()
        const lease = end && 'token' in end ? this.#take(waiting, end, call) : undefined
        // It may be a listener of the grant that has aborted.
        if (signal?.aborted) {
          if (lease) this.releaseQuietly(lease)
          return reject(without.failed(signal.reason, key))
        }
        const outcome = lease ?? (end ? without.failed(end, key) : without.refused(waiting))
        if (outcome instanceof Error) reject(outcome)
        else resolve(outcome as Lease | T)
      })
      const timeout = once ? undefined : call.timeout
      if (waiter.waits) unlimited = limit(signal, timeout, this.#host.clock, () => this.acquirer.quit(waiter))
    })
  }

  /** Who keeps the waiter waiting, by the newest that this client knows, and for how long by now. */
  holder({ claim, refusal, since }: Waiter): HolderInfo | undefined {
    const holder = this.holding.holder(claim.key, refusal?.sent ?? since) ?? refusal?.holder
    return holder && { label: holder.label, heldFor: Math.max(0, this.#host.clock.now() - holder.since) }
  }

  /** For releases whose failure must not hide something more important: it becomes an event, and resolves false. */
  releaseQuietly(lease: Lease): Promise<boolean> {
    return this.holding.quietly(lease.key, lease.release())
  }

  /**
   * A grant by message. False: nobody wants it, so it has to go back. A message must not end a live hold; but if its token is
   * newer, Redis is asked.
   *
   * An acquire whose answer was lost is sent again. Where the first sending of it reaches Redis after the hold was released, the
   * lock is granted anew to that hold, whose client may still wait for the answer to its release, and will not release again.
   */
  granted(id: string, token: number, via: Via): boolean {
    if (this.acquirer.grantedByMessage(id, token, via)) return true
    const hold = this.local.hold(id)
    if (!hold || (hold.state.is === 'releasing' && token > hold.token)) return false
    this.holding.doubt(id, token)
    return true
  }

  /** Messages may have been missed, about one key or about all. */
  heard(key?: string): void {
    this.acquirer.lookAgain(key)
    this.holding.doubtAll(key)
  }

  /** Nothing is renewed or noticed any more. */
  close(): void {
    this.#lossNews?.close()
    this.holding.close()
  }

  #take(waiter: Waiter, grant: Granted, { renew, maxHold }: CallTerms): Lease {
    const { claim, since, handoff, alone } = waiter
    const { stats, observer } = this.#host
    const hold = this.holding.take({ claim, since, renew, maxHold, alone }, grant)
    this.#lossNews?.add(hold)
    const lease = new Lease(hold, this.holding)
    stats.acquired(hold.via, hold.waited)
    if (handoff !== undefined) stats.handedOff(handoff)
    observer.tell('acquired', hold, waiter)
    return lease
  }
}

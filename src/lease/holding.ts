/**
 * Everything that a client holds: makes a lease of each grant, and ends it.
 *
 *      grant ──▶ Lease ─┬─ Renewal   prolongs it, and notices that it is lost
 *                       └─ release ─▶ Passing: to a waiter of this client, without asking Redis
 *                                  └▶ Redis: to the next fair waiter there, or open
 *
 * The waiters are on the other side of `Waiting`: they are told what becomes of the locks that they wait for.
 */
import type { Clock, Timer } from '../clock.ts'
import { about, LockClosedError, LockConnectionError, named } from '../errors.ts'
import type { Claim, Granted, Hold, Holder, Kind, Refused } from '../kind.ts'
import { inside, type Keeper, Lease, type Loss } from './lease.ts'
import { type Heirs, Passing } from './passing.ts'
import { Renewal } from './renewal.ts'
import { type Inherited, Tenure } from './tenure.ts'

/** A hold that ran out here is ended in Redis this many ms later, and 0.1 % of its lease. */
const AFTER_LAPSE = 30

const yes = Promise.resolve(true)

/** Resolves when all that runs now without waiting for anything has run. */
const endOfTurn = () => new Promise<void>(resolve => process.nextTick(resolve))

/** The waiters of this client. */
export interface Waiting<W> extends Heirs<W> {
  /** A lease of this key is being released. */
  releasing(key: string): void
  /** It has been released in Redis, and so many clients were told that the lock is free, this one included if it listens. */
  released(key: string, heard: number): void
  /** It may be free. */
  unlocked(key: string): void
  /** A release has made this waiter the holder. False: nobody waits by that id any more. */
  grantedByReply(id: string, grant: Granted): boolean
}

export interface HoldListener {
  renewed(lease: Lease): void
  /** It has ended by its release, after so many ms. */
  released(lease: Lease, held: number): void
  /** It has ended without, after so many ms. */
  lost(lease: Lease, error: Loss, held: number): void
  /** Something failed that no promise reports. */
  failed(error: unknown): void
  /** Nothing is held any more. */
  idle(): void
}

/** What a grant is for. */
export interface Asked {
  readonly claim: Claim
  /** When the call was made, monotonic ms. */
  readonly since: number
  /** Whether the lease is renewed automatically, and for how many ms. */
  readonly renew: boolean
  readonly maxHold: number
  /** Whether nobody outside this client is known to wait. */
  readonly alone: boolean
}

export class Holding<W> {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #waiting: Waiting<W>
  readonly #listener: HoldListener
  readonly #renewal: Renewal
  readonly #passing: Passing<W>
  readonly #keeper: Keeper
  /** Holds that ran out and are still to be ended in Redis. */
  readonly #ending = new Map<Timer, Hold>()
  /** Leases that were lost because the client is closed, and are still to be ended in Redis. */
  readonly #forsaken: Lease[] = []
  /** What is being ended behind. */
  readonly #behind = new Set<Promise<void>>()

  constructor(kind: Kind, clock: Clock, waiting: Waiting<W>, listener: HoldListener) {
    this.#kind = kind
    this.#clock = clock
    this.#waiting = waiting
    this.#listener = listener
    this.#keeper = {
      clock,
      release: lease => this.#release(lease),
      renew: (lease, ms) => about(lease.key, this.#renewal.renew(lease, ms)),
    }
    this.#renewal = new Renewal(kind, clock, {
      renewed: lease => listener.renewed(lease),
      lost: (lease, error) => {
        listener.lost(lease, error, this.#heldFor(lease))
        this.#endTenure(lease)
        waiting.unlocked(lease.key)
      },
      remains: lease => this.#endLater(lease),
      idle: () => listener.idle(),
    })
    this.#passing = new Passing(kind, clock, this.#renewal, waiting, {
      end: ({ hold, last }) => this.#endBehind(hold, last),
      failed: error => listener.failed(error),
    })
  }

  /** How many leases are held. */
  get size(): number {
    return this.#renewal.size
  }

  /** Whether there is a live lease under the hold of this id. */
  has(id: string): boolean {
    return this.#renewal.find(id) !== undefined
  }

  /** The lease of a grant. */
  take({ claim, since: called, renew, maxHold, alone }: Asked, grant: Granted | Inherited): Lease {
    const since = this.#clock.now()
    const { key, id, owner, label } = claim
    let tenure = 'tenure' in grant ? grant.tenure : undefined
    const hold = tenure?.hold ?? { key, id }
    // An owner with a name may hold the lock elsewhere, too.
    if (grant.block && owner === id) tenure = new Tenure(hold, grant, since, alone)
    const renewUntil = renew ? since + maxHold : since
    const terms = { id, hold, tenure, owner, label, lease: claim.lease, renewUntil, since, waited: since - called }
    const lease = new Lease(terms, grant, this.#keeper)
    this.#renewal.add(lease)
    return lease
  }

  /** Something said that the hold of this id may be gone: asks. With a token: that it was granted anew with that. */
  doubt(id: string, token = Number.POSITIVE_INFINITY): void {
    const lease = this.#renewal.find(id)
    if (lease && lease.fencingToken < token) this.#renewal.check([lease])
  }

  /** Something said that the grant with the hold of this id may have been taken away, and so all holds of it. */
  doubtGrant(id: string): void {
    const lease = this.#renewal.find(id)
    if (lease) this.doubtLease(lease)
  }

  /** The same of the grant that this lease is of. */
  doubtLease(lease: Lease): void {
    this.#renewal.checkGrant(lease)
  }

  /** A message that says so may have been missed, of any lease or of those of one key. */
  doubtAll(key?: string): void {
    this.#renewal.check(key === undefined ? this.#renewal.leases : this.#renewal.leasesOf(key))
  }

  /** As `Passing.record`. */
  record(key: string, owner: string): Promise<void> | undefined {
    return this.#passing.record(key, owner)
  }

  /** What a request would be told that is refused because a lease of this client holds the lock, and may hand it on. */
  ours(key: string): Refused | undefined {
    const lease = this.#renewal.ofKey(key)
    const now = this.#clock.now()
    const ttl = lease ? (inside.terms(lease).tenure?.left(now) ?? 0) : 0
    if (!lease || ttl <= 0) return undefined
    const { label, since } = inside.terms(lease)
    const holder = { label, since }
    return { granted: false, sent: now, ttl, position: 0, ticket: '0', holder, clock: 0 }
  }

  /** The lease of this client that holds the lock, if it was granted after `then`: who was known to hold until then does not. */
  holder(key: string, then: number): Holder | undefined {
    const lease = this.#renewal.ofKey(key)
    if (!lease?.held || lease.via === 'reentry') return undefined
    const { label, since } = inside.terms(lease)
    return since > then ? { label, since } : undefined
  }

  /** Releases a lease where a failure must not hide something more important: it is reported as an event. */
  async releaseQuietly(lease: Lease): Promise<void> {
    await lease.release().catch(error => this.#notReleased(lease.key, error))
  }

  /** The client is closed: everything that is held is lost, and told so. It is held on in Redis until `releaseAll`. */
  loseAll(): void {
    for (const lease of this.#renewal.leases) if (this.#renewal.forsake(lease)) this.#forsaken.push(lease)
  }

  /** Ends everything, what is held after `loseAll`; resolves when Redis has answered to all. */
  async releaseAll(): Promise<void> {
    this.loseAll()
    const releasing = this.#renewal.leases.map(lease => lease.release())
    for (const lease of this.#forsaken.splice(0)) {
      const { hold, tenure } = inside.terms(lease)
      this.#endBehind(hold, tenure?.last, error => this.#notReleased(lease.key, error))
    }
    for (const [timer, hold] of this.#ending) this.#endNow(timer, hold)
    await Promise.all(releasing)
    while (this.#behind.size > 0) await Promise.all(this.#behind)
  }

  /** Nothing is renewed or noticed any more. */
  close(): void {
    this.#renewal.close()
  }

  #release(lease: Lease): Promise<boolean> {
    this.#waiting.releasing(lease.key)
    return this.#passing.pass(lease, () => this.#released(lease)) ? yes : this.#releaseInRedis(lease)
  }

  /** A run that may go on waits for the end of the turn: a caller that has just got its reply may be about to ask. */
  #releaseInRedis(lease: Lease): Promise<boolean> {
    const { hold, tenure } = inside.terms(lease)
    const ended = () => this.#released(lease)
    const release = () => {
      this.#endTenure(lease)
      return this.#endHold(hold, tenure?.last, ended)
    }
    const passOrRelease = async () => {
      await endOfTurn()
      return this.#passing.pass(lease, ended) || release()
    }
    return about(lease.key, this.#renewal.end(lease, this.#passing.wantsHeir(lease) ? passOrRelease : release))
  }

  #notReleased(key: string, error: unknown): void {
    const closed = error instanceof LockClosedError
    this.#listener.failed(closed ? new LockConnectionError('it could not be released', error, key) : named(key, error))
  }

  #released(lease: Lease): void {
    this.#listener.released(lease, this.#heldFor(lease))
  }

  #heldFor(lease: Lease): number {
    return this.#clock.now() - inside.terms(lease).since
  }

  #endTenure(lease: Lease): void {
    const { tenure } = inside.terms(lease)
    if (tenure) this.#passing.end(tenure)
  }

  /**
   * A lease that ran out here lives a moment longer in Redis. If its owner re-enters in that moment, the hold, which
   * nobody will release any more, would keep the lock even after the other's release: so it is ended behind. A little
   * later, so that the lock is seen to lapse first, which is what happened to it.
   */
  #endLater(lease: Lease): void {
    const { hold, lease: length } = inside.terms(lease)
    const timer = this.#clock.after(AFTER_LAPSE + length / 1000, () => this.#endNow(timer, hold))
    this.#ending.set(timer, hold)
  }

  #endNow(timer: Timer, hold: Hold): void {
    timer.cancel()
    this.#ending.delete(timer)
    this.#endBehind(hold)
  }

  /** Ends a hold that nobody waits for but `close`. */
  #endBehind(hold: Hold, used?: number, failed = (error: unknown) => this.#listener.failed(error)): void {
    const ended = this.#endHold(hold, used)
      .catch(failed)
      .then(() => {
        this.#behind.delete(ended)
      })
    this.#behind.add(ended)
  }

  /** Ends the hold in Redis; whether it was live there, and then `told` is called. The lock may have gone to a waiter of this client. */
  #endHold(hold: Hold, used?: number, told?: () => void): Promise<boolean> {
    return this.#kind.release(hold, used).then(
      ({ ended, heard, successor }) => {
        if (successor && !this.#waiting.grantedByReply(successor.id, successor.grant)) {
          const { key } = hold
          this.#kind.giveBack({ key, id: successor.id }).catch(error => this.#listener.failed(error))
        }
        this.#waiting.released(hold.key, heard)
        if (ended) told?.()
        return ended
      },
      error => {
        this.#waiting.unlocked(hold.key)
        throw error
      },
    )
  }
}

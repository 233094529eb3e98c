/**
 * Everything that a client holds: makes a hold of each grant, and ends it.
 *
 *      grant ──▶ Hold ─┬─ Renewal   prolongs it, and notices that it is lost
 *                      └─ release ─▶ LocalHandOff: to a waiter of this client, without asking Redis
 *                                 └▶ Redis: to the next fair waiter there, or open
 *
 * The waiters are on the other side of `LocalWaiters`, which is told what becomes of the locks that they wait for.
 */
import type { Clock, Timer } from '../clock.ts'
import { about, LockClosedError, LockConnectionError, named } from '../errors.ts'
import type { Granted, Holder, HoldName, Kind, Refused } from '../kind.ts'
import { type Asked, Hold, type Loss } from './hold.ts'
import { type Heirs, LocalHandOff } from './local-hand-off.ts'
import { Renewal } from './renewal.ts'
import type { Inherited } from './run.ts'

/** A hold that ran out here is ended in Redis this many ms later, and 0.1 % of its lease. */
const AFTER_LAPSE = 30

const yes = Promise.resolve(true)

/** Resolves when all that runs now without waiting for anything has run. */
const endOfTurn = () => new Promise<void>(resolve => process.nextTick(resolve))

/** The waiters of this client. */
export interface LocalWaiters extends Heirs {
  /** A hold of this key is being released. */
  releasing(key: string): void
  /** It has been released in Redis, and so many clients were told that the lock is free, this one included if it listens. */
  released(key: string, heard: number): void
  /** It may be free. */
  unlocked(key: string): void
  /** A release has made this waiter the holder. False: nobody waits by that id any more. */
  grantedByReply(id: string, grant: Granted): boolean
}

export interface HoldListener {
  renewed(hold: Hold): void
  /** It has ended by its release, after so many ms. */
  released(hold: Hold, held: number): void
  /** It has ended without, after so many ms. */
  lost(hold: Hold, loss: Loss, held: number): void
  /** Something failed that no promise reports. */
  failed(error: unknown): void
  /** Nothing is held any more. */
  idle(): void
}

export class Holds {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #waiters: LocalWaiters
  readonly #listener: HoldListener
  readonly #renewal: Renewal
  readonly #handOff: LocalHandOff
  /** How many holds there have been. */
  #count = 0
  /** Holds that ran out and are still to be ended in Redis. */
  readonly #lapsed = new Map<Hold, Timer>()
  /** Holds that were lost because the client is closed, and are still to be ended in Redis. */
  readonly #forsaken: Hold[] = []
  /** What is being ended in the background. */
  readonly #ending = new Set<Promise<void>>()
  /** Set while `releaseAll` waits for the releases under way. */
  #allEnded: (() => void) | undefined

  constructor(kind: Kind, clock: Clock, waiters: LocalWaiters, listener: HoldListener) {
    this.#kind = kind
    this.#clock = clock
    this.#waiters = waiters
    this.#listener = listener
    this.#renewal = new Renewal(kind, clock, {
      renewed: hold => listener.renewed(hold),
      lost: (hold, loss) => {
        listener.lost(hold, loss, this.#heldFor(hold))
        this.#handOff.end(hold)
        waiters.unlocked(hold.key)
      },
      remains: hold => this.#endLater(hold),
      idle: () => {
        this.#allEnded?.()
        listener.idle()
      },
    })
    this.#handOff = new LocalHandOff(kind, clock, this.#renewal, waiters, {
      handedOn: hold => this.#released(hold),
      abandoned: ({ name, last }) => this.#endInBackground(name, last),
      failed: error => listener.failed(error),
    })
  }

  /** How many there are. */
  get size(): number {
    return this.#renewal.live.size
  }

  /** Whether there is a live one that Redis knows by this id. */
  has(id: string): boolean {
    return this.#renewal.live.find(id) !== undefined
  }

  /** The hold of a grant. */
  take(asked: Asked, grant: Granted | Inherited): Hold {
    const now = this.#clock.now()
    const run = this.#handOff.runOf(asked.claim, grant, now, asked.alone)
    const hold = new Hold(asked, grant, run, now, this.#count++)
    this.#renewal.add(hold)
    return hold
  }

  /** For how many ms the hold is surely ours; 0: it is not. */
  remaining(hold: Hold): number {
    return hold.remaining(this.#clock.now())
  }

  /** Prolongs the hold by `ms` from now. Rejects with LockLostError or LockConnectionError. */
  renew(hold: Hold, ms: number): Promise<void> {
    return about(hold.key, this.#renewal.renew(hold, ms))
  }

  /** Ends the hold; whether that ended a live one. Rejects with LockConnectionError. */
  release(hold: Hold): Promise<boolean> {
    this.#waiters.releasing(hold.key)
    if (this.#handOff.pass(hold)) return yes
    const release = this.#handOff.wantsHeir(hold) ? this.#passOrRelease : this.#releaseInRedis
    return about(hold.key, this.#renewal.end(hold, release))
  }

  /** A release whose failure must not hide something more important: it is reported as an event, and resolves false. */
  quietly(key: string, released: Promise<boolean>): Promise<boolean> {
    return released.catch(error => {
      this.#notReleased(key, error)
      return false
    })
  }

  /**
   * Something said that the grant with the hold of this id may have been taken away, and so all holds of it: asks. With a
   * token: that the lock was granted anew with that.
   */
  doubt(id: string, token = Number.POSITIVE_INFINITY): void {
    const hold = this.#renewal.live.find(id)
    if (hold && hold.token < token) this.#renewal.doubt(hold)
  }

  /** A message that says so may have been missed, of any hold or of those of one key. */
  doubtAll(key?: string): void {
    this.#renewal.doubtAll(key === undefined ? this.#renewal.live.all : this.#renewal.live.ofKey(key))
  }

  /** As `LocalHandOff.record`. */
  record(key: string, owner: string): Promise<void> | undefined {
    return this.#handOff.record(key, owner)
  }

  /** As `LocalHandOff.refusal`. */
  ours(key: string): Refused | undefined {
    return this.#handOff.refusal(key)
  }

  /** The hold of this client that has the lock, if it was granted after `then`: who was known to hold until then does not. */
  holder(key: string, then: number): Holder | undefined {
    const hold = this.#renewal.live.oldestOf(key)
    if (!hold || this.remaining(hold) === 0 || hold.via === 'reentry') return undefined
    return hold.since > then ? { label: hold.claim.label, since: hold.since } : undefined
  }

  /** The client is closed: everything that is held is lost, and told so. It is held on in Redis until `releaseAll`. */
  loseAll(): void {
    for (const hold of this.#renewal.live.all) if (this.#renewal.forsake(hold)) this.#forsaken.push(hold)
  }

  /** Called once. Ends everything, what is held after `loseAll`; resolves when Redis has answered to all. */
  async releaseAll(): Promise<void> {
    this.loseAll()
    for (const { name, run, key } of this.#forsaken.splice(0)) {
      this.#endInBackground(name, run?.last, error => this.#notReleased(key, error))
    }
    for (const hold of this.#lapsed.keys()) this.#endLapsed(hold)
    // What is left is being released. A listener of a release may have called, so this goes on after it.
    await new Promise<void>(resolve => {
      if (this.size > 0) this.#allEnded = resolve
      else resolve()
    })
    while (this.#ending.size > 0) await Promise.all(this.#ending)
  }

  /** Nothing is renewed or noticed any more. */
  close(): void {
    this.#renewal.close()
  }

  readonly #releaseInRedis = (hold: Hold): Promise<boolean> => {
    this.#handOff.end(hold)
    return this.#end(hold.name, hold.run?.last, hold)
  }

  /** A run that may go on waits for the end of the turn: a caller that has just got its reply may be about to ask. */
  readonly #passOrRelease = async (hold: Hold): Promise<boolean> => {
    await endOfTurn()
    return this.#handOff.pass(hold) || this.#releaseInRedis(hold)
  }

  #released(hold: Hold): void {
    this.#listener.released(hold, this.#heldFor(hold))
  }

  #notReleased(key: string, error: unknown): void {
    const closed = error instanceof LockClosedError
    this.#listener.failed(closed ? new LockConnectionError('it could not be released', error, key) : named(key, error))
  }

  #heldFor(hold: Hold): number {
    return this.#clock.now() - hold.since
  }

  /**
   * A hold that ran out here lives a moment longer in Redis. If its owner re-enters in that moment, the hold, which
   * nobody will release any more, would keep the lock even after the other's release: so it is ended in the background. A
   * little later, so that the lock is seen to lapse first, which is what happened to it.
   */
  #endLater(hold: Hold): void {
    const timer = this.#clock.after(AFTER_LAPSE + hold.length / 1000, () => this.#endLapsed(hold))
    this.#lapsed.set(hold, timer)
  }

  #endLapsed(hold: Hold): void {
    this.#lapsed.get(hold)?.cancel()
    this.#lapsed.delete(hold)
    this.#endInBackground(hold.name)
  }

  /** Ends a hold that nobody waits for but `close`. */
  #endInBackground(name: HoldName, used?: number, failed = (error: unknown) => this.#listener.failed(error)): void {
    const ended = this.#end(name, used)
      .catch(failed)
      .then(() => {
        this.#ending.delete(ended)
      })
    this.#ending.add(ended)
  }

  /**
   * Ends a hold in Redis; whether it was live there, and then `released` is reported. The lock may have gone to a waiter of
   * this client.
   */
  #end(name: HoldName, used: number | undefined, released?: Hold): Promise<boolean> {
    return this.#kind.release(name, used).then(
      ({ ended, heard, successor }) => {
        const { key } = name
        if (successor && !this.#waiters.grantedByReply(successor.id, successor.grant)) {
          this.#kind.giveBack({ key, id: successor.id }).catch(error => this.#listener.failed(error))
        }
        this.#waiters.released(key, heard)
        if (ended && released) this.#released(released)
        return ended
      },
      error => {
        this.#waiters.unlocked(name.key)
        throw error
      },
    )
  }
}

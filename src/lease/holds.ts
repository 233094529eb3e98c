/**
 * Everything that a client holds: makes a hold of each grant, and ends it.
 *
 *      grant ──▶ Hold ─┬─ Renewal   prolongs it, and notices that it is lost
 *                      └─ release ─▶ LocalLock.handOn: to a waiter of this client, without asking Redis
 *                                 └▶ Redis: to the next fair waiter there, or open
 *
 * A release that finds nobody waiting, of a hold that might go on, is sent when the turn of the event loop is over. Two
 * callers who take turns at a lock come back at the same time: the reply of one's release and the grant of the other
 * arrive together, and the caller that releases is often ahead of the one that asks by a few microtasks.
 */
import type { Clock, Timer } from '../clock.ts'
import { LockClosedError, LockConnectionError, named } from '../errors.ts'
import type { Granted, Holder, HoldName, Kind, Released } from '../kind.ts'
import { type Asked, Hold } from '../local/hold.ts'
import type { LocalLocks } from '../local/local-locks.ts'
import type { Inherited } from '../local/run.ts'
import type { Loss } from '../local/states.ts'
import { Records } from './records.ts'
import { Renewal } from './renewal.ts'

/** A hold that ran out here is ended in Redis this many ms later, and 0.1 % of its lease. */
const AFTER_LAPSE = 30

const yes = Promise.resolve(true)

/** Resolves when all that runs now without waiting for anything has run. */
const endOfTurn = () => new Promise<void>(resolve => process.nextTick(resolve))

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
  readonly #locks: LocalLocks
  readonly #listener: HoldListener
  readonly #renewal: Renewal
  readonly #records: Records
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

  constructor(kind: Kind, clock: Clock, locks: LocalLocks, listener: HoldListener) {
    this.#kind = kind
    this.#clock = clock
    this.#locks = locks
    this.#listener = listener
    this.#renewal = new Renewal(kind, clock, locks, {
      renewed: hold => listener.renewed(hold),
      lost: (hold, loss) => {
        listener.lost(hold, loss, this.#heldFor(hold))
        this.#endRun(hold)
        this.#wake(hold)
      },
      remains: hold => this.#endLater(hold),
      idle: () => {
        this.#allEnded?.()
        listener.idle()
      },
    })
    this.#records = new Records(kind, clock, locks, {
      doubt: hold => this.#renewal.doubt(hold),
      failed: error => listener.failed(error),
    })
    locks.holdEffects = {
      handedOn: hold => {
        this.#renewal.remove(hold)
        this.#released(hold)
      },
      recordLater: run => this.#records.later(run),
      forget: run => this.#records.forget(run),
      abandoned: ({ name, last }) => this.#endInBackground(name, last),
    }
  }

  /** The hold of a grant. */
  take(asked: Asked, grant: Granted | Inherited): Hold {
    const now = this.#clock.now()
    const run = this.#locks.of(asked.claim.key).tenancy.runOf(asked.claim, grant, now, asked.alone)
    const hold = new Hold(asked, grant, run, now, this.#count++)
    this.#renewal.add(hold, grant.around)
    return hold
  }

  /** For how many ms the hold is surely ours; 0: it is not. */
  remaining(hold: Hold): number {
    return hold.remaining(this.#clock.now())
  }

  /** Prolongs the hold by `ms` from now. Rejects with LockLostError or LockConnectionError. */
  renew(hold: Hold, ms: number): Promise<void> {
    return this.#renewal.renew(hold, ms)
  }

  /** Ends the hold; whether that ended a live one. Rejects with LockConnectionError. */
  release(hold: Hold): Promise<boolean> {
    // Where there is none, the hold has ended.
    const lock = this.#locks.get(hold.key)
    lock?.releasing()
    // Only a hold with a run goes on within this client.
    const handing = hold.run && lock
    if (handing?.handOn(hold)) return yes
    const release = handing?.wantsHeir(hold) ? this.#handOnOrRelease : this.#releaseInRedis
    return this.#renewal.end(hold, release, this.#wasLive, this.#wake)
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
    const hold = this.#locks.hold(id)
    if (hold && hold.token < token) this.#renewal.doubt(hold)
  }

  /** A message that says so may have been missed, of any hold or of those of one key. */
  doubtAll(key?: string): void {
    this.#renewal.doubtAll(key === undefined ? this.#locks.holds : (this.#locks.get(key)?.tenancy.holds ?? []))
  }

  /**
   * A caller is about to name this owner to Redis, which has to know by then who has the lock: when this resolves. Undefined: it
   * does.
   */
  record(key: string, owner: string): Promise<void> | undefined {
    const run = this.#locks.get(key)?.tenancy.naming(owner)
    const recording = run && this.#records.now(run)
    // Whoever waits for it may give up before.
    recording?.catch(() => {})
    return recording
  }

  /** The hold of this client that has the lock, if it was granted after `then`: who was known to hold until then does not. */
  holder(key: string, then: number): Holder | undefined {
    const hold = this.#locks.get(key)?.tenancy.oldest
    if (!hold || this.remaining(hold) === 0 || hold.via === 'reentry') return undefined
    return hold.since > then ? { label: hold.claim.label, since: hold.since } : undefined
  }

  /** The client is closed: everything that is held is lost, and told so. It is held on in Redis until `releaseAll`. */
  loseAll(): void {
    for (const hold of this.#locks.holds) if (this.#renewal.forsake(hold)) this.#forsaken.push(hold)
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
      if (this.#locks.holding > 0) this.#allEnded = resolve
      else resolve()
    })
    while (this.#ending.size > 0) await Promise.all(this.#ending)
  }

  /** Nothing is renewed or noticed any more. */
  close(): void {
    this.#renewal.close()
  }

  readonly #releaseInRedis = (hold: Hold): Promise<Released> => {
    this.#endRun(hold)
    return this.#kind.release(hold.name, hold.run?.last)
  }

  /** A run that may go on waits for the end of the turn: a caller that has just got its reply may be about to ask. */
  readonly #handOnOrRelease = async (hold: Hold): Promise<Released | 'handed on'> => {
    await endOfTurn()
    return this.#locks.get(hold.key)?.handOn(hold) ? 'handed on' : this.#releaseInRedis(hold)
  }

  /** Of a release that was answered. */
  readonly #wasLive = (answer: Released | 'handed on', hold: Hold): boolean => {
    if (answer === 'handed on') return true
    this.#follow(hold.key, answer)
    if (answer.ended) this.#released(hold)
    return answer.ended
  }

  /** The lock may be free: a release was not answered, or a hold was lost. */
  readonly #wake = ({ key }: Pick<HoldName, 'key'>): void => {
    this.#locks.get(key)?.line.wake()
  }

  #endRun({ run, key }: Hold): void {
    if (!run) return
    this.#locks.get(key)?.tenancy.endRun(run)
    run.end()
    this.#records.forget(run)
  }

  #released(hold: Hold): void {
    this.#listener.released(hold, this.#heldFor(hold))
  }

  #notReleased(key: string, error: unknown): void {
    const closed = error instanceof LockClosedError
    this.#listener.failed(
      closed
        ? new LockConnectionError('it could not be released, and ends with its lease', error, key)
        : named(key, error),
    )
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
    this.#endInBackground(hold.name, hold.run?.last)
  }

  /** Ends a hold that nobody waits for but `close`. */
  #endInBackground(name: HoldName, used?: number, failed = (error: unknown) => this.#listener.failed(error)): void {
    const ended = this.#kind
      .release(name, used)
      .then(
        released => this.#follow(name.key, released),
        error => {
          this.#wake(name)
          failed(error)
        },
      )
      .then(() => {
        this.#ending.delete(ended)
      })
    this.#ending.add(ended)
  }

  /** Who follows a hold that has ended in Redis: the lock may have gone to waiters of this client. */
  #follow(key: string, { heard, successors = [] }: Released): void {
    for (const { id, grant } of successors) {
      if (this.#locks.grantedByReply(id, grant)) continue
      this.#kind.giveBack({ key, id }).catch(error => this.#listener.failed(error))
    }
    this.#locks.released(key, heard)
  }
}

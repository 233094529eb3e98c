/**
 * Everything that a client holds. Makes a hold of each grant, and ends the hold.
 *
 *      grant ──▶ Hold ─┬─ Renewal   prolongs it, and notices that it is lost
 *                      └─ release ─▶ LocalLock.handOn: to a waiter of this client, without asking Redis
 *                                 └▶ Redis: to the next fair waiter there, or open
 *
 * If a hold could be handed on, but the lock has no waiter in this client, the release is sent only at the end of the
 * current turn of the event loop. The reason: suppose that callers A and B of this client take turns. When A releases,
 * the reply to A and the grant to B arrive together. B may release a few microtasks before A asks for the lock again.
 * Because the release waits until the end of the turn, A becomes a waiter in time, and B hands the lock on to A.
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

/**
 * If a hold's deadline passes in this client, the hold is released in Redis this many ms later, plus 0.1 % of its
 * lease.
 */
const AFTER_LAPSE = 30

const yes = Promise.resolve(true)

/** Resolves after all code that can run now has run, without waiting for I/O or a timer. */
const endOfTurn = () => new Promise<void>(resolve => process.nextTick(resolve))

export interface HoldListener {
  renewed(hold: Hold): void
  /** Called when a release has ended the hold, which lasted `held` ms. */
  released(hold: Hold, held: number): void
  /** Called when the hold has ended without a release. It lasted `held` ms. */
  lost(hold: Hold, loss: Loss, held: number): void
  /** Reports a failure that no caller's promise reports. */
  failed(error: unknown): void
  /** Called when this client no longer holds anything. */
  idle(): void
}

export class Holds {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #locks: LocalLocks
  readonly #listener: HoldListener
  readonly #renewal: Renewal
  readonly #records: Records
  /** How many holds this client has had so far. */
  #count = 0
  /**
   * Holds whose deadline has passed in this client, and which will soon be released in Redis. Each has a timer for
   * that.
   */
  readonly #lapsed = new Map<Hold, Timer>()
  /** Holds that `loseAll` has declared lost, and that `releaseAll` will release in Redis. */
  readonly #forsaken: Hold[] = []
  /** Releases that run in the background. */
  readonly #ending = new Set<Promise<void>>()
  /** Set while `releaseAll` waits for releases that callers have begun. */
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

  /** Makes the hold of a grant. */
  take(asked: Asked, grant: Granted | Inherited): Hold {
    const now = this.#clock.now()
    const run = this.#locks.of(asked.claim.key).tenancy.runOf(asked.claim, grant, now, asked.alone)
    const hold = new Hold(asked, grant, run, now, this.#count++)
    this.#renewal.add(hold, grant.around)
    return hold
  }

  /** Returns for how many ms this client certainly still has the hold; 0 if the hold may have ended. */
  remaining(hold: Hold): number {
    return hold.remaining(this.#clock.now())
  }

  /** Makes the hold last until `ms` from now. Rejects with LockLostError or LockConnectionError. */
  renew(hold: Hold, ms: number): Promise<void> {
    return this.#renewal.renew(hold, ms)
  }

  /** Releases the hold. Resolves to whether the hold was live until then. Rejects with LockConnectionError. */
  release(hold: Hold): Promise<boolean> {
    // The lock is undefined if the hold has ended, and this client has no waiter and no other hold of the lock.
    const lock = this.#locks.get(hold.key)
    lock?.releasing()
    // Only a hold that is part of a run can be handed on within this client.
    const handing = hold.run && lock
    if (handing?.handOn(hold)) return yes
    const release = handing?.wantsHeir(hold) ? this.#handOnOrRelease : this.#releaseInRedis
    return this.#renewal.end(hold, release, this.#wasLive, this.#wake)
  }

  /**
   * Resolves like `released`, but never rejects. If the release fails, an event reports the failure, and the result is
   * false. Used where a failed release must not hide a more important error.
   */
  quietly(key: string, released: Promise<boolean>): Promise<boolean> {
    return released.catch(error => {
      this.#notReleased(key, error)
      return false
    })
  }

  /**
   * Asks Redis whether the hold of this id, and all holds of the same grant, still exist. If the token of a newer grant
   * is known, it is passed as `token`. Then nothing is asked about a hold whose own token is at least that large.
   */
  doubt(id: string, token = Number.POSITIVE_INFINITY): void {
    const hold = this.#locks.hold(id)
    if (hold && hold.token < token) this.#renewal.doubt(hold)
  }

  /**
   * Asks Redis whether the holds of `key`, or all holds, still exist. Messages about lost holds may have been missed.
   */
  doubtAll(key?: string): void {
    this.#renewal.doubtAll(key === undefined ? this.#locks.holds : (this.#locks.get(key)?.tenancy.holds ?? []))
  }

  /**
   * Called before a caller sends Redis a request that names this owner, because Redis must first know the lock's
   * holder. Resolves when Redis knows the holder. Returns undefined if Redis knows the holder already.
   */
  record(key: string, owner: string): Promise<void> | undefined {
    const run = this.#locks.get(key)?.tenancy.naming(owner)
    const recording = run && this.#records.now(run)
    // If the caller gives up first, no other code handles a rejection of this promise.
    recording?.catch(() => {})
    return recording
  }

  /**
   * Returns the label and the start of this client's hold of the lock, if the hold was granted after `then`. In that
   * case, a holder that was known at `then` no longer holds the lock.
   */
  holder(key: string, then: number): Holder | undefined {
    const hold = this.#locks.get(key)?.tenancy.oldest
    if (!hold || this.remaining(hold) === 0 || hold.via === 'reentry') return undefined
    return hold.since > then ? { label: hold.claim.label, since: hold.since } : undefined
  }

  /** Loses all holds, because the client is closed. Their `signal`s abort. Redis keeps the holds until `releaseAll`. */
  loseAll(): void {
    for (const hold of this.#locks.holds) if (this.#renewal.forsake(hold)) this.#forsaken.push(hold)
  }

  /** Ends all holds, even those that `loseAll` gave up. Called once. Resolves when Redis has answered all releases. */
  async releaseAll(): Promise<void> {
    this.loseAll()
    for (const { name, run, key } of this.#forsaken.splice(0)) {
      this.#endInBackground(name, run?.last, error => this.#notReleased(key, error))
    }
    for (const hold of this.#lapsed.keys()) this.#endLapsed(hold)
    // The remaining holds are being released by their callers. Even if there are none, this function waits before it
    // goes on: a listener of a release may have called it, and the listener has to return first.
    await new Promise<void>(resolve => {
      if (this.#locks.holding > 0) this.#allEnded = resolve
      else resolve()
    })
    while (this.#ending.size > 0) await Promise.all(this.#ending)
  }

  /** Stops all renewals. From now on, the client does not notice when a hold ends. */
  close(): void {
    this.#renewal.close()
  }

  readonly #releaseInRedis = (hold: Hold): Promise<Released> => {
    this.#endRun(hold)
    return this.#kind.release(hold.name, hold.run?.last)
  }

  /**
   * Waits for the end of the event loop's turn. Then hands the lock on, or releases it in Redis if no waiter of this
   * client can take it. The wait is for a caller that has just received a reply and may be about to ask for the lock
   * again.
   */
  readonly #handOnOrRelease = async (hold: Hold): Promise<Released | 'handed on'> => {
    await endOfTurn()
    return this.#locks.get(hold.key)?.handOn(hold) ? 'handed on' : this.#releaseInRedis(hold)
  }

  /** Processes Redis's answer to a release. Returns whether the hold was live. */
  readonly #wasLive = (answer: Released | 'handed on', hold: Hold): boolean => {
    if (answer === 'handed on') return true
    this.#follow(hold.key, answer)
    if (answer.ended) this.#released(hold)
    return answer.ended
  }

  /** Lets the head of the line try. The lock may be free, because a release was not answered or a hold was lost. */
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
        ? new LockConnectionError('the release failed, so the lock becomes free only when its lease ends', error, key)
        : named(key, error),
    )
  }

  #heldFor(hold: Hold): number {
    return this.#clock.now() - hold.since
  }

  /**
   * Plans the release of a hold whose deadline has passed in this client, because Redis keeps the hold a moment longer.
   * If its owner re-enters in that moment, no other code releases the old hold. The old hold would then keep the lock
   * even after the new hold is released. The release is delayed so that the lease expires in Redis first. Then the next
   * grant counts as a grant after an expiry.
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

  /** Releases a hold in Redis in the background. Only `close` waits for the answer. */
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

  /** Applies the reply to a release in Redis. The release may have made waiters of this client the holders. */
  #follow(key: string, { heard, successors = [] }: Released): void {
    for (const { id, grant } of successors) {
      if (this.#locks.grantedByReply(id, grant)) continue
      this.#kind.giveBack({ key, id }).catch(error => this.#listener.failed(error))
    }
    this.#locks.released(key, heard)
  }
}

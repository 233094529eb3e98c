/**
 * The holds of a client, for one kind of lock. Makes a hold from each grant, and ends each hold.
 *
 *      grant ──▶ Hold ─┬─ Renewal   prolongs it, and notices that it is lost
 *                      └─ release ─▶ LocalLock.handOn: to a waiter of this client, without asking Redis
 *                                 └▶ Redis: to the next fair waiter, or the lock is free
 *
 * If a hold could be handed on, but no waiter of this client waits for the lock, the release is sent only at the end of
 * the current turn of the event loop. An example shows why. Two callers A and B of this client use the lock
 * alternately. The reply to A's release arrives together with the grant for B, so A and B continue in the same turn of
 * the event loop. B may release the lock a few microtasks before A asks for it again. But B's release waits until the
 * end of the turn. By then A is a waiter, so B hands the lock on to A.
 */
import type { Clock, Timer } from '../clock.ts'
import { LockConnectionError, LockError } from '../errors.ts'
import type { Granted, Holder, HoldName, Kind, Released } from '../kind.ts'
import { type Asked, Hold } from '../local/hold.ts'
import type { LocalLocks } from '../local/local-locks.ts'
import type { Inherited } from '../local/run.ts'
import type { Loss } from '../local/states.ts'
import { RecentReleases } from './recent-releases.ts'
import { Records } from './records.ts'
import { Renewal } from './renewal.ts'

/**
 * If a hold's deadline passes in this client, the hold is released in Redis this many ms later, plus 0.1 % of its
 * lease.
 */
const AFTER_LAPSE = 30
const FORGOTTEN =
  'the program has dropped its lease without a release, so the lock stays taken until this process ends, or `forceRelease` takes it away'
const UNCONFIRMED = 'Redis did not confirm the release, so the lock may become free only when its lease ends'

const yes = Promise.resolve(true)

/** Resolves after all code that can run now has run, without waiting for I/O or a timer. */
const endOfTurn = () => new Promise<void>(resolve => process.nextTick(resolve))

export interface HoldListener {
  renewed(hold: Hold): void
  /** Called when a release has ended the hold, which lasted `held` ms. */
  released(hold: Hold, held: number): void
  /** Called when the hold has ended without a release. It lasted `held` ms. */
  lost(hold: Hold, loss: Loss, held: number): void
  /** Returns an error that says since when and why Redis is out of reach; undefined if it is within reach. */
  outage(): Error | undefined
  /** Reports a failure that no caller's promise reports. */
  failed(error: unknown): void
  /** Called when a hold has ended, in whatever way. */
  ended(): void
}

export class Holds {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #locks: LocalLocks
  readonly #listener: HoldListener
  readonly #renewal: Renewal
  readonly #records: Records
  /** Undefined if the kind cannot say which holds Redis has. */
  readonly #recent: RecentReleases | undefined
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
      outage: () => listener.outage(),
      forgotten: ({ key }) => listener.failed(new LockError('ERR_LOCK_FORGOTTEN', `lock "${key}": ${FORGOTTEN}`, key)),
      ended: () => {
        if (locks.holding === 0) this.#allEnded?.()
        listener.ended()
      },
    })
    this.#recent = kind.remaining && new RecentReleases(kind, clock)
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

  /** Turns a grant into a hold. */
  take(asked: Asked, grant: Granted | Inherited): Hold {
    const now = this.#clock.now()
    const run = this.#locks.of(asked.claim.key).tenancy.runOf(asked.claim, grant, now, asked.alone)
    const hold = new Hold(asked, grant, run, now, this.#count++)
    this.#renewal.add(hold, grant.around)
    return hold
  }

  /** Returns for how many ms this client can still rely on the hold; 0 if the hold may have ended. */
  remaining(hold: Hold): number {
    return this.#renewal.remaining(hold)
  }

  /** Returns whether the hold lasts, as far as this client knows. A hold that is in doubt lasts until Redis denies it. */
  lasts(hold: Hold): boolean {
    return hold.remaining(this.#clock.now()) > 0
  }

  /** Makes the hold last until `ms` from now. Rejects with LockLostError or LockConnectionError. */
  renew(hold: Hold, ms: number): Promise<void> {
    return this.#renewal.renew(hold, ms)
  }

  /** Releases the hold. Resolves to true if this call has ended a live hold. Rejects with LockConnectionError. */
  release(hold: Hold): Promise<boolean> {
    // The lock is undefined if the hold has ended, and this client has no waiter and no other hold of the lock.
    const lock = this.#locks.get(hold.key)
    lock?.releasing()
    // Only a hold that belongs to a run of hand-offs (local/run.ts) can be handed on within this client.
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
   * Asks Redis whether the hold with this id still exists, and whether the other holds of the same grant (the owner's
   * re-entries) do. `token`: the token of the grant that a message has reported for this id. If the hold's own token is
   * not smaller, the message says nothing new, and Redis is not asked.
   */
  doubt(id: string, token = Number.POSITIVE_INFINITY): void {
    const hold = this.#locks.hold(id)
    if (hold && hold.token < token) this.#renewal.doubt(hold)
  }

  /** Called when a message says that a forced release has taken this hold away. */
  taken(id: string): void {
    const hold = this.#locks.hold(id)
    for (const each of hold ? (this.#locks.get(hold.key)?.tenancy.ofGrant(hold) ?? []) : []) each.taken = true
    this.doubt(id)
  }

  /**
   * Asks Redis whether the holds of `key`, or all holds, still exist. Called when messages about lost holds may have
   * been missed.
   */
  doubtAll(key?: string): void {
    this.#renewal.doubtAll(key === undefined ? this.#locks.holds : (this.#locks.get(key)?.tenancy.holds ?? []))
  }

  /**
   * Records the present holder of the lock in Redis, because Redis may not know the holder yet after a hand-off within
   * this client. Called before the first request of a call with the option `owner`: without this record, Redis could
   * not tell whether that owner already holds the lock. Resolves when Redis knows the holder. Returns undefined if
   * Redis knows the holder already.
   */
  record(key: string, owner: string): Promise<void> | undefined {
    const run = this.#locks.get(key)?.tenancy.naming(owner)
    const recording = run && this.#records.now(run)
    // If the caller gives up while this promise is pending, no other code handles its rejection.
    recording?.catch(() => {})
    return recording
  }

  /**
   * `then`: when Redis was last asked who holds the lock. If this client has got the lock since that time, Redis's
   * answer is out of date, and this method returns the client's own hold.
   */
  holder(key: string, then: number): Holder | undefined {
    const hold = this.#locks.get(key)?.tenancy.oldest
    if (!hold || this.remaining(hold) === 0 || hold.via === 'reentry') return undefined
    return hold.since > then ? { label: hold.claim.label, since: hold.since } : undefined
  }

  /**
   * Called when another server may have the locks of some keys. Ends holds that this client has released, and that Redis
   * has nevertheless.
   */
  sendAgain(concerns: (key: string) => boolean): void {
    this.#recent?.sendAgain(concerns, (name, used) => this.#endInBackground(name, used))
  }

  /** Releases a grant that no waiter of this client wants. */
  giveBack(name: HoldName): void {
    this.#kind.giveBack(name).then(
      () => this.#recent?.add(name, undefined),
      error => this.#listener.failed(error),
    )
  }

  /**
   * Declares all holds lost, because the client is closed. Their `signal`s abort. Redis keeps the holds until
   * `releaseAll`.
   */
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
    // The remaining holds are being released by their callers. This method waits for these releases. The `await` is
    // necessary even if no hold remains: a listener of an event may have called this method during a release, and that
    // listener has to return before the rest of this method runs.
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
   * client can take it. The head of this file says why.
   */
  readonly #handOnOrRelease = async (hold: Hold): Promise<Released | 'handed on'> => {
    await endOfTurn()
    return this.#locks.get(hold.key)?.handOn(hold) ? 'handed on' : this.#releaseInRedis(hold)
  }

  /** Processes Redis's answer to a release. Returns whether the hold was live. */
  readonly #wasLive = (answer: Released | 'handed on', hold: Hold): boolean => {
    if (answer === 'handed on') return true
    this.#recent?.add(hold.name, hold.run?.last)
    this.#follow(hold.key, answer)
    if (answer.ended) this.#released(hold)
    return answer.ended
  }

  /**
   * Called when a release was not answered, or a hold was lost. The lock may be free, so the first waiter in line
   * tries.
   */
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
    const ours = error instanceof LockError
    this.#listener.failed(ours ? new LockConnectionError(UNCONFIRMED, error.cause, key) : error)
  }

  #heldFor(hold: Hold): number {
    return this.#clock.now() - hold.since
  }

  /**
   * Plans the release, in Redis, of a hold whose deadline has passed in this client. In Redis, the lease of this hold
   * ends a moment later, and normally the hold ends with it. But if the owner re-enters before the lease has ended,
   * Redis keeps both holds, and no caller releases the old hold. The lock would then stay held after the release of the
   * re-entry. The planned release is sent only after the lease has ended in Redis. So the next grant still counts as a
   * grant after an expiry.
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
        released => {
          this.#recent?.add(name, used)
          this.#follow(name.key, released)
        },
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

  /** Applies the reply to a release in Redis. Redis may have passed the lock on to waiters of this client. */
  #follow(key: string, { heard, successors = [] }: Released): void {
    for (const { id, grant } of successors) {
      if (!this.#locks.grantedByReply(id, grant)) this.giveBack({ key, id })
    }
    this.#locks.released(key, heard)
  }
}

/**
 * The holds of a client, for one kind of lock: makes a hold from each grant, and ends it. keeping.ts renews it
 * meanwhile.
 *
 *      grant ──▶ Hold ─┬─ renewed in time, or declared lost
 *                      └─ release ─▶ KeyState.handOn: to a waiter of this client, without asking Redis
 *                                 └▶ Redis: to the next fair waiter, or the lock is free
 *
 * If a hold could be handed on, but no waiter of this client waits for the lock, the release is sent only at the end of
 * the current turn of the event loop. An example shows why. Two callers A and B of this client use the lock
 * alternately. The reply to A's release arrives together with the grant for B, so A and B continue in the same turn of
 * the event loop. B may release the lock a few microtasks before A asks for it again. But B's release waits until the
 * end of the turn. By then A is a waiter, so B hands the lock on to A.
 */
import type { AsyncResource } from 'node:async_hooks'
import pTimeout from 'p-timeout'
import { LockClosedError, LockConnectionError, LockError, LockLostError, named, rejection, traced } from '../errors.ts'
import type { Announced, Granted, Holder, Kind, Released } from '../kind.ts'
import type { Outcome } from '../outcome.ts'
import { checkLongest } from '../settings.ts'
import { Endings } from './endings.ts'
import { type Asked, Hold } from './hold.ts'
import { type HoldListener, Keeping } from './keeping.ts'
import type { KeyState } from './key-state.ts'
import type { Succession } from './port.ts'
import { type Inherited, Records, type Run } from './run.ts'
import type { Schedule } from './schedule.ts'
import type { Table } from './table.ts'

const UNCONFIRMED = 'Redis did not confirm the release, so the lock may become free only when its lease ends'

const yes = Promise.resolve(true)

/** Settles the promise of a release. */
type Resolve = (outcome: boolean | Promise<never>) => void

/** The release of a hold that Redis was asked for. */
class Releasing implements Outcome<Released> {
  readonly #holds: Holds
  readonly hold: Hold
  readonly resolve: Resolve
  readonly context: AsyncResource | undefined

  constructor(holds: Holds, hold: Hold, resolve: Resolve, context: AsyncResource | undefined) {
    this.#holds = holds
    this.hold = hold
    this.resolve = resolve
    this.context = context
  }

  done(answer: Released): void {
    this.#holds.released(this, answer)
  }

  failed(error: Error): void {
    this.#holds.unreleased(this, error)
  }
}

export class Holds extends Keeping implements Succession {
  readonly endings: Endings
  readonly #records: Records<Hold>
  /** How many holds this client has had so far. */
  #count = 0
  /** Holds that `loseAll` has declared lost, and that `releaseAll` will release in Redis. */
  readonly #forsaken: Hold[] = []

  constructor(kind: Kind, schedule: Schedule, table: Table, listener: HoldListener) {
    super(kind, schedule, table, listener)
    table.succession = this
    this.endings = new Endings(this.background, schedule.clock, {
      released: (key, released, now) => this.#follow(key, released, now),
      unanswered: key => this.wake(key),
      failed: error => listener.failed(error),
    })
    const doubt = (hold: Hold) => this.inDoubt(hold)
    this.#records = new Records(kind, schedule, table.holds, doubt, error => listener.failed(error))
  }

  // The beginning of a hold.

  /**
   * Turns a grant into a hold, at `now`. If a re-entry's lease is longer than the lease of the owner's first hold, that
   * first hold is prolonged, too.
   */
  take(asked: Asked, grant: Granted | Inherited, now: number): Hold {
    // The key has a state, because it has the waiter.
    const state = this.table.states.get(asked.claim.key) as KeyState
    const begun = grant.block ? state.runOf(asked.claim, grant, now, this.#records) : undefined
    const run = 'run' in grant ? grant.run : begun
    const hold = new Hold(asked, grant, run, now, this.#count++)
    this.table.holds.set(hold.name.id, hold)
    state.addHold(hold)
    if (hold.via === 'reentry') this.#raiseFirst(hold, grant.around)
    this.keep(hold, now)
    return hold
  }

  /** Forgets a hold that its caller has not got. Redis may still have it. */
  forget(hold: Hold): void {
    hold.end()
    this.remove(hold)
    if (hold.run) this.endRun(hold.run)
  }

  /** Called when the lock is handed on to another waiter of this client: the hold has ended. */
  handedOn(hold: Hold, now: number): void {
    this.remove(hold)
    this.listener.released(hold, now - hold.since)
  }

  /** Called after the lock was handed on. If the new holder still has the lock a moment later, Redis learns of it. */
  passed(run: Run, now: number): void {
    this.#records.later(run, now)
  }

  /** Releases the lock in Redis, because it can no longer be handed on within this client. */
  abandoned(run: Run): void {
    this.#records.forget(run)
    this.endings.begin(run.name, run.last)
  }

  /**
   * Records the present holder of the lock in Redis, because Redis may not know the holder yet after a hand-off within
   * this client. Called before the first request of a call with the option `owner`: without this record, Redis could
   * not tell whether that owner already holds the lock. Resolves when Redis knows the holder. Returns undefined if
   * Redis knows the holder already.
   */
  record(key: string, owner: string): Promise<void> | undefined {
    const run = this.table.states.get(key)?.naming(owner)
    const recording = run && this.#records.now(run)
    // If the caller gives up while this promise is pending, no other code handles its rejection.
    recording?.catch(() => {})
    return recording
  }

  // What is known of a hold.

  /**
   * `then`: when Redis was last asked who holds the lock. If this client has got the lock since that time, Redis's
   * answer is out of date, and this method returns the client's own hold.
   */
  holder(key: string, then: number): Holder | undefined {
    const hold = this.table.states.get(key)?.oldest
    if (!hold || this.remaining(hold) === 0 || hold.via === 'reentry') return undefined
    return hold.since > then ? { label: hold.claim.label, since: hold.since } : undefined
  }

  // The end of a hold.

  /** Releases the hold. Resolves to true if this call has ended a live hold. Rejects with LockConnectionError. */
  release(hold: Hold): Promise<boolean> {
    const now = this.clock.now()
    // A hold in doubt must not be handed on.
    this.look(now)
    // Undefined if the hold has ended, and this client has no waiter and no other hold of the lock.
    const state = this.table.states.get(hold.key)
    if (now >= hold.deadline) this.expire(hold, now)
    if (hold.state.is === 'held') state?.releasing(now)
    // Only a hold that belongs to a run of hand-offs can be handed on within this client.
    if (hold.run && state?.handOn(hold, now)) return yes
    const wait = hold.run !== undefined && state?.wantsHeir(hold, now) === true
    return new Promise<boolean>(resolve => {
      if (!hold.release(resolve)) return resolve(false)
      if (wait) return process.nextTick(queueMicrotask, () => this.#handOnOrRelease(hold, resolve))
      this.#release(hold, resolve)
    })
  }

  /** Called when Redis has answered the release of a hold. */
  released({ hold, resolve, context }: Releasing, answer: Released): void {
    const now = this.clock.now()
    this.endings.recent?.add(hold.name, hold.run?.last, now)
    this.#follow(hold.key, answer, now)
    if (answer.ended) this.listener.released(hold, now - hold.since, context)
    else this.lose(hold, 'Redis no longer knew this hold when it was released')
    hold.end()
    this.remove(hold)
    resolve(answer.ended)
  }

  /** Called when the release of a hold has failed. */
  unreleased({ hold, resolve }: Releasing, error: Error): void {
    this.wake(hold.key)
    const pending = hold.state.is === 'releasing'
    hold.end()
    this.remove(hold)
    if (pending) resolve(rejection(named(hold.key, error)))
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
   * Makes the hold last until `ms` from now. Rejects with LockLostError if the hold has ended, with LockConnectionError
   * if Redis does not answer, and with LockArgumentError if `ms` is more than the kind's `longestLease`.
   */
  async renew(hold: Hold, ms: number): Promise<void> {
    checkLongest('ms', ms, this.kind.longestLease)
    const now = this.clock.now()
    this.expire(hold, now)
    const { state } = hold
    if (state.is !== 'held') {
      throw new LockLostError(
        hold.key,
        'this lease has ended, so it cannot be renewed; acquire the lock again',
        state.is === 'lost' ? state.loss : undefined,
      )
    }
    const question = hold.renew(ms, now)
    const asked = this.kind.renew([question]).finally(() => hold.renewed())
    const patience = { milliseconds: Number.POSITIVE_INFINITY, signal: hold.signal }
    const [renewed] = await pTimeout(asked, patience).catch(error => {
      throw error instanceof LockClosedError
        ? new LockLostError(hold.key, 'the client was closed', error)
        : traced(named(hold.key, error))
    })
    this.learn(hold, question, renewed!)
    if (hold.remaining(this.clock.now()) === 0) {
      throw new LockLostError(hold.key, 'its lease ended before Redis had confirmed the renewal')
    }
  }

  /**
   * Declares all holds lost, because the client is closed. Their `signal`s abort. Redis keeps the holds until
   * `releaseAll`.
   */
  loseAll(): void {
    for (const hold of this.table.holds.values().sort((a, b) => a.number - b.number)) {
      this.expire(hold, this.clock.now())
      if (hold.state.is !== 'held') continue
      this.declareLost(hold, new LockClosedError(hold.key))
      this.#forsaken.push(hold)
    }
  }

  /** Ends all holds, even those that `loseAll` gave up. Called once. Resolves when Redis has answered all releases. */
  async releaseAll(): Promise<void> {
    this.loseAll()
    for (const { name, run, key } of this.#forsaken.splice(0)) {
      this.endings.begin(name, run?.last, error => this.#notReleased(key, error))
    }
    this.endings.hurry()
    // The remaining holds are being released by their callers. This method waits for these releases. The `await` is
    // necessary even if no hold remains: a listener of an event may have called this method during a release, and that
    // listener has to return before the rest of this method runs.
    await new Promise<void>(resolve => {
      if (this.table.holds.size > 0) this.allEnded = resolve
      else resolve()
    })
    await this.endings.over()
  }

  // Release in Redis.

  /**
   * Waits for the end of the event loop's turn. Then hands the lock on, or releases it in Redis if no waiter of this
   * client can take it. The head of this file says why.
   */
  #handOnOrRelease(hold: Hold, resolve: Resolve): void {
    if (this.table.states.get(hold.key)?.handOn(hold, this.clock.now())) resolve(true)
    else this.#release(hold, resolve)
  }

  #release(hold: Hold, resolve: Resolve): void {
    if (hold.run) this.endRun(hold.run)
    this.kind.release(hold.name, hold.run?.last, new Releasing(this, hold, resolve, this.listener.context()))
  }

  /** Applies the reply to a release in Redis. Redis may have passed the lock on to waiters of this client. */
  #follow(key: string, { successors }: Released, now: number): void {
    for (const { id, grant } of successors ?? []) {
      if (!this.granted(id, grant, now)) this.endings.giveBack({ key, id })
    }
    this.table.states.get(key)?.released(now)
  }

  /**
   * Called when a message, or the reply to this client's own release, announces a grant. Its waiter may have learned of
   * the same grant before, by the answer to a request of its own. If neither a waiter nor a hold has the id of the
   * grant, returns false, and the caller of this method gives the grant back. If a hold has the id, but a smaller token
   * than the grant, then Redis may have ended the hold and granted the lock to the same id again. But a message may be
   * forged, so it does not end the hold. Instead, the client asks Redis about the hold.
   *
   * While a hold is being released, Redis may grant the lock again to the hold's id. An example: client A sends a
   * request for the lock, gets no answer, and sends it a second time. Redis grants the second request, and A releases
   * the hold. After the release, the delayed first request reaches Redis, and Redis grants the lock to the same id
   * again. A may still wait for the answer to its release, and will not send a second release. So this method returns
   * false in this case, too, and the new grant is given back.
   *
   * If the lease of a hold has run out here, its release is planned already, and leaves the hold its `minHold`. Then a
   * late message needs no answer.
   */
  granted(id: string, grant: Announced, now: number): boolean {
    const waiter = this.table.waiters.get(id)
    if (waiter) {
      this.table.of(waiter.claim.key).granted(waiter, grant, now)
      return true
    }
    const hold = this.table.holds.get(id)
    if (!hold) return this.endings.planned(id)
    if (hold.state.is === 'releasing' && grant.token > hold.token) return false
    this.doubt(id, grant.token)
    return true
  }

  protected endRun(run: Run): void {
    run.end()
    this.table.states.get(run.name.key)?.endRun(run)
    this.#records.forget(run)
  }

  #notReleased(key: string, error: unknown): void {
    const ours = error instanceof LockError
    this.listener.failed(ours ? new LockConnectionError(UNCONFIRMED, error.cause, key) : error)
  }

  /**
   * Prolongs the owner's first hold after a re-entry with a longer lease, to the end of that lease, or to the time that
   * the kind's `raised` returns. The scripts do the same in Redis.
   *
   * In a lock with one owner at a time, the first hold is this client's oldest hold of the lock. In a shared lock, the
   * oldest hold may belong to another owner, or may have been admitted from the queue after the owner's first hold. So
   * Redis sends the id of the first hold (`around`). If the first hold belongs to this client, this method prolongs it.
   */
  #raiseFirst(hold: Hold, around: string | undefined): void {
    const { holds, states } = this.table
    const first = this.kind.shared ? holds.get(around ?? '') : states.get(hold.key)?.oldest
    if (first?.token !== hold.token || first.via === 'reentry') return
    if (hold.length > first.length) first.raise(this.kind.raised?.(first.name, hold.name) ?? hold.deadline)
  }
}

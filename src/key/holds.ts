/**
 * The holds of a client, for one kind of lock: makes a hold from each grant, and ends it. renewals.ts renews it
 * meanwhile.
 *
 *      grant ──▶ Hold ─┬─ renewed in time, or declared lost
 *                      └─ release ─▶ Key.handOn: to a waiter of this client, without asking Redis
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
import type { Clock } from '../clock.ts'
import { LockClosedError, LockConnectionError, LockError, LockLostError, named, rejection, traced } from '../errors.ts'
import type { Announced, Channels, Granted, Holder, Kind, Released } from '../kind.ts'
import type { Outcome } from '../outcome.ts'
import { checkLongest } from '../settings.ts'
import { Hold, type HoldKeeper, type HoldKey, type HoldTerms, type Loss } from './hold.ts'
import type { HandOffPort } from './port.ts'
import { Records } from './records.ts'
import { Renewals } from './renewals.ts'
import type { Inherited, Run } from './run.ts'
import type { Schedule } from './schedule.ts'
import type { Table } from './table.ts'
import type { Withdrawals } from './withdrawals.ts'

export interface HoldsListener {
  onRenewed(hold: Hold): void
  /** A release has ended the hold, which lasted `held` ms. `context`: that of the release. */
  onReleased(hold: Hold, held: number, context?: AsyncResource): void
  /** The hold, which lasted `held` ms, has ended without a release. */
  onLost(hold: Hold, loss: Loss, held: number): void
  /** A hold has ended, in whatever way. */
  onEnded(): void
  /** Captures the present async context; undefined: nobody listens to the event of a release. */
  context(): AsyncResource | undefined
  /** Returns an error that says since when and why Redis is out of reach; undefined if it is within reach. */
  outage(): Error | undefined
  /** Reports a failure that no caller's promise reports. */
  failed(error: unknown): void
}

/** If a hold is renewed at least this often, in ms, a renewal soon notices its loss. */
const PROMPT = 1_000
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

  done(answer: Released, now?: number): void {
    this.#holds.onReleased(this, answer, now)
  }

  failed(error: Error): void {
    this.#holds.onUnreleased(this, error)
  }
}

export class Holds implements HandOffPort, HoldKeeper {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #table: Table
  readonly #withdrawals: Withdrawals
  readonly #listener: HoldsListener
  readonly #renewals: Renewals
  readonly #records: Records
  /**
   * In a cluster, each lock has an inbox of its own, for the messages that its holds are taken away. This client
   * subscribes to it only for holds that last, so the others cost nothing.
   */
  readonly #inboxes: Channels | undefined
  readonly #subscribed = new Set<Hold>()
  /** How many holds this client has had so far. */
  #count = 0
  /** Holds that `loseAll` has declared lost, and that `releaseAll` will release in Redis. */
  readonly #forsaken: Hold[] = []
  /** Set while `close` waits for releases that callers have begun. */
  #allEnded: (() => void) | undefined

  constructor(
    kind: Kind,
    schedule: Schedule,
    table: Table,
    withdrawals: Withdrawals,
    listener: HoldsListener,
    inboxes?: Channels,
  ) {
    this.#kind = kind
    this.#clock = schedule.clock
    this.#table = table
    this.#withdrawals = withdrawals
    this.#listener = listener
    this.#inboxes = inboxes
    this.#renewals = new Renewals(kind, schedule, table)
    this.#records = new Records(kind, schedule, table)
    table.handOffs = this
  }

  failed(error: unknown): void {
    this.#listener.failed(error)
  }

  // The beginning of a hold.

  /**
   * Turns a grant into a hold, at `now`. If a re-entry's lease is longer than the lease of the owner's first hold, that
   * first hold is prolonged, too.
   */
  take(asked: HoldTerms, of: HoldKey, grant: Granted | Inherited, now: number): Hold {
    const begun = grant.block ? of.holds.runOf(asked.claim, grant, now, this.#records) : undefined
    const run = 'run' in grant ? grant.run : begun
    const hold = new Hold(asked, of, this, grant, run, now, this.#count++)
    this.#table.addHold(hold)
    of.holds.add(hold)
    if (hold.via === 'reentry') this.#raiseFirst(hold, grant.around)
    this.#renewals.add(hold, now)
    return hold
  }

  /** Forgets a hold that its caller has not got. Redis may still have it. */
  forget(hold: Hold): void {
    hold.end()
    this.#remove(hold)
    if (hold.run) this.#endRun(hold)
  }

  onHandedOn(hold: Hold, now: number): void {
    this.#remove(hold)
    this.#listener.onReleased(hold, now - hold.since)
  }

  /** If the new holder still has the lock a moment later, Redis learns of it. */
  onPassed(run: Run, now: number): void {
    this.#records.later(run, now)
  }

  runEnded(run: Run): void {
    this.#records.forget(run)
    this.#withdrawals.release(run.name, run.last)
  }

  /**
   * Records the present holder of the lock in Redis, because Redis may not know the holder yet after a hand-off within
   * this client. Called before the first request of a call with the option `owner`: without this record, Redis could
   * not tell whether that owner already holds the lock. Resolves when Redis knows the holder. Returns undefined if
   * Redis knows the holder already.
   */
  record(key: string, owner: string): Promise<void> | undefined {
    const run = this.#table.keys.get(key)?.holds.naming(owner)
    const recording = run && this.#records.now(run)
    // If the caller gives up while this promise is pending, no other code handles its rejection.
    recording?.catch(() => {})
    return recording
  }

  // What is known of a hold.

  /** Returns for how many ms this client can still rely on the hold; 0 if the hold may have ended. */
  remaining(hold: Hold): number {
    const now = this.#clock.now()
    this.#renewals.look(now)
    return Math.max(0, hold.remaining(now) - this.#renewals.behind(hold.sent))
  }

  /** Returns whether the hold lasts, as far as this client knows. A hold that is in doubt lasts until Redis denies it. */
  lasts(hold: Hold): boolean {
    return hold.remaining(this.#clock.now()) > 0
  }

  /**
   * `then`: when Redis was last asked who holds the lock. If this client has got the lock since that time, Redis's
   * answer is out of date, and this method returns the client's own hold.
   */
  holder(key: string, then: number): Holder | undefined {
    const hold = this.#table.keys.get(key)?.holds.oldest
    if (!hold || this.remaining(hold) === 0 || hold.via === 'reentry') return undefined
    return hold.since > then ? { label: hold.claim.label, since: hold.since } : undefined
  }

  /**
   * Asks Redis whether this hold, and all other holds of the same grant (the owner's re-entries), still exist. `token`:
   * the token of the grant that a message has reported for its id. If the hold's own token is not smaller, the message
   * says nothing new, and Redis is not asked.
   *
   * An owner that has re-entered often may lose thousands of holds at once, and a message arrives for each of them. After
   * the first message, Redis is about to be asked about all these holds. Until then, the other messages have no effect.
   */
  doubt(hold: Hold, token = Number.POSITIVE_INFINITY): void {
    if (hold.token >= token || hold.isNext(this.#clock.now()) || !this.#table.lives(hold)) return
    this.#renewals.ask(hold.of.holds.ofGrant(hold))
  }

  /**
   * Asks Redis whether the holds of `key`, or all holds, still exist, because messages about lost holds may have been
   * missed.
   */
  doubtAll(key?: string): void {
    this.#renewals.ask(key === undefined ? this.#table.allHolds : (this.#table.keys.get(key)?.holds.all ?? []))
  }

  /**
   * A message announces a grant to the id of this hold. If its token is larger than the hold's, Redis may have ended the
   * hold and granted the lock to the same id again. But a message may be forged, so it does not end the hold. Instead,
   * Redis is asked.
   *
   * While a hold is being released, Redis may grant the lock again to the hold's id. An example: client A sends a
   * request for the lock, gets no answer, and sends it a second time. Redis grants the second request, and A releases
   * the hold. After the release, the delayed first request reaches Redis, and Redis grants the lock to the same id
   * again. A may still wait for the answer to its release, and will not send a second release. So this method returns
   * false in this case, and the new grant is given back.
   */
  onGrant(hold: Hold, { token }: Announced): boolean {
    if (hold.state.is === 'releasing' && token > hold.token) return false
    this.doubt(hold, token)
    return true
  }

  onTaken(hold: Hold, why: string | undefined): void {
    if (why === undefined) {
      if (!hold.forced) for (const each of hold.of.holds.ofGrant(hold)) each.forced = true
      this.doubt(hold)
    } else if (hold.state.is === 'held') this.#lose(hold, why)
  }

  onRenewed(hold: Hold): void {
    this.#listener.onRenewed(hold)
  }

  /** Subscribes to the lock's inbox. The loss may have come before, so Redis is asked once. */
  onLasting(hold: Hold): void {
    const isRenewed = hold.renewUntil === Number.POSITIVE_INFINITY
    if (!this.#inboxes || hold.state.is !== 'held' || (isRenewed && hold.length / 3 <= PROMPT)) return
    this.#subscribed.add(hold)
    const subscribing = this.#inboxes.subscribe(hold.key, 'inbox') ?? Promise.resolve()
    // If the subscription fails, only renewals notice a loss.
    subscribing.then(
      () => this.doubt(hold),
      () => {},
    )
  }

  // The end of a hold.

  /** Releases the hold. Resolves to true if this call has ended a live hold. Rejects with LockConnectionError. */
  release(hold: Hold): Promise<boolean> {
    const now = this.#clock.now()
    // A hold in doubt must not be handed on.
    this.#renewals.look(now)
    this.#expire(hold, now)
    if (hold.state.is === 'held') hold.of.onReleasing(now)
    // Only a hold that belongs to a run of hand-offs can be handed on within this client.
    if (hold.run && hold.of.handOn(hold, now)) return yes
    const wait = hold.run !== undefined && hold.of.lacksNext(hold, now)
    return new Promise<boolean>(resolve => {
      if (!hold.release(resolve)) return resolve(false)
      if (wait) return process.nextTick(queueMicrotask, () => this.#handOnOrRelease(hold, resolve))
      this.#release(hold, resolve)
    })
  }

  onReleased({ hold, resolve, context }: Releasing, answer: Released, now = this.#clock.now()): void {
    this.#withdrawals.recent?.add(hold.name, hold.run?.last, now)
    this.follow(hold.key, answer, now)
    if (answer.ended) this.#listener.onReleased(hold, now - hold.since, context)
    else this.#lose(hold, 'Redis no longer knew this hold when it was released')
    hold.end()
    this.#remove(hold)
    resolve(answer.ended)
  }

  onUnreleased({ hold, resolve }: Releasing, error: Error): void {
    hold.of.wake(this.#clock.now())
    const pending = hold.state.is === 'releasing'
    hold.end()
    this.#remove(hold)
    if (pending) resolve(rejection(named(hold.key, error)))
  }

  /** Applies the reply to a release in Redis. Redis may have passed the lock on to waiters of this client. */
  follow(key: string, { successors }: Released, now: number): void {
    for (const { id, grant } of successors ?? []) {
      if (!this.#table.granted(id, grant, now)) this.#withdrawals.giveBack({ key, id })
    }
    this.#table.keys.get(key)?.onReleased(now)
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
    checkLongest('ms', ms, this.#kind.traits.longestLease)
    const now = this.#clock.now()
    this.#expire(hold, now)
    const { state } = hold
    if (state.is !== 'held') {
      throw new LockLostError(
        hold.key,
        'this lease has ended, so it cannot be renewed; acquire the lock again',
        state.is === 'lost' ? state.loss : undefined,
      )
    }
    const question = hold.renew(ms, now)
    const asked = this.#kind.renew([question]).finally(() => hold.renewed())
    const patience = { milliseconds: Number.POSITIVE_INFINITY, signal: hold.signal }
    const [renewed] = await pTimeout(asked, patience).catch(error => {
      throw error instanceof LockClosedError
        ? new LockLostError(hold.key, 'the client was closed', error)
        : traced(named(hold.key, error))
    })
    this.#renewals.learn(hold, question, renewed!)
    if (hold.remaining(this.#clock.now()) === 0) {
      throw new LockLostError(hold.key, 'its lease ended before Redis had confirmed the renewal')
    }
  }

  /**
   * Declares all holds lost, because the client is closed. Their `signal`s abort. Redis keeps the holds until
   * `releaseAll`.
   */
  loseAll(): void {
    for (const hold of this.#table.allHolds) {
      this.#expire(hold, this.#clock.now())
      if (hold.state.is !== 'held') continue
      this.#declareLost(hold, new LockClosedError(hold.key))
      this.#forsaken.push(hold)
    }
  }

  /**
   * Ends all holds, even those that `loseAll` gave up. Called once. Resolves when all releases are sent, and those that
   * callers have begun are answered.
   */
  async releaseAll(): Promise<void> {
    this.loseAll()
    for (const { name, run, key } of this.#forsaken.splice(0)) {
      this.#withdrawals.release(name, run?.last, error => this.#notReleased(key, error))
    }
    // The `await` is necessary even if no hold remains: a listener of an event may have called this method during a
    // release, and that listener has to return before the rest of this method runs.
    await new Promise<void>(resolve => {
      if (this.#table.holds > 0) this.#allEnded = resolve
      else resolve()
    })
  }

  /** From now on, this client does not notice when a hold ends. */
  close(): void {
    this.#renewals.close()
  }

  onUnknown(hold: Hold): void {
    this.#lose(hold, 'Redis no longer knows this hold')
  }

  onReplaced(hold: Hold): void {
    this.#leaveBehind(hold, 'this hold was taken away, and the lock was granted again')
  }

  onDeadline(hold: Hold): void {
    const { state } = hold
    const isOver = hold.renewUntil > hold.since && hold.renewUntil <= this.#clock.now()
    const why = isOver ? 'maxHold was over, and its lease ran out' : 'its lease ran out'
    if (state.is !== 'releasing') return this.#leaveBehind(hold, why)
    // The deadline has passed before the release was answered. The hold is over, by its release or by the end of its
    // lease. It does not count as lost.
    hold.end()
    this.#remove(hold)
    state.resolve(false)
  }

  /** Ends the hold if its deadline has passed. The timer also does this, but it may be late. */
  #expire(hold: Hold, now: number): void {
    if (now >= hold.deadline && this.#table.lives(hold)) this.onDeadline(hold)
  }

  /**
   * Waits for the end of the event loop's turn. Then hands the lock on, or releases it in Redis if no waiter of this
   * client can take it. The head of this file says why.
   */
  #handOnOrRelease(hold: Hold, resolve: Resolve): void {
    if (hold.of.handOn(hold, this.#clock.now())) resolve(true)
    else this.#release(hold, resolve)
  }

  #release(hold: Hold, resolve: Resolve): void {
    if (hold.run) this.#endRun(hold)
    this.#kind.release(hold.name, hold.run?.last, new Releasing(this, hold, resolve, this.#listener.context()))
  }

  #endRun({ of, run }: Hold): void {
    of.holds.endRun(run as Run)
    this.#records.forget(run as Run)
  }

  #remove(hold: Hold): void {
    if (!this.#table.dropHold(hold)) return
    this.#renewals.drop(hold)
    hold.of.dropHold(hold)
    if (this.#subscribed.size > 0 && this.#subscribed.delete(hold)) this.#inboxes?.unsubscribe(hold.key, 'inbox')
    if (this.#table.holds === 0) this.#allEnded?.()
    this.#listener.onEnded()
  }

  #lose(hold: Hold, why: string): void {
    const outage = this.#listener.outage()
    const reason = hold.forced ? 'it was taken away by a forced release' : why
    this.#declareLost(hold, new LockLostError(hold.key, outage ? `${reason}; ${outage.message}` : reason, outage))
  }

  #declareLost(hold: Hold, loss: Loss): void {
    this.#remove(hold)
    if (!hold.lose(loss)) return
    const now = this.#clock.now()
    this.#listener.onLost(hold, loss, now - hold.since)
    if (hold.run) this.#endRun(hold)
    // The lock may be free.
    hold.of.wake(now)
  }

  /**
   * Declares a hold lost that Redis may still have. There are two cases. First, the hold's deadline may have passed in
   * this client. In Redis, the hold lasts a moment longer. If its owner has other holds, it lasts for as long as they
   * are renewed. Second, the hold may have been taken away, and Redis may have granted the lock to the same id again.
   * Then Redis has a new hold with this id. Its release is planned before the loss is reported, because a listener may
   * close the client when it hears of the loss. `close` must then know that Redis may still have the hold.
   */
  #leaveBehind(hold: Hold, why: string): void {
    this.#withdrawals.releaseLater(hold)
    this.#lose(hold, why)
  }

  #notReleased(key: string, error: unknown): void {
    const ours = error instanceof LockError
    this.#listener.failed(ours ? new LockConnectionError(UNCONFIRMED, error.cause, key) : error)
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
    const first = this.#kind.traits.shared ? this.#table.hold(around ?? '') : hold.of.holds.oldest
    if (first?.token !== hold.token || first.via === 'reentry') return
    if (hold.length > first.length) first.raise(this.#kind.raised?.(first.name, hold.name) ?? hold.deadline)
  }
}

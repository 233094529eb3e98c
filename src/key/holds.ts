/**
 * The holds of a client, for one kind of lock: makes a hold from each grant, renews it, and ends it.
 *
 *      grant ──▶ Hold ─┬─ renewed in time, or declared lost
 *                      └─ release ─▶ KeyState.handOn: to a waiter of this client, without asking Redis
 *                                 └▶ Redis: to the next fair waiter, or the lock is free
 *
 * A hold needs attention at the earlier of two times:
 *   due       when Redis has to be asked again. This is the case when a third of the lease has passed since this client
 *             sent the last request whose reply confirmed the hold. Renewals that are due at about the same time are
 *             sent together, many in one script call (in a cluster, one call per slot).
 *   deadline  when the hold may have ended in Redis. Then this client declares the hold lost, at once and for good. The
 *             hold's signal aborts before the server can grant the lock to another owner (I1, I8).
 *
 * A renewal has four outcomes (`Renewed` in kind.ts). Redis may report a new deadline. Redis may report that the hold
 * is lost, or replaced by another grant to the same id; both are final. Or the outcome is unknown, because Redis did
 * not answer. A missing answer proves nothing, so the renewal is tried again until the deadline. A hold that is being
 * released is not renewed, and the answer to a renewal under way is ignored. If the hold's deadline passes before Redis
 * has answered the release, the caller of the release waits no longer.
 *
 * Each use of an uncontended lock adds a hold and removes it, so both have to be cheap. A new hold goes on the agenda
 * only when the timer fires, at the latest after `LOOK` ms. Most holds have ended by then. The end of a hold does not
 * stop the timer, unless the locks are in this process, where the timer would keep the process alive.
 *
 * While the machine is suspended, timers stand still. After it, the clock jumps ahead, and at the next look the holds
 * whose deadlines have passed are lost. If the clock may be behind (`Clock.behind`), every hold is in doubt: Redis is
 * asked about all of them.
 *
 * If a hold could be handed on, but no waiter of this client waits for the lock, the release is sent only at the end of
 * the current turn of the event loop. An example shows why. Two callers A and B of this client use the lock
 * alternately. The reply to A's release arrives together with the grant for B, so A and B continue in the same turn of
 * the event loop. B may release the lock a few microtasks before A asks for it again. But B's release waits until the
 * end of the turn. By then A is a waiter, so B hands the lock on to A.
 */
import pTimeout from 'p-timeout'
import type { Clock } from '../clock.ts'
import { LockClosedError, LockConnectionError, LockError, LockLostError, named, rejection, traced } from '../errors.ts'
import type { Granted, Holder, Kind, Released, Renewed } from '../kind.ts'
import { Endings } from './endings.ts'
import { type Asked, Hold, type Loss, type Question } from './hold.ts'
import type { KeyState } from './key-state.ts'
import type { Succession } from './port.ts'
import { type Inherited, Records, type Run } from './run.ts'
import { type Due, Heap, type Schedule } from './schedule.ts'
import type { Table } from './table.ts'

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
  /** Whether the client is being closed. */
  readonly closing: boolean
  /** Called when a hold has ended, in whatever way, while the client is being closed. */
  ended(): void
}

/** Renewals that are due within this fraction of the lease's length are sent together. */
const TOGETHER = 1 / 20
/** If more new holds than this wait for the timer, they go on the agenda at once. This limits the timer's work. */
const MOST_FRESH = 100
/** While there are holds, they are looked at at least this often, in ms. */
const LOOK = 200
const NEVER = Number.POSITIVE_INFINITY
const FORGOTTEN =
  'the program has dropped its lease without a release, so the lock stays taken until this process ends, or `forceRelease` takes it away'

const UNCONFIRMED = 'Redis did not confirm the release, so the lock may become free only when its lease ends'

const yes = Promise.resolve(true)

/** Resolves after all code that can run now has run, without waiting for I/O or a timer. */
const endOfTurn = () => new Promise<void>(resolve => process.nextTick(resolve))

export class Holds implements Due, Succession {
  slot = -1
  dueAt = NEVER
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #schedule: Schedule
  readonly #table: Table
  readonly #listener: HoldListener
  readonly #records: Records<Hold>
  /** Releases in the background. */
  readonly endings: Endings
  /** How many holds this client has had so far. */
  #count = 0
  /** Holds that are not on the agenda yet. The timer fires before the first of them needs attention. */
  readonly #fresh = new Set<Hold>()
  /** The holds on the agenda, each with the time when it needs attention: when Redis must be asked, or its deadline. */
  readonly #agenda = new Heap<Hold>()
  /** Holds that `loseAll` has declared lost, and that `releaseAll` will release in Redis. */
  readonly #forsaken: Hold[] = []
  /** Set while `releaseAll` waits for releases that callers have begun. */
  #allEnded: (() => void) | undefined
  /** When it was last checked whether the clock may be behind, in monotonic ms. */
  #lookedAt: number
  #closed = false
  /**
   * Notices that a lease was garbage-collected. A lease is registered when its hold goes on the agenda, because to
   * register each lease at its grant would take a tenth of the time of a hand-off within the client.
   */
  readonly #forgotten = new FinalizationRegistry<Hold>(hold => {
    if (hold.state.is !== 'held' || hold.renewUntil <= this.#clock.now()) return
    this.#listener.failed(new LockError('ERR_LOCK_FORGOTTEN', `lock "${hold.key}": ${FORGOTTEN}`, hold.key))
  })

  constructor(kind: Kind, schedule: Schedule, table: Table, listener: HoldListener) {
    this.#kind = kind
    this.#clock = schedule.clock
    this.#schedule = schedule
    this.#table = table
    table.succession = this
    this.#listener = listener
    this.#lookedAt = schedule.clock.now()
    const doubt = (hold: Hold) => this.#doubt(hold)
    this.endings = new Endings(kind, schedule.clock, {
      released: (key, released, now) => this.#follow(key, released, now),
      unanswered: key => this.#wake(key),
      failed: error => listener.failed(error),
    })
    this.#records = new Records(kind, schedule, table.holds, doubt, error => listener.failed(error))
  }

  // The beginning of a hold.

  /**
   * Turns a grant into a hold, at `now`. If a re-entry's lease is longer than the lease of the owner's first hold, that
   * first hold is prolonged, too.
   */
  take(asked: Asked, grant: Granted | Inherited, now: number): Hold {
    // The key has a state, because it has the waiter.
    const state = this.#table.states.get(asked.claim.key) as KeyState
    const begun = grant.block ? state.runOf(asked.claim, grant, now, asked.alone, this.#records) : undefined
    const run = 'run' in grant ? grant.run : begun
    const hold = new Hold(asked, grant, run, now, this.#count++)
    this.#table.holds.set(hold.name.id, hold)
    state.addHold(hold)
    if (hold.via === 'reentry') this.#raiseFirst(hold, grant.around)
    if (this.#closed) return hold
    this.#fresh.add(hold)
    if (this.#fresh.size > MOST_FRESH) this.#planFresh()
    const at = Math.min(hold.due, hold.deadline, now + LOOK)
    if (at < this.dueAt) this.#schedule.set(this, at)
    return hold
  }

  /** Called when the lock is handed on to another waiter of this client: the hold has ended. */
  handedOn(hold: Hold, now: number): void {
    this.#remove(hold)
    this.#listener.released(hold, now - hold.since)
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
    const run = this.#table.states.get(key)?.naming(owner)
    const recording = run && this.#records.now(run)
    // If the caller gives up while this promise is pending, no other code handles its rejection.
    recording?.catch(() => {})
    return recording
  }

  // What is known of a hold.

  /** Returns for how many ms this client can still rely on the hold; 0 if the hold may have ended. */
  remaining(hold: Hold): number {
    const left = hold.remaining(this.#clock.now())
    const behind = this.#behind(hold.sent)
    if (behind === 0) return left
    this.#look()
    return Math.max(0, left - behind)
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
    const hold = this.#table.states.get(key)?.oldest
    if (!hold || this.remaining(hold) === 0 || hold.via === 'reentry') return undefined
    return hold.since > then ? { label: hold.claim.label, since: hold.since } : undefined
  }

  /**
   * Asks Redis whether the hold with this id still exists, and whether the other holds of the same grant (the owner's
   * re-entries) do. `token`: the token of the grant that a message has reported for this id. If the hold's own token is
   * not smaller, the message says nothing new, and Redis is not asked.
   */
  doubt(id: string, token = NEVER): void {
    const hold = this.#table.holds.get(id)
    if (hold && hold.token < token) this.#doubt(hold)
  }

  /** Called when a message says that a forced release has taken this hold away. */
  taken(id: string): void {
    const hold = this.#table.holds.get(id)
    for (const each of hold ? this.#ofGrant(hold) : []) each.taken = true
    this.doubt(id)
  }

  /** Called when this hold has certainly ended without a release. */
  gone(id: string, why: string): void {
    const hold = this.#table.holds.get(id)
    if (hold?.state.is === 'held') this.#lose(hold, why)
  }

  /**
   * Asks Redis whether the holds of `key`, or all holds, still exist. Called when messages about lost holds may have
   * been missed.
   */
  doubtAll(key?: string): void {
    this.#ask(key === undefined ? [...this.#table.holds.values()] : (this.#table.states.get(key)?.holds ?? []))
  }

  // The end of a hold.

  /** Releases the hold. Resolves to true if this call has ended a live hold. Rejects with LockConnectionError. */
  release(hold: Hold): Promise<boolean> {
    const now = this.#clock.now()
    // Undefined if the hold has ended, and this client has no waiter and no other hold of the lock.
    const state = this.#table.states.get(hold.key)
    if (now >= hold.deadline) this.#expire(hold, now)
    if (hold.state.is === 'held') state?.releasing(now)
    // Only a hold that belongs to a run of hand-offs can be handed on within this client.
    if (hold.run && state?.handOn(hold, now)) return yes
    const wait = hold.run !== undefined && state?.wantsHeir(hold, now) === true
    return new Promise<boolean>(resolve => {
      if (!hold.release(resolve)) return resolve(false)
      if (hold.run && !wait) this.#endRun(hold.run)
      const released = wait ? this.#handOnOrRelease(hold) : this.#kind.release(hold.name, hold.run?.last)
      released.then(
        // `answer`: undefined if the lock was handed on.
        answer => {
          if (answer) {
            const now = this.#clock.now()
            this.endings.recent?.add(hold.name, hold.run?.last)
            this.#follow(hold.key, answer, now)
            if (answer.ended) this.#listener.released(hold, now - hold.since)
            else this.#lose(hold, 'Redis no longer knew this hold when it was released')
          }
          hold.end()
          this.#remove(hold)
          resolve(answer?.ended ?? true)
        },
        error => {
          this.#wake(hold.key)
          const pending = hold.state.is === 'releasing'
          hold.end()
          this.#remove(hold)
          if (pending) resolve(rejection(named(hold.key, error)))
        },
      )
    })
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
   * Makes the hold last until `ms` from now. Rejects with LockLostError if the hold has ended, and with
   * LockConnectionError if Redis does not answer, or if the kind may not renew the hold for that long (`shortfall`).
   */
  async renew(hold: Hold, ms: number): Promise<void> {
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
    const short = this.#kind.shortfall?.(hold.name, ms)
    const question = hold.renew(short?.ms ?? ms, now)
    const asked = this.#kind.renew([question]).finally(() => hold.renewed())
    const patience = { milliseconds: NEVER, signal: hold.signal }
    const [renewed] = await pTimeout(asked, patience).catch(error => {
      throw error instanceof LockClosedError
        ? new LockLostError(hold.key, 'the client was closed', error)
        : traced(named(hold.key, error))
    })
    this.#learn(hold, question, renewed!)
    if (hold.remaining(this.#clock.now()) === 0) {
      throw new LockLostError(hold.key, 'its lease ended before Redis had confirmed the renewal')
    }
    if (short) throw traced(named(hold.key, short.error))
  }

  /**
   * Declares all holds lost, because the client is closed. Their `signal`s abort. Redis keeps the holds until
   * `releaseAll`.
   */
  loseAll(): void {
    for (const hold of [...this.#table.holds.values()]) {
      this.#expire(hold, this.#clock.now())
      if (hold.state.is !== 'held') continue
      this.#declareLost(hold, new LockClosedError(hold.key))
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
      if (this.#table.holds.size > 0) this.#allEnded = resolve
      else resolve()
    })
    await this.endings.over()
  }

  /** Stops all renewals. From now on, the client does not notice when a hold ends. */
  close(): void {
    this.#closed = true
    this.#fresh.clear()
    this.#agenda.clear()
    this.#schedule.delete(this)
  }

  // Release in Redis.

  /**
   * Waits for the end of the event loop's turn. Then hands the lock on, or releases it in Redis if no waiter of this
   * client can take it. The head of this file says why.
   */
  async #handOnOrRelease(hold: Hold): Promise<Released | undefined> {
    await endOfTurn()
    if (this.#table.states.get(hold.key)?.handOn(hold, this.#clock.now())) return undefined
    if (hold.run) this.#endRun(hold.run)
    return this.#kind.release(hold.name, hold.run?.last)
  }

  /** Applies the reply to a release in Redis. Redis may have passed the lock on to waiters of this client. */
  #follow(key: string, { heard, successors }: Released, now: number): void {
    for (const { id, grant } of successors ?? []) {
      if (!this.grantedByReply(id, grant, now)) this.endings.giveBack({ key, id })
    }
    const { states } = this.#table
    if (heard > 0) this.#table.of(key).released(heard, now)
    else states.get(key)?.released(heard, now)
  }

  /**
   * Called when the reply to this client's own release grants the lock to a waiter. Returns false if no waiter has that
   * id.
   */
  grantedByReply(id: string, grant: Granted, now: number): boolean {
    const waiter = this.#table.waiters.get(id)
    if (!waiter) return false
    // With `minHold`, Redis may keep the hold for longer than its lease.
    const deadline = Math.min(grant.deadline, now + waiter.claim.lease)
    this.#table.of(waiter.claim.key).found(waiter, { ...grant, deadline }, now)
    return true
  }

  /**
   * Called when a release was not answered, or a hold was lost. The lock may be free, so the first waiter in line
   * tries.
   */
  #wake(key: string): void {
    this.#table.states.get(key)?.wake(this.#clock.now())
  }

  #endRun(run: Run): void {
    run.end()
    this.#table.states.get(run.name.key)?.endRun(run)
    this.#records.forget(run)
  }

  #notReleased(key: string, error: unknown): void {
    const ours = error instanceof LockError
    this.#listener.failed(ours ? new LockConnectionError(UNCONFIRMED, error.cause, key) : error)
  }

  // Renewals.

  due(now: number): void {
    this.#look()
    this.#planFresh()
    const woken: Hold[] = []
    // A hold whose renewal is due in a moment is renewed with those that are due now.
    for (
      let { first } = this.#agenda;
      first && first.dueAt - first.length * TOGETHER <= now;
      first = this.#agenda.first
    ) {
      this.#agenda.delete(first)
      woken.push(first)
    }
    const anyDue = woken.some(hold => Math.min(hold.due, hold.deadline) <= now)
    for (const hold of woken) if (this.#lives(hold) && now >= hold.deadline) this.#runOut(hold)
    // Holds with short leases come first, because they have the least time left if something delays the answers.
    const due = woken
      .filter(hold => anyDue && this.#lives(hold) && hold.due - hold.length * TOGETHER <= now)
      .sort((a, b) => a.length - b.length || a.number - b.number)
    for (const some of this.#byPlace(due)) this.#renew(some, now)
    for (const hold of woken) if (this.#lives(hold)) this.#plan(hold)
    const { first } = this.#agenda
    if (first) this.#wakeBy(first.dueAt, now)
  }

  /** Puts these holds in doubt: Redis is asked now whether they still exist. */
  #ask(holds: Iterable<Hold>): void {
    const now = this.#clock.now()
    for (const hold of holds) {
      hold.doubt(now)
      this.#plan(hold)
      this.#wakeBy(hold.dueAt, now)
    }
  }

  /**
   * Asks Redis now whether this hold, and all other holds of the same grant, still exist. An owner that has re-entered
   * often may lose thousands of holds at once, and a message arrives for each of them. After the first message, Redis
   * is about to be asked about all these holds. Until then, the other messages have no effect.
   */
  #doubt(hold: Hold): void {
    if (!hold.isNext(this.#clock.now())) this.#ask(this.#ofGrant(hold))
  }

  #ofGrant(hold: Hold): Hold[] {
    return this.#table.states.get(hold.key)?.ofGrant(hold) ?? []
  }

  /** Asks Redis about all holds, if the clock may have fallen behind since the last call. */
  #look(): void {
    const since = this.#lookedAt
    this.#lookedAt = this.#clock.now()
    if (this.#behind(since) > 0) this.#ask([...this.#table.holds.values()])
  }

  #behind(since: number): number {
    return this.#clock.behind?.(since) ?? 0
  }

  #wakeBy(at: number, now: number): void {
    const by = Math.min(at, now + LOOK)
    if (by < this.dueAt && !this.#closed) this.#schedule.set(this, by)
  }

  #planFresh(): void {
    for (const hold of this.#fresh) this.#plan(hold)
  }

  /** Puts the hold on the agenda. */
  #plan(hold: Hold): void {
    if (this.#closed) return
    this.#fresh.delete(hold)
    const { lease } = hold
    if (lease && hold.renewUntil > hold.since) this.#forgotten.register(lease, hold)
    // Only the program may keep the lease.
    hold.lease = undefined
    this.#agenda.set(hold, Math.min(hold.due, hold.deadline))
  }

  #byPlace(holds: readonly Hold[]): Hold[][] {
    const places = new Map<string, Hold[]>()
    for (const hold of holds) {
      const place = this.#kind.placeOf(hold.key)
      const some = places.get(place)
      if (some) some.push(hold)
      else places.set(place, [hold])
    }
    return [...places.values()]
  }

  async #renew(holds: Hold[], now: number): Promise<void> {
    const questions = holds.map(hold => hold.ask(now))
    let answers: Renewed[] | undefined
    try {
      answers = await this.#kind.renew(questions)
    } catch {
      // A missing answer does not mean that the holds are lost. Until the deadline, Redis is asked again at short
      // intervals.
    }
    const then = this.#clock.now()
    for (const [i, hold] of holds.entries()) {
      const answer = answers?.[i] ?? 'unknown'
      hold.answered(answer === 'unknown' ? then + Math.min(1_000, hold.length / 10) : undefined)
      this.#learn(hold, questions[i]!, answer)
      if (!this.#lives(hold)) continue
      this.#plan(hold)
      this.#wakeBy(hold.dueAt, then)
    }
  }

  /** Applies Redis's answer about a hold, unless the hold has ended in the meantime. */
  #learn(hold: Hold, question: Question, renewed: Renewed): void {
    if (hold.state.is !== 'held' || renewed === 'unknown') return
    if (renewed === 'lost') return this.#lose(hold, 'Redis no longer knows this hold')
    if (renewed === 'replaced')
      return this.#leaveBehind(hold, 'this hold was taken away, and the lock was granted again')
    hold.confirmed(question, renewed, this.#clock.now(), this.#behind(hold.sent))
    if (question.ms > 0) this.#listener.renewed(hold)
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
    const { holds, states } = this.#table
    const first = this.#kind.shared ? holds.get(around ?? '') : states.get(hold.key)?.oldest
    if (first?.token !== hold.token || first.via === 'reentry') return
    if (hold.length > first.length) first.raise(this.#kind.raised?.(first.name, hold.name) ?? hold.deadline)
  }

  // The loss of a hold.

  /** Ends the hold if its deadline has passed. The timer also does this, but it may be late. */
  #expire(hold: Hold, now: number): void {
    if (now >= hold.deadline && this.#lives(hold)) this.#runOut(hold)
  }

  #runOut(hold: Hold): void {
    const { state } = hold
    if (state.is !== 'releasing') return this.#leaveBehind(hold, 'its lease ran out')
    // The deadline has passed before the release was answered. The hold is over, by its release or by the end of its
    // lease. It does not count as lost.
    hold.end()
    this.#remove(hold)
    state.resolve(false)
  }

  /**
   * Returns whether this hold still lasts. After a hand-off, the next hold has the same id in Redis, but is another
   * hold.
   */
  #lives(hold: Hold): boolean {
    return this.#table.holds.get(hold.name.id) === hold
  }

  #remove(hold: Hold): void {
    const { holds, states } = this.#table
    const { id, key } = hold.name
    if (holds.get(id) !== hold) return
    if (!this.#fresh.delete(hold)) this.#agenda.delete(hold)
    holds.delete(id)
    states.get(key)?.dropHold(hold)
    if (holds.size === 0) {
      this.#allEnded?.()
      if (this.#kind.local) this.#schedule.delete(this)
    }
    if (this.#listener.closing) this.#listener.ended()
  }

  #lose(hold: Hold, why: string): void {
    const outage = this.#listener.outage()
    const reason = hold.taken ? 'it was taken away by a forced release' : why
    this.#declareLost(hold, new LockLostError(hold.key, outage ? `${reason}; ${outage.message}` : reason, outage))
  }

  #declareLost(hold: Hold, loss: Loss): void {
    this.#remove(hold)
    if (!hold.lose(loss)) return
    this.#listener.lost(hold, loss, this.#clock.now() - hold.since)
    if (hold.run) this.#endRun(hold.run)
    this.#wake(hold.key)
  }

  /**
   * Declares a hold lost that Redis may still have. There are two cases. First, the hold's deadline may have passed in
   * this client. In Redis, the hold lasts a moment longer. If its owner has other holds, it lasts for as long as they
   * are renewed. Second, the hold may have been taken away, and Redis may have granted the lock to the same id again.
   * Then Redis has a new hold with this id. Its release is planned before the loss is reported, because a listener may
   * close the client when it hears of the loss. `close` must then know that Redis may still have the hold.
   */
  #leaveBehind(hold: Hold, why: string): void {
    this.endings.later(hold)
    this.#lose(hold, why)
  }
}

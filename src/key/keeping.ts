/**
 * Keeps the holds of a client while they last: renews them in time, or declares them lost. holds.ts has their beginning and
 * their end.
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
 * only when it is `LOOK` ms old, or needs attention before. Most holds have ended by then. The end of a hold does not
 * stop the timer, unless the locks are in this process, where a test may look for timers that are left.
 *
 * While the machine is suspended, timers stand still. After it, the clock jumps ahead, and at the next look the holds
 * whose deadlines have passed are lost. If the clock is in doubt (`Clock.behind`), so is every hold: Redis is asked about
 * all of them, and until it has answered, `remaining` is careful, but a hold is lost only at its deadline.
 */
import type { AsyncResource } from 'node:async_hooks'
import type { Clock } from '../clock.ts'
import { LockError, LockLostError } from '../errors.ts'
import { Heap } from '../heap.ts'
import type { Kind, Renewed } from '../kind.ts'
import { List } from '../list.ts'
import type { Endings } from './endings.ts'
import type { Hold, Loss, Question } from './hold.ts'
import type { Run } from './run.ts'
import type { Due, Schedule } from './schedule.ts'
import type { Table } from './table.ts'

export interface HoldListener {
  renewed(hold: Hold): void
  /** Called when a release has ended the hold, which lasted `held` ms. `context`: that of the release. */
  released(hold: Hold, held: number, context?: AsyncResource): void
  /** Captures the present async context; undefined: nobody listens to the event of a release. */
  context(): AsyncResource | undefined
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
/** While there are holds, they are looked at at least this often, in ms. */
const LOOK = 200
const NEVER = Number.POSITIVE_INFINITY
const FORGOTTEN =
  'the program has dropped its lease without a release, so the lock stays taken until this process ends, or `forceRelease` takes it away'

export abstract class Keeping implements Due {
  slot = -1
  dueAt = NEVER
  /** Releases in the background. */
  abstract readonly endings: Endings
  protected readonly kind: Kind
  /** The kind, for what no caller waits for. */
  protected readonly background: Kind
  protected readonly clock: Clock
  protected readonly table: Table
  protected readonly listener: HoldListener
  /** Set while `close` waits for releases that callers have begun. */
  protected allEnded: (() => void) | undefined
  readonly #schedule: Schedule
  /** Holds that are not on the agenda yet, oldest first. The timer fires before the first of them needs attention. */
  readonly #fresh = new List<Hold>()
  /** The holds on the agenda, each with the time when it needs attention: when Redis must be asked, or its deadline. */
  readonly #agenda = new Heap<Hold>()
  /** When it was last checked whether the clock may be behind, in monotonic ms. */
  #lookedAt: number
  #closed = false
  /**
   * Notices that a lease was garbage-collected. A lease is registered only when its hold is `LOOK` ms old, because to
   * register each lease at its grant would take a tenth of the time of a hand-off within the client.
   */
  readonly #forgotten = new FinalizationRegistry<Hold>(hold => {
    if (hold.state.is !== 'held' || hold.renewUntil <= this.clock.now()) return
    this.listener.failed(new LockError('ERR_LOCK_FORGOTTEN', `lock "${hold.key}": ${FORGOTTEN}`, hold.key))
  })

  constructor(kind: Kind, schedule: Schedule, table: Table, listener: HoldListener) {
    this.kind = kind
    this.background = kind.background?.kind ?? kind
    this.clock = schedule.clock
    this.#schedule = schedule
    this.table = table
    this.listener = listener
    this.#lookedAt = schedule.clock.now()
  }

  /** Ends the run of a hold that is lost. */
  protected abstract endRun(run: Run): void

  /** Called for each new hold. */
  protected keep(hold: Hold, now: number): void {
    if (this.#closed) return
    this.#fresh.add(hold)
    if (this.#behind(hold.sent) > 0) return this.#ask([hold])
    const at = Math.min(hold.due, hold.deadline, now + LOOK)
    if (at < this.dueAt) this.#schedule.set(this, at)
  }

  /** Stops all renewals. From now on, the client does not notice when a hold ends. */
  close(): void {
    this.#closed = true
    for (const hold of [...this.#fresh]) this.#fresh.delete(hold)
    this.#agenda.clear()
    this.#schedule.delete(this)
  }

  // What is known of a hold.

  /** Returns for how many ms this client can still rely on the hold; 0 if the hold may have ended. */
  remaining(hold: Hold): number {
    const now = this.clock.now()
    this.look(now)
    return Math.max(0, hold.remaining(now) - this.#behind(hold.sent))
  }

  /** Returns whether the hold lasts, as far as this client knows. A hold that is in doubt lasts until Redis denies it. */
  lasts(hold: Hold): boolean {
    return hold.remaining(this.clock.now()) > 0
  }

  /**
   * Asks Redis whether the hold with this id still exists, and whether the other holds of the same grant (the owner's
   * re-entries) do. `token`: the token of the grant that a message has reported for this id. If the hold's own token is
   * not smaller, the message says nothing new, and Redis is not asked.
   */
  doubt(id: string, token = NEVER): void {
    const hold = this.table.holds.get(id)
    if (hold && hold.token < token) this.inDoubt(hold)
  }

  /** Called when a message says that a forced release has taken this hold away. */
  taken(id: string): void {
    const hold = this.table.holds.get(id)
    if (hold && !hold.taken) for (const each of this.#ofGrant(hold)) each.taken = true
    this.doubt(id)
  }

  /** Called when this hold has certainly ended without a release. */
  gone(id: string, why: string): void {
    const hold = this.table.holds.get(id)
    if (hold?.state.is === 'held') this.lose(hold, why)
  }

  /**
   * Asks Redis whether the holds of `key`, or all holds, still exist. Called when messages about lost holds may have
   * been missed.
   */
  doubtAll(key?: string): void {
    this.#ask(key === undefined ? this.table.holds.values() : (this.table.states.get(key)?.holds ?? []))
  }

  // Renewals.

  due(now: number): void {
    this.look(now)
    this.#planFresh(now)
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
    for (const hold of woken) if (this.#lives(hold)) this.#plan(hold, now)
    const { first } = this.#agenda
    if (first) this.#wakeBy(first.dueAt, now)
    else if (this.#fresh.first) this.#wakeBy(NEVER, now)
  }

  /** Puts these holds in doubt: Redis is asked now whether they still exist. */
  #ask(holds: Iterable<Hold>): void {
    const now = this.clock.now()
    for (const hold of holds) {
      hold.doubt(now)
      this.#plan(hold, now)
      this.#wakeBy(hold.dueAt, now)
    }
  }

  /**
   * Asks Redis now whether this hold, and all other holds of the same grant, still exist. An owner that has re-entered
   * often may lose thousands of holds at once, and a message arrives for each of them. After the first message, Redis
   * is about to be asked about all these holds. Until then, the other messages have no effect.
   */
  protected inDoubt(hold: Hold): void {
    if (!hold.isNext(this.clock.now())) this.#ask(this.#ofGrant(hold))
  }

  #ofGrant(hold: Hold): readonly Hold[] {
    return this.table.states.get(hold.key)?.ofGrant(hold) ?? []
  }

  /** Asks Redis about all holds, if the clock has been in doubt since the last call. */
  protected look(now: number): void {
    if (this.#behind(this.#lookedAt) > 0) this.#ask(this.table.holds.values())
    this.#lookedAt = now
  }

  #behind(since: number): number {
    return this.clock.behind?.(since) ?? 0
  }

  #wakeBy(at: number, now: number): void {
    const by = Math.min(at, now + LOOK)
    if (by < this.dueAt && !this.#closed) this.#schedule.set(this, by)
  }

  #planFresh(now: number): void {
    for (const hold of [...this.#fresh]) {
      if (now - hold.since >= LOOK || Math.min(hold.due, hold.deadline) < now + LOOK) this.#plan(hold, now)
    }
  }

  /** Puts the hold on the agenda. */
  #plan(hold: Hold, now: number): void {
    if (this.#closed) return
    this.#fresh.delete(hold)
    const { lease } = hold
    if (lease && now - hold.since >= LOOK) {
      if (hold.renewUntil > hold.since) this.#forgotten.register(lease, hold)
      // Only the program may keep the lease.
      hold.lease = undefined
    }
    this.#agenda.set(hold, Math.min(hold.due, hold.deadline))
  }

  #byPlace(holds: readonly Hold[]): Hold[][] {
    const places = new Map<string, Hold[]>()
    for (const hold of holds) {
      const place = this.kind.placeOf(hold.key)
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
      answers = await this.background.renew(questions)
    } catch {
      // A missing answer does not mean that the holds are lost. Until the deadline, Redis is asked again at short
      // intervals.
    }
    const then = this.clock.now()
    for (const [i, hold] of holds.entries()) {
      const answer = answers?.[i] ?? 'unknown'
      hold.answered(answer === 'unknown' ? then + Math.min(1_000, hold.length / 10) : undefined)
      this.learn(hold, questions[i]!, answer)
      if (!this.#lives(hold)) continue
      this.#plan(hold, then)
      this.#wakeBy(hold.dueAt, then)
    }
  }

  /** Applies Redis's answer about a hold, unless the hold has ended in the meantime. */
  protected learn(hold: Hold, question: Question, renewed: Renewed): void {
    if (hold.state.is !== 'held' || renewed === 'unknown') return
    if (renewed === 'lost') return this.lose(hold, 'Redis no longer knows this hold')
    if (renewed === 'replaced')
      return this.#leaveBehind(hold, 'this hold was taken away, and the lock was granted again')
    hold.confirmed(question, renewed, this.clock.now(), this.#behind(hold.sent))
    if (question.ms > 0) this.listener.renewed(hold)
  }

  // The loss of a hold.

  /** Ends the hold if its deadline has passed. The timer also does this, but it may be late. */
  protected expire(hold: Hold, now: number): void {
    if (now >= hold.deadline && this.#lives(hold)) this.#runOut(hold)
  }

  #runOut(hold: Hold): void {
    const { state } = hold
    const isOver = hold.renewUntil > hold.since && hold.renewUntil <= this.clock.now()
    const why = isOver ? 'maxHold was over, and its lease ran out' : 'its lease ran out'
    if (state.is !== 'releasing') return this.#leaveBehind(hold, why)
    // The deadline has passed before the release was answered. The hold is over, by its release or by the end of its
    // lease. It does not count as lost.
    hold.end()
    this.remove(hold)
    state.resolve(false)
  }

  /**
   * Returns whether this hold still lasts. After a hand-off, the next hold has the same id in Redis, but is another
   * hold.
   */
  #lives(hold: Hold): boolean {
    return this.table.holds.get(hold.name.id) === hold
  }

  protected remove(hold: Hold): void {
    const { holds, states } = this.table
    const { id, key } = hold.name
    if (holds.get(id) !== hold) return
    if (!this.#fresh.delete(hold)) this.#agenda.delete(hold)
    holds.delete(id)
    states.get(key)?.dropHold(hold)
    if (holds.size === 0) {
      this.allEnded?.()
      if (this.kind.background) this.#schedule.delete(this)
    }
    if (this.listener.closing) this.listener.ended()
  }

  protected lose(hold: Hold, why: string): void {
    const outage = this.listener.outage()
    const reason = hold.taken ? 'it was taken away by a forced release' : why
    this.declareLost(hold, new LockLostError(hold.key, outage ? `${reason}; ${outage.message}` : reason, outage))
  }

  protected declareLost(hold: Hold, loss: Loss): void {
    this.remove(hold)
    if (!hold.lose(loss)) return
    this.listener.lost(hold, loss, this.clock.now() - hold.since)
    if (hold.run) this.endRun(hold.run)
    this.wake(hold.key)
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
    this.lose(hold, why)
  }

  /**
   * Called when a release was not answered, or a hold was lost. The lock may be free, so the first waiter in line
   * tries.
   */
  protected wake(key: string): void {
    this.table.states.get(key)?.wake(this.clock.now())
  }
}

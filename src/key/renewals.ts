/**
 * Renews the holds of a client while they last, and says when one is over. holds.ts has their beginning and their end.
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
import type { Clock } from '../clock.ts'
import { LockError } from '../errors.ts'
import { Heap } from '../heap.ts'
import type { Kind, Renewed } from '../kind.ts'
import { List } from '../list.ts'
import type { Hold, HoldQuestion } from './hold.ts'
import type { Due, Schedule } from './schedule.ts'
import type { Table } from './table.ts'

/** Renewals that are due within this fraction of the lease's length are sent together. */
const TOGETHER = 1 / 20
/** While there are holds, they are looked at at least this often, in ms. */
const LOOK = 200
const NEVER = Number.POSITIVE_INFINITY
const FORGOTTEN =
  'the program has dropped its lease without a release, so the lock stays taken until this process ends, or `forceRelease` takes it away'

export class Renewals implements Due {
  slot = -1
  dueAt = NEVER
  readonly #kind: Kind
  /** Whether the locks are in this process, where a test may look for timers that are left. */
  readonly #local: boolean
  readonly #clock: Clock
  readonly #table: Table
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
    if (hold.state.is !== 'held' || hold.renewUntil <= this.#clock.now()) return
    hold.keeper.failed(new LockError('ERR_LOCK_FORGOTTEN', `lock "${hold.key}": ${FORGOTTEN}`, hold.key))
  })

  constructor(kind: Kind, schedule: Schedule, table: Table) {
    this.#kind = kind.traits.background?.kind ?? kind
    this.#local = kind.traits.background !== undefined
    this.#clock = schedule.clock
    this.#schedule = schedule
    this.#table = table
    this.#lookedAt = schedule.clock.now()
  }

  add(hold: Hold, now: number): void {
    if (this.#closed) return
    this.#fresh.add(hold)
    if (this.behind(hold.sent) > 0) return this.ask([hold])
    const at = Math.min(hold.due, hold.deadline, now + LOOK)
    if (at < this.dueAt) this.#schedule.set(this, at)
  }

  drop(hold: Hold): void {
    if (this.#closed) return
    this.#fresh.delete(hold)
    this.#agenda.delete(hold)
    if (this.#local && this.#table.holds === 0) this.#schedule.delete(this)
  }

  /** Stops all renewals. From now on, the client does not notice when a hold ends. */
  close(): void {
    this.#closed = true
    this.#agenda.clear()
    this.#schedule.delete(this)
  }

  /** Puts these holds in doubt: Redis is asked now whether they still exist. */
  ask(holds: Iterable<Hold>): void {
    const now = this.#clock.now()
    for (const hold of holds) {
      hold.doubt(now)
      this.#plan(hold, now)
      this.#wakeBy(hold.dueAt, now)
    }
  }

  /** Asks Redis about all holds, if the clock has been in doubt since the last call. */
  look(now: number): void {
    if (this.behind(this.#lookedAt) > 0) this.ask(this.#table.allHolds)
    this.#lookedAt = now
  }

  /** By how many ms the clock may be behind, because one clock of the machine has moved ahead alone since this time. */
  behind(since: number): number {
    return this.#clock.behind?.(since) ?? 0
  }

  /** Applies Redis's answer about a hold, unless the hold has ended in the meantime. */
  learn(hold: Hold, question: HoldQuestion, renewed: Renewed): void {
    if (hold.state.is !== 'held' || renewed === 'unknown') return
    if (renewed === 'lost') return hold.keeper.onUnknown(hold)
    if (renewed === 'replaced') return hold.keeper.onReplaced(hold)
    hold.confirmed(question, renewed, this.#clock.now(), this.behind(hold.sent))
    if (question.ms > 0) hold.keeper.onRenewed(hold)
  }

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
    for (const hold of woken) if (this.#table.lives(hold) && now >= hold.deadline) hold.keeper.onDeadline(hold)
    // Holds with short leases come first, because they have the least time left if something delays the answers.
    const due = woken
      .filter(hold => anyDue && this.#table.lives(hold) && hold.due - hold.length * TOGETHER <= now)
      .sort((a, b) => a.length - b.length || a.number - b.number)
    for (const some of this.#byPlace(due)) this.#renew(some, now)
    for (const hold of woken) if (this.#table.lives(hold)) this.#plan(hold, now)
    const { first } = this.#agenda
    if (first) this.#wakeBy(first.dueAt, now)
    else if (this.#fresh.first) this.#wakeBy(NEVER, now)
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
      hold.keeper.onLasting(hold)
    }
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
      this.learn(hold, questions[i]!, answer)
      if (!this.#table.lives(hold)) continue
      this.#plan(hold, then)
      this.#wakeBy(hold.dueAt, then)
    }
  }
}

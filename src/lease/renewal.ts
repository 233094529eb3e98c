/**
 * Renews a client's leases, where renewal is automatic, and notices the end of every hold. One timer serves all holds.
 *
 * A hold needs attention at the earlier of two times:
 *   due       when Redis has to be asked again. This is the case when a third of the lease has passed since this client
 *             sent the last request whose reply confirmed the hold. Renewals that are due at about the same time are
 *             sent together, many in one script call (in a cluster, one call per slot).
 *   deadline  when the hold may have ended in Redis. Then this client declares the hold lost, at once and for good. The
 *             hold's signal aborts before the server can grant the lock to another owner (I1, I8).
 *
 * While the machine is suspended, timers stand still. So the timer fires every `LOOK` ms while there are holds. After a
 * suspension, the clock jumps ahead, and the holds whose deadlines have passed are lost. If the clock may be behind
 * (`Clock.behind`), every hold is in doubt: Redis is asked about all of them.
 *
 * A renewal has three outcomes. Redis may report a new deadline. Redis may report that the hold is gone; this is final.
 * Or Redis may not answer. A missing answer proves nothing, so the renewal is tried again until the deadline. A hold
 * that is being released is not renewed, and the answer to a renewal under way is ignored. If the hold's deadline
 * passes before Redis has answered the release, the caller of the release waits no longer.
 *
 * Adding and removing a hold has to be cheap, because each use of an uncontended lock does both. So a new hold may move
 * the timer to an earlier time, but the end of a hold does not stop the timer. If the timer then fires although no hold
 * needs attention, it is set again. A new hold goes on the agenda only when the timer fires. Most holds have ended by
 * then, so they never go on the agenda.
 */
import pTimeout from 'p-timeout'
import type { Clock, Timer } from '../clock.ts'
import { LockClosedError, LockLostError, named, rejection, traced } from '../errors.ts'
import type { Kind, Renewed } from '../kind.ts'
import type { Hold, Question } from '../local/hold.ts'
import type { LocalLocks } from '../local/local-locks.ts'
import type { Loss } from '../local/states.ts'
import { Agenda } from './agenda.ts'

export interface RenewalListener {
  renewed(hold: Hold): void
  lost(hold: Hold, loss: Loss): void
  /**
   * Called when this client loses a hold that may still exist in Redis. There are two cases. First, the hold's deadline
   * may have passed in this client. In Redis, the hold lasts a moment longer. If its owner has other holds, it lasts
   * for as long as they are renewed. Second, the hold may have been taken away, and Redis may have granted the lock to
   * the same id again. Then Redis has a new hold with this id.
   */
  remains(hold: Hold): void
  /** Returns an error that says since when and why Redis is out of reach; undefined if it is within reach. */
  outage(): Error | undefined
  /** Called when the program no longer has the lease of a hold that is still renewed, so nothing can release it. */
  forgotten(hold: Hold): void
  /** Called when a hold has ended, in whatever way. */
  ended(): void
}

/** Renewals that are due within this fraction of the lease's length are sent together. */
const TOGETHER = 1 / 20
/** If more new holds than this wait for the timer, they go on the agenda at once. This limits the timer's work. */
const MOST_FRESH = 100
/**
 * While there are holds, the timer fires at least this often, in ms. Then the clock is read, and new holds go on the
 * agenda. From then on, a forgotten lease is noticed.
 */
const LOOK = 200
const NEVER = Number.POSITIVE_INFINITY

export class Renewal {
  /** Only this class adds holds to these locks, and removes holds from them. */
  readonly #locks: LocalLocks
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #listener: RenewalListener
  /**
   * Holds that are not on the agenda yet, because most holds end before they need attention. The timer fires before the
   * first of these holds needs attention.
   */
  readonly #fresh = new Set<Hold>()
  /**
   * The holds on the agenda, each with the time when it needs attention: when Redis must be asked about it, or its
   * deadline.
   */
  readonly #wakes = new Agenda<Hold>()
  /**
   * The same holds as in `#wakes`, each with the earliest time at which Redis may be asked about it. From that time on,
   * a request for another hold asks about this hold too, although it needs no attention yet.
   */
  readonly #ready = new Agenda<Hold>()
  /**
   * Notices that a lease was garbage-collected. A lease is registered when its hold goes on the agenda, because to
   * register each lease at its grant would take a tenth of the time of a hand-off within the client.
   */
  readonly #forgotten = new FinalizationRegistry<Hold>(hold => {
    if (hold.state.is === 'held' && hold.renewUntil > this.#clock.now()) this.#listener.forgotten(hold)
  })
  #timer: Timer | undefined
  #wakeAt = NEVER
  /** When this class last checked whether the clock may be behind, in monotonic ms. */
  #lookedAt: number
  #closed = false

  constructor(kind: Kind, clock: Clock, locks: LocalLocks, listener: RenewalListener) {
    this.#locks = locks
    this.#kind = kind
    this.#clock = clock
    this.#listener = listener
    this.#lookedAt = clock.now()
  }

  /**
   * Starts to watch a hold. After a re-entry of a shared lock, `around` is the id of the owner's first hold (see
   * `Granted`).
   */
  add(hold: Hold, around?: string): void {
    this.#locks.addHold(hold)
    if (hold.via === 'reentry') this.#raiseFirst(hold, around)
    if (this.#closed) return
    this.#fresh.add(hold)
    if (this.#fresh.size > MOST_FRESH) this.#planFresh()
    this.#wakeBy(Math.min(hold.due, hold.deadline))
  }

  /** Stops watching a hold that has ended or is about to end. */
  remove(hold: Hold): void {
    if (!this.#locks.has(hold)) return
    if (!this.#fresh.delete(hold)) {
      this.#wakes.delete(hold)
      this.#ready.delete(hold)
    }
    this.#locks.dropHold(hold)
    this.#listener.ended()
  }

  /**
   * Releases a hold, and resolves to whether the hold was live. If the hold's deadline passes before Redis answers,
   * resolves to false at the deadline. `release` sends the request. `wasLive` finds in Redis's answer whether the hold
   * was live.
   */
  end<A>(
    hold: Hold,
    release: (hold: Hold) => Promise<A>,
    wasLive: (answer: A, hold: Hold) => boolean,
    failed?: (hold: Hold) => void,
  ): Promise<boolean> {
    this.expire(hold)
    return new Promise<boolean>(resolve => {
      if (!hold.release(resolve)) return resolve(false)
      release(hold).then(
        answer => {
          const live = wasLive(answer, hold)
          if (!live) this.#lose(hold, 'Redis no longer knew this hold when it was released')
          this.#end(hold)
          resolve(live)
        },
        error => {
          failed?.(hold)
          const pending = hold.state.is === 'releasing'
          this.#end(hold)
          if (pending) resolve(rejection(named(hold.key, error)))
        },
      )
    })
  }

  /**
   * Asks Redis now whether this hold, and all other holds of the same grant, still exist. An owner that has re-entered
   * often may lose thousands of holds at once, and a message arrives for each of them. After the first message, Redis
   * is about to be asked about all these holds. Until then, the other messages have no effect.
   */
  doubt(hold: Hold): void {
    if (!hold.isNext(this.#clock.now())) this.doubtAll(this.#locks.get(hold.key)?.tenancy.ofGrant(hold) ?? [])
  }

  /** Returns for how many ms this client can still rely on the hold; 0 if the hold may have ended. */
  remaining(hold: Hold): number {
    const left = hold.remaining(this.#clock.now())
    const behind = this.#behind(hold.sent)
    if (behind === 0) return left
    this.#look()
    return Math.max(0, left - behind)
  }

  /** Asks Redis now whether these holds still exist. */
  doubtAll(holds: Iterable<Hold>): void {
    const now = this.#clock.now()
    for (const hold of holds) {
      hold.doubt(now)
      this.#plan(hold)
    }
  }

  /**
   * Makes one hold last until `ms` from now. Rejects with LockLostError if the hold has ended, and with
   * LockConnectionError if Redis does not answer, or if the kind may not renew the hold for that long (`shortfall`).
   */
  async renew(hold: Hold, ms: number): Promise<void> {
    this.expire(hold)
    const { state } = hold
    if (state.is !== 'held') {
      throw new LockLostError(
        hold.key,
        'this lease has ended, so it cannot be renewed; acquire the lock again',
        state.is === 'lost' ? state.loss : undefined,
      )
    }
    const short = this.#kind.shortfall?.(hold.name, ms)
    const question = hold.renew(short?.ms ?? ms, this.#clock.now())
    const asked = this.#kind.renew([question]).finally(() => hold.renewed())
    const patience = { milliseconds: Number.POSITIVE_INFINITY, signal: hold.signal }
    const [renewed] = await pTimeout(asked, patience).catch(error => {
      throw error instanceof LockClosedError
        ? new LockLostError(hold.key, 'the client was closed', error)
        : traced(named(hold.key, error))
    })
    this.#learn(hold, question, renewed)
    if (hold.remaining(this.#clock.now()) === 0) {
      throw new LockLostError(hold.key, 'its lease ended before Redis had confirmed the renewal')
    }
    if (short) throw traced(named(hold.key, short.error))
  }

  /** Ends the hold if its deadline has passed. The timer also does this, but it may be late. */
  expire(hold: Hold): void {
    if (this.#locks.has(hold) && this.#clock.now() >= hold.deadline) this.#runOut(hold)
  }

  /**
   * Declares a hold lost because its client is closed. Redis keeps the hold until the caller of this method releases it
   * there. Returns false if the hold had ended before, or is being released.
   */
  forsake(hold: Hold): boolean {
    this.expire(hold)
    if (hold.state.is !== 'held') return false
    this.#declareLost(hold, new LockClosedError(hold.key))
    return true
  }

  /** Stops asking Redis, and no longer notices the end of holds. A release that is under way still ends its hold. */
  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#fresh.clear()
    this.#wakes.clear()
    this.#ready.clear()
  }

  /** Puts the hold's next event on the agenda, and sets the timer to fire by then. */
  #plan(hold: Hold): void {
    if (this.#closed) return
    this.#fresh.delete(hold)
    const { due, lease } = hold
    if (lease && hold.renewUntil > hold.since) this.#forgotten.register(lease, hold)
    // Only the program may keep the lease.
    hold.lease = undefined
    this.#wakes.set(hold, Math.min(due, hold.deadline))
    this.#ready.set(hold, due - hold.length * TOGETHER)
    this.#wakeBy(this.#wakes.next)
  }

  #planFresh(): void {
    for (const hold of this.#fresh) this.#plan(hold)
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakeAt) return
    const now = this.#clock.now()
    this.#wakeAt = Math.min(at, now + LOOK)
    this.#timer?.cancel()
    this.#timer = this.#clock.after(this.#wakeAt - now, () => this.#wake())
  }

  /** Asks Redis about all holds, if the clock may have fallen behind since the last call. */
  #look(): void {
    const since = this.#lookedAt
    this.#lookedAt = this.#clock.now()
    if (this.#behind(since) > 0) this.doubtAll(this.#locks.holds)
  }

  #behind(since: number): number {
    return this.#clock.behind?.(since) ?? 0
  }

  #wake(): void {
    this.#look()
    // `#planFresh` must run before `#wakeAt` is reset. It would set the timer only for a hold that needs attention
    // before `#wakeAt`, and there is no such hold. So it sets no timer here.
    this.#planFresh()
    this.#wakeAt = NEVER
    const now = this.#clock.now()
    const woken = this.#wakes.due(now)
    for (const hold of woken) if (this.#locks.has(hold) && now >= hold.deadline) this.#runOut(hold)
    const ready = woken.length > 0 ? this.#ready.due(now) : []
    // Holds with short leases come first, because they have the least time left if something delays the answers.
    const due = ready
      .filter(hold => this.#locks.has(hold) && hold.due < NEVER)
      .sort((a, b) => a.length - b.length || a.number - b.number)
    for (const some of this.#byPlace(due)) this.#ask(some, now)
    for (const hold of [...woken, ...ready]) if (this.#locks.has(hold)) this.#plan(hold)
    this.#wakeBy(this.#wakes.next)
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

  async #ask(holds: Hold[], now: number): Promise<void> {
    const questions = holds.map(hold => hold.ask(now))
    let answers: Renewed[] | undefined
    try {
      answers = await this.#kind.renew(questions)
    } catch {
      // A missing answer does not mean that the holds are lost. Until the deadline, Redis is asked again at short
      // intervals.
    }
    for (const [i, hold] of holds.entries()) {
      const answer = answers ? answers[i] : 'unknown'
      hold.answered(answer === 'unknown' ? this.#clock.now() + Math.min(1_000, hold.length / 10) : undefined)
      this.#learn(hold, questions[i]!, answer)
      if (this.#locks.has(hold)) this.#plan(hold)
    }
  }

  /** Applies Redis's answer about a hold, unless the hold has ended in the meantime. */
  #learn(hold: Hold, question: Question, renewed: Renewed): void {
    if (hold.state.is !== 'held' || renewed === 'unknown') return
    if (renewed === undefined) return this.#lose(hold, 'Redis no longer knows this hold')
    if (renewed === 'anew') return this.#leaveBehind(hold, 'this hold was taken away, and the lock was granted again')
    const now = this.#clock.now()
    hold.confirmed(question, renewed, now, this.#behind(hold.sent))
    if (question.ms > 0) this.#listener.renewed(hold)
  }

  /**
   * Called after a re-entry. If the re-entry's lease is longer than the lease of the owner's first hold, this method
   * prolongs the first hold to the end of the re-entry's lease. If the kind has a method `raised`, the first hold is
   * prolonged to the time that `raised` returns. The scripts do the same in Redis.
   *
   * In a lock with one owner at a time, the first hold is this client's oldest hold of the lock. In a shared lock, the
   * oldest hold may belong to another owner, or may have been admitted from the queue after the owner's first hold. So
   * Redis sends the id of the first hold (`around`). If the first hold belongs to this client, this method prolongs it.
   */
  #raiseFirst(hold: Hold, around: string | undefined): void {
    const first = this.#kind.shared ? this.#locks.hold(around ?? '') : this.#locks.get(hold.key)?.tenancy.oldest
    if (first?.token !== hold.token || first.via === 'reentry') return
    if (hold.length > first.length) first.raise(this.#kind.raised?.(first.name, hold.name) ?? hold.deadline)
  }

  #runOut(hold: Hold): void {
    const { state } = hold
    if (state.is !== 'releasing') return this.#leaveBehind(hold, 'its lease ran out')
    // The deadline has passed before the release was answered. The hold is over, by its release or by the end of its
    // lease. It does not count as lost.
    this.#end(hold)
    state.resolve(false)
  }

  #end(hold: Hold): void {
    hold.end()
    this.remove(hold)
  }

  #lose(hold: Hold, why: string): void {
    const outage = this.#listener.outage()
    const reason = hold.taken ? 'it was taken away by a forced release' : why
    this.#declareLost(hold, new LockLostError(hold.key, outage ? `${reason}; ${outage.message}` : reason, outage))
  }

  #declareLost(hold: Hold, loss: Loss): void {
    this.remove(hold)
    if (hold.lose(loss)) this.#listener.lost(hold, loss)
  }

  /**
   * Declares a hold lost that Redis may still have. `remains` is called before the loss is reported, because a listener
   * may close the client when it hears of the loss. `close` must then know that Redis may still have the hold.
   */
  #leaveBehind(hold: Hold, why: string): void {
    this.#listener.remains(hold)
    this.#lose(hold, why)
  }
}

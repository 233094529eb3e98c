/**
 * Renews a client's leases, where renewal is automatic, and notices the end of every hold. One timer serves all holds.
 *
 * A hold needs attention at the earlier of two times:
 *   due       when Redis has to be asked again: a third of the lease after the request that last proved the hold.
 *             Renewals that are due at about the same time are sent together, many in one script call (in a cluster,
 *             one call per slot).
 *   deadline  when the hold may have ended in Redis. Then this client declares the hold lost, at once and for good. The
 *             hold's signal aborts before the server can grant the lock to another owner (I1, I8).
 *
 * A renewal has three outcomes. Redis may report a new deadline. Redis may report that the hold is gone; this is final.
 * Or Redis may not answer. A missing answer proves nothing, so the renewal is tried again until the deadline. A hold
 * that is being released is not renewed, and the answer to a renewal under way is ignored. But the hold's deadline
 * still counts: the release waits for its answer until then.
 *
 * Adding and removing a hold has to be cheap, because an uncontended lock does both all day. So the timer is only moved
 * to an earlier time, and never stopped for one hold. If the timer fires too early, it is set again. A new hold goes on
 * the agenda only when the timer fires, if the client still has the hold then. So most holds, which end soon, never get
 * on the agenda.
 */
import pTimeout from 'p-timeout'
import type { Clock, Timer } from '../clock.ts'
import { LockClosedError, LockLostError, named } from '../errors.ts'
import type { Kind, Renewed } from '../kind.ts'
import type { Hold, Question } from '../local/hold.ts'
import type { LocalLocks } from '../local/local-locks.ts'
import type { Loss } from '../local/states.ts'
import { Agenda } from './agenda.ts'

export interface RenewalListener {
  renewed(hold: Hold): void
  lost(hold: Hold, loss: Loss): void
  /**
   * Called when this client loses a hold that Redis may still have. If the hold's deadline has passed in this client,
   * Redis keeps the hold for a moment longer, or for as long as other holds of its owner are renewed. If the hold's id
   * was granted the lock again, Redis has the hold of that new grant.
   */
  remains(hold: Hold): void
  /** Called when this client no longer holds anything. */
  idle(): void
}

/** Renewals that are due within this fraction of the lease's length are sent together. */
const TOGETHER = 1 / 20
/** If more new holds than this wait for the timer, they go on the agenda at once. This limits the timer's work. */
const MOST_FRESH = 100
const NEVER = Number.POSITIVE_INFINITY

export class Renewal {
  /** Only this class adds holds to these locks, and removes holds from them. */
  readonly #locks: LocalLocks
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #listener: RenewalListener
  /**
   * Holds that are not on the agenda yet. Most of them end before anything is due. For a hold that lasts longer, the
   * timer fires in time.
   */
  readonly #fresh = new Set<Hold>()
  /**
   * The holds on the agenda, by the time when Redis must be asked about the hold, or when the hold's deadline passes.
   */
  readonly #wakes = new Agenda<Hold>()
  /**
   * The holds on the agenda, by the earliest time at which Redis may be asked about the hold together with other holds.
   */
  readonly #ready = new Agenda<Hold>()
  #timer: Timer | undefined
  #wakeAt = NEVER
  #closed = false

  constructor(kind: Kind, clock: Clock, locks: LocalLocks, listener: RenewalListener) {
    this.#locks = locks
    this.#kind = kind
    this.#clock = clock
    this.#listener = listener
  }

  /** Starts to watch a hold. `around`: see `Granted`. */
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
    if (this.#locks.holding === 0) this.#listener.idle()
  }

  /**
   * Ends a hold by its release. `wasLive` reads from the answer whether the hold was live. If the hold's deadline
   * passes before the answer, the promise resolves to false at that moment.
   */
  end<A>(
    hold: Hold,
    release: (hold: Hold) => Promise<A>,
    wasLive: (answer: A, hold: Hold) => boolean,
    failed?: (hold: Hold) => void,
  ): Promise<boolean> {
    this.expire(hold)
    return new Promise<boolean>((resolve, reject) => {
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
          this.#end(hold)
          reject(named(hold.key, error))
        },
      )
    })
  }

  /**
   * Asks Redis now whether all holds of this hold's grant still exist. Thousands of messages may say that these holds
   * are lost, one message for each; only the first has an effect.
   */
  doubt(hold: Hold): void {
    if (!hold.isNext(this.#clock.now())) this.doubtAll(this.#locks.get(hold.key)?.tenancy.ofGrant(hold) ?? [])
  }

  /** Asks Redis now whether these holds still exist, because messages about lost holds may have been missed. */
  doubtAll(holds: Iterable<Hold>): void {
    const now = this.#clock.now()
    for (const hold of holds) {
      hold.doubt(now)
      this.#plan(hold)
    }
  }

  /**
   * Makes one hold last until `ms` from now. Rejects with LockLostError if the hold has ended, and with
   * LockConnectionError if Redis does not answer.
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
    const question = hold.renew(ms)
    const asked = this.#kind.renew([question]).finally(() => hold.renewed())
    const patience = { milliseconds: Number.POSITIVE_INFINITY, signal: hold.signal }
    const [renewed] = await pTimeout(asked, patience).catch(error => {
      throw error instanceof LockClosedError
        ? new LockLostError(hold.key, 'the client was closed', error)
        : named(hold.key, error)
    })
    this.#learn(hold, question, renewed)
    if (hold.remaining(this.#clock.now()) === 0) {
      throw new LockLostError(hold.key, 'its lease ended before Redis had confirmed the renewal')
    }
  }

  /** Loses the hold if its deadline has passed. Called where the timer may be late. */
  expire(hold: Hold): void {
    if (this.#locks.has(hold) && this.#clock.now() >= hold.deadline) this.#runOut(hold)
  }

  /**
   * Loses a hold because its client is closed. Redis still has the hold; the caller has to release it there. Returns
   * false if the hold had ended before, or is being released.
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
    const { due } = hold
    this.#wakes.set(hold, Math.min(due, hold.deadline))
    this.#ready.set(hold, due - hold.length * TOGETHER)
    this.#wakeBy(this.#wakes.next)
  }

  #planFresh(): void {
    for (const hold of this.#fresh) this.#plan(hold)
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakeAt) return
    this.#wakeAt = at
    this.#timer?.cancel()
    this.#timer = this.#clock.after(at - this.#clock.now(), () => this.#wake())
  }

  #wake(): void {
    // The timer has fired, so `#wakeAt` is past, and no new hold needs attention before that time. So this call does
    // not set the timer.
    this.#planFresh()
    this.#wakeAt = NEVER
    const now = this.#clock.now()
    const woken = this.#wakes.due(now)
    for (const hold of woken) if (this.#locks.has(hold) && now >= hold.deadline) this.#runOut(hold)
    const ready = this.#ready.due(now)
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
      // A missing answer does not mean that the holds are lost. Redis is asked again soon, until the deadline.
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
    if (renewed === 'anew')
      return this.#leaveBehind(hold, 'this hold was taken away, and the lock was granted again since')
    hold.confirmed(question, renewed, this.#clock.now())
    if (question.ms > 0) this.#listener.renewed(hold)
  }

  /**
   * After a re-entry with a longer lease, prolongs the owner's first hold to the end of the re-entry's lease, or to the
   * time that `Kind.raised` returns. The scripts do the same in Redis. In a shared lock, this client's oldest hold may
   * be another owner's, or may have been admitted from the queue after the owner's first hold. So Redis names the first
   * hold in `around`, and this method prolongs that hold if this client has it.
   */
  #raiseFirst(hold: Hold, around: string | undefined): void {
    const first = this.#kind.shared ? this.#locks.hold(around ?? '') : this.#locks.get(hold.key)?.tenancy.oldest
    if (first?.token !== hold.token || first.via === 'reentry') return
    if (hold.length > first.length) first.raise(this.#kind.raised?.(first.name, hold.name) ?? hold.deadline)
  }

  #runOut(hold: Hold): void {
    const { state } = hold
    if (state.is !== 'releasing') return this.#leaveBehind(hold, 'its lease ran out')
    // The deadline came before the answer to the release. The release or the end of the lease has ended the hold, so
    // the hold is not lost.
    this.#end(hold)
    state.resolve(false)
  }

  #end(hold: Hold): void {
    hold.end()
    this.remove(hold)
  }

  #lose(hold: Hold, why: string): void {
    this.#declareLost(hold, new LockLostError(hold.key, why))
  }

  #declareLost(hold: Hold, loss: Loss): void {
    this.remove(hold)
    if (hold.lose(loss)) this.#listener.lost(hold, loss)
  }

  /**
   * Loses a hold that Redis may still have. `remains` is called before the loss, because a listener of the loss may
   * close the client.
   */
  #leaveBehind(hold: Hold, why: string): void {
    this.#listener.remains(hold)
    this.#lose(hold, why)
  }
}

/**
 * Ends waits while Redis is out of reach (I6). Redis is out of reach if there is no connection. For the waiters of a
 * line, Redis also counts as out of reach while it does not answer the line's requests, or answers "not now". A wait
 * ends when Redis has been out of reach for `patience` ms, counted from the start of the outage or of the wait,
 * whichever is later. One timer is set for the earliest end. Time counts only while this process runs.
 */
import { awake, type Clock, type Timer } from '../clock.ts'
import { outOfReach } from '../errors.ts'
import type { Asker } from '../local/effects.ts'

const NEVER = Number.POSITIVE_INFINITY

/**
 * The start of an outage, or of the first attempt of a line that got no answer, and the latest error. `since` is in ms
 * of a clock that counts only the time in which this process runs.
 */
interface Silence {
  readonly since: number
  error: Error
}

export class Outage {
  readonly #locks: { readonly all: Iterable<Asker> }
  readonly #clock: Clock
  readonly #patience: number
  /** Locks whose line has sent an attempt and got no answer. */
  readonly #silent = new Map<Asker, Silence>()
  #now: Silence | undefined
  /** Whether a connection has failed. False while only the first connection is still being made. */
  #known = false
  #timer: Timer | undefined
  #wakeAt = NEVER

  constructor(locks: { readonly all: Iterable<Asker> }, clock: Clock, patience: number) {
    this.#locks = locks
    this.#clock = awake(clock)
    this.#patience = patience
  }

  get error(): Error | undefined {
    return this.#now?.error
  }

  /** Why the connection has failed; undefined if it has not failed. */
  get known(): Error | undefined {
    return this.#known ? this.#now?.error : undefined
  }

  /**
   * Notes an outage, or a new reason for the outage. Returns true if the outage is new. `known` says whether a
   * connection has failed.
   */
  begin(error: Error, known: boolean): boolean {
    this.#known ||= known
    if (this.#now) {
      this.#now.error = error
      return false
    }
    this.#now = { since: this.#clock.now(), error }
    this.#wakeBy(this.#now.since + this.#patience)
    return true
  }

  over(): void {
    this.#now = undefined
    this.#known = false
    if (this.#silent.size === 0) this.#sleep()
  }

  /**
   * Called when an attempt of the line, begun at `since`, has failed with this error. If the attempt took all of
   * `patience`, its time counts against the patience of all waiters in the line.
   */
  failed(lock: Asker, since: number, error: Error): void {
    if (lock.line.size === 0 || this.#clock.now() - since < this.#patience) return
    this.#silent.set(lock, { since: this.#silent.get(lock)?.since ?? since, error })
    this.#wakeBy(this.#judge(lock))
  }

  /** Called when the line of this lock was answered, or the lock has no waiters left. */
  answered(lock: Asker): void {
    this.#silent.delete(lock)
  }

  close(): void {
    this.#now = undefined
    this.#sleep()
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakeAt) return
    this.#sleep()
    this.#wakeAt = at
    this.#timer = this.#clock.after(at - this.#clock.now(), () => {
      this.#wakeAt = NEVER
      this.#loseHope()
    })
  }

  #sleep(): void {
    this.#timer?.cancel()
    this.#wakeAt = NEVER
  }

  #loseHope(): void {
    // A waiter that arrives later has at least `patience` ms, so no check is needed earlier for such a waiter.
    let next = this.#now ? this.#clock.now() + this.#patience : NEVER
    for (const lock of [...(this.#now ? this.#locks.all : this.#silent.keys())])
      next = Math.min(next, this.#judge(lock))
    this.#wakeBy(next)
  }

  /** Ends the waits of this lock whose patience is over. Returns when to check again, on the clock of this class. */
  #judge(lock: Asker): number {
    const now = this.#clock.now()
    let next = now + this.#patience
    for (const waiter of [...lock.line.waiters, ...lock.queue.waiters]) {
      // A line without answers proves nothing about the queue, which has its own heartbeats.
      const silence = lock.line.waiters.has(waiter) ? this.#silent.get(lock) : undefined
      const since = Math.min(this.#now?.since ?? NEVER, silence?.since ?? NEVER)
      const end = Math.max(waiter.begun, since) + this.#patience
      if (end > now) next = Math.min(next, end)
      else lock.end(waiter, outOfReach((this.#now ?? silence)?.error as Error).of(lock.key))
    }
    return next
  }
}

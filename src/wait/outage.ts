/**
 * Ends waits while Redis is out of reach (I6). Redis is out of reach for every waiter while there is no connection. Of
 * a client's unfair waiters for a key, only the first asks Redis (local/line.ts). While this waiter gets no answer, or
 * the answer "not now", Redis counts as out of reach for all unfair waiters of the key. A wait ends when Redis has been
 * out of reach for `patience` ms, counted from the start of the outage or of the wait, whichever is later. One timer is
 * set for the earliest end. Time counts only while this process runs.
 */
import { awake, type Clock, type Timer } from '../clock.ts'
import { outOfReach } from '../errors.ts'
import type { Asker } from '../local/effects.ts'

const NEVER = Number.POSITIVE_INFINITY

/**
 * A time in which Redis does not answer. `since`: when the outage, or the first unanswered attempt, began, in ms of a
 * clock that counts only the time in which this process runs. `error`: the latest error.
 */
interface Silence {
  readonly since: number
  error: Error
}

export class Outage {
  readonly #locks: { readonly all: Iterable<Asker> }
  readonly #clock: Clock
  readonly #patience: number
  /** Locks whose unfair waiters have asked Redis and got no answer for `patience` ms. */
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

  /** For how many ms Redis has been out of reach; 0 if it is within reach. */
  get length(): number {
    return this.#now ? this.#clock.now() - this.#now.since : 0
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
   * Called when the first of the lock's unfair waiters has asked Redis at `since`, and the attempt has now failed with
   * this error. If the attempt took at least `patience` ms, Redis counts as out of reach for all unfair waiters of the
   * lock, from `since` on.
   */
  failed(lock: Asker, since: number, error: Error): void {
    if (lock.line.size === 0 || this.#clock.now() - since < this.#patience) return
    this.#silent.set(lock, { since: this.#silent.get(lock)?.since ?? since, error })
    this.#wakeBy(this.#judge(lock))
  }

  /** Called when Redis has answered a waiter of this lock, or the lock has no waiters left. */
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
    // During an outage, the next check comes after at most `patience` ms. That is early enough for waiters that arrive
    // meanwhile, because each of them may wait for `patience` ms.
    let next = this.#now ? this.#clock.now() + this.#patience : NEVER
    for (const lock of [...(this.#now ? this.#locks.all : this.#silent.keys())])
      next = Math.min(next, this.#judge(lock))
    this.#wakeBy(next)
  }

  /**
   * Ends each wait for this lock during which Redis has been out of reach for `patience` ms. Returns when to check
   * again, on `#clock`.
   */
  #judge(lock: Asker): number {
    const now = this.#clock.now()
    let next = now + this.#patience
    for (const waiter of [...lock.line.waiters, ...lock.queue.waiters]) {
      // The other unfair waiters depend on the answers to the first one, so an entry in `#silent` ends only the waits
      // of unfair waiters. Waiters in the queue have heartbeats of their own. If these fail for too long, requests.ts
      // ends the wait.
      const silence = lock.line.waiters.has(waiter) ? this.#silent.get(lock) : undefined
      const since = Math.min(this.#now?.since ?? NEVER, silence?.since ?? NEVER)
      const end = Math.max(waiter.begun, since) + this.#patience
      if (end > now) next = Math.min(next, end)
      else lock.end(waiter, outOfReach((this.#now ?? silence)?.error as Error).of(lock.key))
    }
    return next
  }
}

/**
 * The end of patience while Redis is out of reach (I6). That is: there is no connection; or there is one, but Redis
 * leaves the requests of a line unanswered or puts them off. A waiter is ended after `patience` ms of this, counted
 * from the start of the outage or from the waiter's own start, whichever is later. One timer is set for the earliest of
 * these ends. Only time in which this process ran counts.
 */
import { awake, type Clock, type Timer } from '../clock.ts'
import { outOfReach } from '../errors.ts'
import type { Asker } from '../local/effects.ts'

const NEVER = Number.POSITIVE_INFINITY

/** When the silence began, in ms that this process ran, and the latest reason for it. */
interface Silence {
  readonly since: number
  error: Error
}

export class Outage {
  readonly #locks: { readonly all: Iterable<Asker> }
  readonly #clock: Clock
  readonly #patience: number
  /** Locks whose lines have asked and got no answer. */
  readonly #silent = new Map<Asker, Silence>()
  #now: Silence | undefined
  /** Whether the connection has failed. False also if it has only not been made yet. */
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

  /** Why the connection failed; undefined if it has not. */
  get known(): Error | undefined {
    return this.#known ? this.#now?.error : undefined
  }

  /** The outage begins, or goes on for this reason. True: it is new. `known`: the connection has failed. */
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
   * An attempt of the line, begun at `since`, has failed with this error. If that took all of `patience`, the line has
   * gone unanswered since then, and this counts against the patience of the waiters behind the head too.
   */
  failed(lock: Asker, since: number, error: Error): void {
    if (lock.line.size === 0 || this.#clock.now() - since < this.#patience) return
    this.#silent.set(lock, { since: this.#silent.get(lock)?.since ?? since, error })
    this.#wakeBy(this.#judge(lock))
  }

  /** The line of this lock was answered, or the lock has no waiters any more. */
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
    // Waiters that arrive from now on have at least this much time left.
    let next = this.#now ? this.#clock.now() + this.#patience : NEVER
    for (const lock of [...(this.#now ? this.#locks.all : this.#silent.keys())])
      next = Math.min(next, this.#judge(lock))
    this.#wakeBy(next)
  }

  /** Ends the waiters of the lock whose patience is over. Returns when to judge again, in ms that this process ran. */
  #judge(lock: Asker): number {
    const now = this.#clock.now()
    let next = now + this.#patience
    for (const waiter of [...lock.line.waiters, ...lock.queue.waiters]) {
      // An unanswered line says nothing about the queue, which has its own heartbeats.
      const silence = lock.line.waiters.has(waiter) ? this.#silent.get(lock) : undefined
      const since = Math.min(this.#now?.since ?? NEVER, silence?.since ?? NEVER)
      const end = Math.max(waiter.begun, since) + this.#patience
      if (end > now) next = Math.min(next, end)
      else lock.end(waiter, outOfReach((this.#now ?? silence)?.error as Error).of(lock.key))
    }
    return next
  }
}

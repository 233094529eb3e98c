/**
 * The end of patience while Redis is out of reach (I6): there is no connection; or what a line asks is not answered, or is put
 * off, on a connection that is up. Each waiter is ended when it has sat through `patience` ms of that, counted from its
 * own start where that was later. One timer, at the earliest of those times; only time in which this process ran counts.
 */
import { awake, type Clock, type Timer } from '../clock.ts'
import { outOfReach } from '../errors.ts'
import type { Asker } from '../local/effects.ts'

const NEVER = Number.POSITIVE_INFINITY

/** Since when something has been out of reach, and the latest reason. */
interface Silence {
  readonly since: number
  error: Error
}

export class Outage {
  readonly #locks: { readonly all: Iterable<Asker> }
  readonly #clock: Clock
  readonly #patience: number
  /** Locks whose lines ask, and are not answered. */
  readonly #silent = new Map<Asker, Silence>()
  #now: Silence | undefined
  /** Whether the connection has failed, and not only not been made yet. */
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

  /** Why there is no connection, if that is known. */
  get known(): Error | undefined {
    return this.#known ? this.#now?.error : undefined
  }

  /** It has begun, or goes on for this reason. True: it is new. `known`: the connection has failed. */
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

  /** An attempt of the line that began at `since` has failed with this error; of what nobody answered, others may come. */
  failed(lock: Asker, since: number, error: Error): void {
    if (lock.line.size === 0 || this.#clock.now() - since < this.#patience) return
    this.#silent.set(lock, { since: this.#silent.get(lock)?.since ?? since, error })
    this.#wakeBy(this.#judge(lock))
  }

  /** What the line of the lock asks was answered, or nobody waits for it any more. */
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
    // Who comes later has more time than that.
    let next = this.#now ? this.#clock.now() + this.#patience : NEVER
    for (const lock of [...(this.#now ? this.#locks.all : this.#silent.keys())])
      next = Math.min(next, this.#judge(lock))
    this.#wakeBy(next)
  }

  /** Ends the waiters of the lock whose patience is over; returns when to look again. */
  #judge(lock: Asker): number {
    const now = this.#clock.now()
    let next = now + this.#patience
    for (const waiter of [...lock.line.waiters, ...lock.queue.waiters]) {
      // What the line asks says nothing of the queue, which has its heartbeats.
      const silence = lock.line.waiters.has(waiter) ? this.#silent.get(lock) : undefined
      const since = Math.min(this.#now?.since ?? NEVER, silence?.since ?? NEVER)
      const end = Math.max(waiter.begun, since) + this.#patience
      if (end > now) next = Math.min(next, end)
      else lock.end(waiter, outOfReach((this.#now ?? silence)?.error as Error).of(lock.key))
    }
    return next
  }
}

/**
 * The slow timer of each lock with waiters. When it fires, the client reads the lock's state from Redis again, so a
 * lost message costs time, never a lock (I4).
 *
 * The timer fires when the holder's lease would expire, and at the latest a third of `waiterTtl` after the last check.
 * A planned check is never postponed, so a busy lock cannot starve its heartbeat.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Asker, Looking } from '../local/effects.ts'

/**
 * A check for the end of a lease comes this many ms after that end. The server counts whole ms, so an earlier check
 * might still find the lock held.
 */
const AFTER_LAPSE = 2
/** The longest pause between heartbeats, in ms, even if `waiterTtl` is long: heartbeats keep the queue's keys alive. */
const LONGEST = 60_000

export class Heartbeat implements Looking {
  /** The longest time between two checks of a lock with waiters, in ms. */
  readonly pause: number
  readonly #clock: Clock
  readonly #next = new Map<Asker, { readonly due: number; readonly timer: Timer }>()

  constructor(clock: Clock, waiterTtl: number) {
    this.#clock = clock
    this.pause = Math.min(waiterTtl / 3, LONGEST)
  }

  /** Reads the lock's state now, for all of its waiters. */
  look(lock: Asker): void {
    this.stop(lock)
    this.lookWithin(lock, Number.POSITIVE_INFINITY)
    lock.look()
  }

  /**
   * Plans a check for the end of the holder's lease, in `ttl` ms, but not later than `pause` ms from now. If an earlier
   * check is planned, nothing changes.
   */
  lookWithin(lock: Asker, ttl: number): void {
    if (lock.waiting === 0) return
    const now = this.#clock.now()
    const due = now + Math.min(ttl + AFTER_LAPSE, this.pause)
    const next = this.#next.get(lock)
    if (next && due >= next.due) return
    next?.timer.cancel()
    this.#next.set(lock, { due, timer: this.#clock.after(due - now, () => this.look(lock)) })
  }

  /** Stops the checks of a lock that has no waiters left. */
  stop(lock: Asker): void {
    this.#next.get(lock)?.timer.cancel()
    this.#next.delete(lock)
  }
}

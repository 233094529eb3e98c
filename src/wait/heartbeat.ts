/**
 * The slow timer of each lock: it re-reads the truth, so that a message that was lost costs time, never a lock (I4).
 *
 * It fires when the holder's lease would have lapsed, and a third of `waiterTtl` after the last look at the latest. It
 * never moves to a later time than it has, so a busy lock cannot starve its heartbeat.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Asker, Looking } from '../local/effects.ts'

/** A lapsed lease is looked at this many ms after its end: the server counts whole ms. */
const AFTER_LAPSE = 2
/** The longest pause between heartbeats, in ms, however long `waiterTtl` is: the queue's keys live by them. */
const LONGEST = 60_000

export class Heartbeat implements Looking {
  /** How long a waiter goes without a look at the truth, at most, in ms. */
  readonly pause: number
  readonly #clock: Clock
  readonly #next = new Map<Asker, { readonly due: number; readonly timer: Timer }>()

  constructor(clock: Clock, waiterTtl: number) {
    this.#clock = clock
    this.pause = Math.min(waiterTtl / 3, LONGEST)
  }

  /** Looks at the truth for everybody who waits for the lock. */
  look(lock: Asker): void {
    this.stop(lock)
    this.lookWithin(lock, Number.POSITIVE_INFINITY)
    lock.look()
  }

  /** The holder's lease ends in `ttl` ms: plans the next look. */
  lookWithin(lock: Asker, ttl: number): void {
    if (lock.waiting === 0) return
    const now = this.#clock.now()
    const due = now + Math.min(ttl + AFTER_LAPSE, this.pause)
    const next = this.#next.get(lock)
    if (next && due >= next.due) return
    next?.timer.cancel()
    this.#next.set(lock, { due, timer: this.#clock.after(due - now, () => this.look(lock)) })
  }

  /** Nobody waits for the lock any more. */
  stop(lock: Asker): void {
    this.#next.get(lock)?.timer.cancel()
    this.#next.delete(lock)
  }
}

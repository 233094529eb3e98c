/**
 * The clock of a store. It reads the globals at each call, so fake timers of a test runner work, whether they were
 * installed before or after the client was made. Time never goes back, and no timer is forgotten, when a test installs
 * fake timers or removes them.
 *
 * A runner may fake timers, and leave `performance` as it is (`mock.timers` of Node, the legacy timers of Jest, Vitest
 * before version 3). Then a timer fires although this clock has not come that far. The timer is right: the clock is set
 * to the time at which the timer is due.
 */
import { type Clock, LONGEST, type Timer } from '../clock.ts'

/** A real timer may fire up to this many ms before `performance.now()` has reached its time. */
const EARLY = 2

interface Sleeper {
  readonly due: number
  /** Whether the timer keeps the process alive. */
  readonly awaited: boolean
  readonly fire: () => void
  /** Clears the present timer. It is the function that belongs to the timer's own `setTimeout`. */
  clear(): void
}

export class MemoryClock implements Clock {
  /** The same clock, whose timers do not keep the process alive. */
  readonly background: Clock = { now: () => this.now(), after: (delay, fire) => this.after(delay, fire, false) }
  /** By how many ms this clock is ahead of `performance.now()`. */
  #ahead = 0
  #last = 0
  #performanceNow: unknown
  #setTimeout: unknown
  readonly #sleepers = new Set<Sleeper>()

  now(): number {
    const { performance } = globalThis
    const reading = performance.now()
    if (performance.now !== this.#performanceNow || reading + this.#ahead < this.#last) {
      this.#performanceNow = performance.now
      // The time of fake timers begins with 0, and may have been advanced already.
      this.#ahead = this.#last - ('clock' in performance ? 0 : reading)
    }
    this.#last = reading + this.#ahead
    if (globalThis.setTimeout !== this.#setTimeout) this.#rearm()
    return this.#last
  }

  after(delay: number, fire: () => void, awaited = true): Timer {
    const sleeper: Sleeper = { due: this.now() + delay, awaited, fire, clear: () => {} }
    this.#sleepers.add(sleeper)
    this.#sleep(sleeper)
    return {
      cancel: () => {
        if (this.#sleepers.delete(sleeper)) sleeper.clear()
      },
    }
  }

  #sleep(sleeper: Sleeper): void {
    const { due, awaited } = sleeper
    const until = Math.min(Math.max(due, this.#last), this.#last + LONGEST)
    const { clearTimeout } = globalThis
    const handle = setTimeout(
      () => {
        const early = until - this.now()
        if (early > EARLY) {
          this.#ahead += early
          this.#last += early
        }
        Promise.resolve().then(() => this.#wake(sleeper))
      },
      Math.ceil(until - this.#last),
    )
    // Some fake timers have no `unref`.
    if (!awaited) handle.unref?.()
    sleeper.clear = () => clearTimeout(handle)
  }

  /** Runs in a microtask: a test may advance the time right after a call, before the answer to that call. */
  #wake(sleeper: Sleeper): void {
    if (!this.#sleepers.has(sleeper)) return
    // `now` may have set the timer again, because the globals have changed.
    sleeper.clear()
    if (this.now() < sleeper.due) return this.#sleep(sleeper)
    this.#sleepers.delete(sleeper)
    sleeper.fire()
  }

  /** The globals have changed: what was set with the old timers may never fire, so it is set with the new ones. */
  #rearm(): void {
    this.#setTimeout = globalThis.setTimeout
    for (const sleeper of this.#sleepers) {
      sleeper.clear()
      this.#sleep(sleeper)
    }
  }
}

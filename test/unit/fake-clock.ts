/** A clock that stands still until a test moves it. */
import type { Clock, Timer } from '../../src/clock.ts'
import { settled } from './promises.ts'

interface Armed {
  at: number
  readonly fire: () => void
}

export class FakeClock implements Clock {
  #now = 1_000
  readonly #armed = new Set<Armed>()
  readonly #jumps: { readonly at: number; readonly ms: number }[] = []

  now(): number {
    return this.#now
  }

  after(delay: number, fire: () => void): Timer {
    const armed = { at: this.#now + Math.max(0, delay), fire }
    this.#armed.add(armed)
    return { cancel: () => this.#armed.delete(armed) }
  }

  /** Number of timers that have neither fired nor been cancelled. */
  get armed(): number {
    return this.#armed.size
  }

  /** Lets time pass. Each timer fires at its time, and the code that this triggers runs before the next timer fires. */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms
    await settled()
    for (let next = this.#next(target); next; next = this.#next(target)) {
      this.#armed.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.fire()
      await settled()
    }
    this.#now = target
  }

  /** Lets time pass while no timer fires: the event loop is blocked, or the process is stopped. */
  block(ms: number): void {
    this.#now += ms
  }

  /** The machine is suspended: time passes, and timers stand still meanwhile. */
  suspend(ms: number): void {
    this.#now += ms
    for (const armed of this.#armed) armed.at += ms
  }

  /** From now on, the clock may be behind by this many ms more. */
  fallBehind(ms: number): void {
    this.#now += 1
    this.#jumps.push({ at: this.#now, ms })
  }

  behind(since: number): number {
    return this.#jumps.reduce((sum, { at, ms }) => sum + (at > since ? ms : 0), 0)
  }

  #next(target: number): Armed | undefined {
    let first: Armed | undefined
    for (const armed of this.#armed) {
      if (armed.at <= target && (!first || armed.at < first.at)) first = armed
    }
    return first
  }
}

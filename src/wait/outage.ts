/**
 * The end of patience while Redis is out of reach. Each waiter is ended when it has sat through `patience` ms of the
 * outage, counted from its own start where that was later (I6). One timer, at the earliest of those times.
 */
import type { Clock, Timer } from '../clock.ts'
import { LockConnectionError } from '../errors.ts'
import type { Waiter, Waiters } from './waiters.ts'

export class Outage {
  readonly #waiters: Waiters
  readonly #clock: Clock
  readonly #patience: number
  readonly #end: (waiter: Waiter, error: Error) => void
  #now: { readonly since: number; error: Error; timer: Timer } | undefined

  constructor(waiters: Waiters, clock: Clock, patience: number, end: (waiter: Waiter, error: Error) => void) {
    this.#waiters = waiters
    this.#clock = clock
    this.#patience = patience
    this.#end = end
  }

  get error(): Error | undefined {
    return this.#now?.error
  }

  /** It has begun, or goes on for this reason. True: it is new. */
  begin(error: Error): boolean {
    if (this.#now) {
      this.#now.error = error
      return false
    }
    const timer = this.#clock.after(this.#patience, () => this.#loseHope())
    this.#now = { since: this.#clock.now(), error, timer }
    return true
  }

  over(): void {
    this.#now?.timer.cancel()
    this.#now = undefined
  }

  #loseHope(): void {
    if (!this.#now) return
    const { since, error } = this.#now
    const now = this.#clock.now()
    let next = now + this.#patience
    for (const room of this.#waiters.rooms) {
      for (const waiter of [...room.line, ...room.queued]) {
        const end = Math.max(waiter.since, since) + this.#patience
        if (end > now) next = Math.min(next, end)
        else this.#end(waiter, new LockConnectionError('Redis is out of reach', error, room.key))
      }
    }
    this.#now.timer = this.#clock.after(next - now, () => this.#loseHope())
  }
}

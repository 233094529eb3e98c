/**
 * The end of patience while Redis is out of reach (I6): there is no connection; or what a line asks is not answered, or is put
 * off, on a connection that is up. Each waiter is ended when it has sat through `patience` ms of that, counted from its
 * own start where that was later. One timer, at the earliest of those times; only time in which this process ran counts.
 */
import { awake, type Clock, type Timer } from '../clock.ts'
import { outOfReach } from '../errors.ts'
import type { Room, Silence, Waiter, Waiters } from './waiters.ts'

const NEVER = Number.POSITIVE_INFINITY

export class Outage {
  readonly #waiters: Waiters
  readonly #clock: Clock
  readonly #patience: number
  readonly #end: (waiter: Waiter, error: Error) => void
  #now: Silence | undefined
  /** Whether the connection has failed, and not only not been made yet. */
  #known = false
  #timer: Timer | undefined
  #wakeAt = NEVER

  constructor(waiters: Waiters, clock: Clock, patience: number, end: (waiter: Waiter, error: Error) => void) {
    this.#waiters = waiters
    this.#clock = awake(clock)
    this.#patience = patience
    this.#end = end
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
    if (!this.#waiters.rooms.some(room => room.silence)) this.#sleep()
  }

  /** An attempt of the room's line that began at `since` has failed with this error; of what nobody answered, others may come. */
  failed(room: Room, since: number, error: Error): void {
    if (room.line.size === 0 || this.#clock.now() - since < this.#patience) return
    room.silence ??= { since, error }
    room.silence.error = error
    this.#wakeBy(this.#judge(room))
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
    for (const room of this.#waiters.rooms) {
      if (this.#now || room.silence) next = Math.min(next, this.#judge(room))
    }
    this.#wakeBy(next)
  }

  /** Ends the waiters of the room whose patience is over; returns when to look again. */
  #judge(room: Room): number {
    const now = this.#clock.now()
    let next = now + this.#patience
    for (const waiter of [...room.line, ...room.queued]) {
      // What the line asks says nothing of the queue, which has its heartbeats.
      const silence = room.line.has(waiter) ? room.silence : undefined
      const since = Math.min(this.#now?.since ?? NEVER, silence?.since ?? NEVER)
      const end = Math.max(waiter.begun, since) + this.#patience
      if (end > now) next = Math.min(next, end)
      else this.#end(waiter, outOfReach((this.#now ?? silence)?.error as Error).of(room.key))
    }
    return next
  }
}

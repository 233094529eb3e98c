/**
 * Time, as the library sees it: monotonic, in ms, never the time of day. Everything that waits takes a Clock, so that
 * tests can run the same code on a clock of their own.
 */

export interface Timer {
  /** Stops the timer. Harmless once it has fired. */
  cancel(): void
}

export interface Clock {
  /** Monotonic ms from an arbitrary start. */
  now(): number
  /** Calls `fire` once, `delay` ms from now or later: callers compare times on waking, they never trust a delay. */
  after(delay: number, fire: () => void): Timer
}

/** The longest delay a Node timer takes (24.8 days); also the largest duration any option accepts. */
export const LONGEST = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => performance.now(),
  after(delay, fire) {
    const due = performance.now() + delay
    let handle: NodeJS.Timeout
    const sleep = (left: number) => {
      handle = setTimeout(wake, Math.min(Math.max(left, 0), LONGEST))
    }
    // A timer of Node counts whole ms, and so may be early by a part of one.
    const wake = () => {
      const left = due - performance.now()
      if (left > 0) sleep(left)
      else fire()
    }
    sleep(delay)
    return { cancel: () => clearTimeout(handle) }
  },
}

/**
 * Until when a lease of `ttl` ms is surely ours, if the request that was granted (or found it) left at `sent`.
 *
 * Counted from before the request was sent, because the server counted from some later moment; and shortened by a
 * margin for what a monotonic clock does not exclude: the two machines' clocks running at different speeds (0.1 %) and
 * a timer that fires a little late (2 ms). So the local end comes before anyone else can own the lock (I1, I8).
 */
export function surelyUntil(sent: number, ttl: number): number {
  return sent + ttl - Math.min(ttl / 10, 2 + ttl / 1000)
}

/** The longest step in which time that this process ran is counted, in ms. */
const STEP = 1_000
/** A step that ends so much late, in ms, is a stall: the event loop was blocked, or the process stopped. */
const LATE = 20
/** After a stall, in ms: what had come in the meantime is read before anything is judged. */
const GRACE = 50

const clocks = new WeakMap<Clock, Clock>()

/**
 * The clock by which others are judged to be silent: it counts the time in which this process ran, and so could have
 * heard them. Leases have nothing to do with it: they end while nobody looks.
 */
export function awake(clock: Clock): Clock {
  let counted = clocks.get(clock)
  if (!counted) {
    counted = new AwakeClock(clock)
    clocks.set(clock, counted)
  }
  return counted
}

interface Sleeper {
  readonly at: number
  readonly step: number
  readonly fire: () => void
}

/**
 * Counts in steps, as long as anybody waits for a time: what a step takes longer than it should was a stall, and does not
 * count. A step is a quarter of the shortest wait at most, so a request that left just before the stall has most of its
 * time still before it.
 */
class AwakeClock implements Clock {
  readonly #clock: Clock
  readonly #sleepers = new Set<Sleeper>()
  /** ms in which the process did not run. */
  #missed = 0
  /** When the present step should end. */
  #due = Number.POSITIVE_INFINITY
  #step: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return Math.min(this.#clock.now(), this.#due) - this.#missed
  }

  after(delay: number, fire: () => void): Timer {
    const wait = Math.max(0, delay)
    const sleeper = { at: this.now() + wait, step: Math.min(STEP, Math.ceil(wait / 4)), fire }
    this.#sleepers.add(sleeper)
    this.#plan()
    return {
      cancel: () => {
        if (this.#sleepers.delete(sleeper) && this.#sleepers.size === 0) this.#endStep()
      },
    }
  }

  /** Sees to it that the present step ends in time for everybody. One that should have ended already is about to. */
  #plan(): void {
    const now = this.now()
    let length = Number.POSITIVE_INFINITY
    for (const { at, step } of this.#sleepers) length = Math.min(length, Math.max(0, Math.min(step, at - now)))
    const began = this.#clock.now()
    if (began + length >= this.#due || began >= this.#due) return
    this.#begin(length, () => {
      const late = this.#endStep()
      if (late <= LATE) this.#fire()
      else this.#begin(GRACE, () => this.#fire())
    })
  }

  #begin(length: number, end: () => void): void {
    this.#step?.cancel()
    this.#due = this.#clock.now() + length
    this.#step = this.#clock.after(length, end)
  }

  /** How much later than it should the step has ended. */
  #endStep(): number {
    const late = Math.max(0, this.#clock.now() - this.#due)
    // Every timer is a little late, and there may be many steps.
    if (late > LATE) this.#missed += late
    this.#due = Number.POSITIVE_INFINITY
    this.#step?.cancel()
    this.#step = undefined
    return late
  }

  #fire(): void {
    this.#endStep()
    const now = this.now()
    for (const sleeper of [...this.#sleepers]) {
      if (sleeper.at <= now && this.#sleepers.delete(sleeper)) sleeper.fire()
    }
    if (this.#sleepers.size > 0) this.#plan()
  }
}

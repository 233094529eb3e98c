/**
 * This library measures time in ms on a monotonic clock and never uses the time of day. All code that waits gets a
 * Clock, so tests can replace the clock.
 */

export interface Timer {
  /** Stops the timer. Has no effect once the timer has fired. */
  cancel(): void
}

export interface Clock {
  /** Returns the time, in monotonic ms from an arbitrary start. */
  now(): number
  /** Calls `fire` once, at least `delay` ms from now. The call may come late, so `fire` has to read the time itself. */
  after(delay: number, fire: () => void): Timer
}

/**
 * The longest delay that a Node timer accepts, in ms (24.8 days). Also the largest duration that any option accepts.
 */
export const LONGEST = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => performance.now(),
  after(delay, fire) {
    const due = performance.now() + delay
    let handle: NodeJS.Timeout
    const sleep = (left: number) => {
      handle = setTimeout(wake, Math.min(Math.max(left, 0), LONGEST))
    }
    // A Node timer counts whole ms, so it may fire up to 1 ms early.
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
 * Returns the time until which this client certainly has a lease of `ttl` ms. `sent` is when the client sent the
 * request that got the lease or that read the lease's remaining time.
 *
 * The lease is counted from `sent`, which is earlier than the moment at which the server started to count. A margin is
 * subtracted for two errors: the clocks of the two machines may run at different speeds (0.1 %), and a timer may fire a
 * little late (2 ms). So the client's deadline comes before another client can get the lock (I1, I8).
 */
export function surelyUntil(sent: number, ttl: number): number {
  return sent + ttl - Math.min(ttl / 10, 2 + ttl / 1000)
}

/** `AwakeClock` counts time in steps of at most this many ms. */
const STEP = 1_000
/** A step that ends more than this many ms late was a stall: the event loop was blocked, or the process was stopped. */
const LATE = 20
/**
 * After a stall, this many ms pass before due timers fire. In this time, the process reads the messages that arrived
 * during the stall. So a server that has answered during the stall does not count as silent.
 */
const GRACE = 50

const clocks = new WeakMap<Clock, Clock>()

/**
 * Returns the clock that measures how long a server has been silent. This clock counts only the time in which this
 * process ran and so could have received an answer. Leases do not use this clock: they end in real time, whether or not
 * this process runs.
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
 * Counts time in steps while any timer is pending. If a step ends late, the process has stalled. Then only the planned
 * length of the step counts, not the delay. A step is at most a quarter of the shortest timer. So one stall uses up at
 * most a quarter of the time that a request has for its answer.
 */
class AwakeClock implements Clock {
  readonly #clock: Clock
  readonly #sleepers = new Set<Sleeper>()
  /** The sum of all stalls so far, in ms. */
  #missed = 0
  /** When the current step should end. */
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

  /**
   * Shortens the current step if a timer needs an earlier end. Does nothing if the end of the step is due already,
   * because the step's own timer is about to fire.
   */
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

  /** Ends the step and returns how many ms late it ended. */
  #endStep(): number {
    const late = Math.max(0, this.#clock.now() - this.#due)
    // Small delays do not count as stalls: every timer is a little late, and the delays would add up over many steps.
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

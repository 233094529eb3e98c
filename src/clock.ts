/**
 * This library measures time in ms on a clock that never goes back and also counts while the machine is suspended. The
 * time of day is only a hint that the machine may have been suspended. All code that waits gets a Clock, so tests can
 * replace the clock.
 */
import { uptime } from 'node:os'

export interface Timer {
  /** Stops the timer. Has no effect once the timer has fired. */
  cancel(): void
}

export interface Clock {
  /** Returns the time, in monotonic ms from an arbitrary start. */
  now(): number
  /** Calls `fire` once, at least `delay` ms from now. The call may come late, so `fire` has to read the time itself. */
  after(delay: number, fire: () => void): Timer
  /**
   * Returns by how many ms `now()` may be behind the true time, because of jumps that this clock has noticed since the
   * given time. If the method is absent, the clock notices no jumps.
   */
  behind?(since: number): number
}

/**
 * The longest delay that a Node timer accepts, in ms (24.8 days). Also the largest duration that any option accepts.
 */
export const LONGEST = 2 ** 31 - 1

/** Rounds a time in ms to whole µs. The digits behind are not of the clock, but of the subtraction. */
export function toMicros(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}

/** The time of day has jumped if it has moved by this many ms more, or less, than `performance.now()`. */
const JUMP = 100
/** On a system that reports its uptime in whole seconds, a difference of this many ms proves nothing. */
const COARSE = 1_500
/**
 * The time of day is read at most once in this many ms in which the process runs. So a suspension is noticed at most this
 * much later.
 */
const COMPARE = 0.25
/** The interval, in ms, at which the uptime is read even if the time of day has not jumped. */
const REREAD = 1_000
/** If reading all clocks took this many ms, the process was interrupted meanwhile, and the times do not fit together. */
const INTERRUPTED = 20
/** How many jumps are remembered one by one. */
const JUMPS = 8

/**
 * On Linux, `performance.now()` stands still while the machine is suspended, but Redis on another machine goes on. The
 * uptime of the machine counts that time, but costs a system call. So `now()` only compares `performance.now()` with the
 * time of day, and reads the uptime if the two have moved apart, or if the last reading is old.
 *
 * - The uptime shows a suspension: `now()` jumps ahead by its length, so leases count it. A timer that is pending does
 *   not: Node's timers go on with the time that they had left.
 * - Only the time of day has jumped ahead: it may have been set. But a virtual machine that was paused, or continued
 *   from a snapshot, looks the same once its time of day has been corrected. So `now()` does not jump, but `behind` says
 *   by how much it may be wrong. Redis then has to be asked about holds.
 * - The time of day was set back: this means nothing.
 */
class SystemClock implements Clock {
  /** How long the machine was suspended, in ms. */
  #suspended = 0
  /** By how many ms the time of day, and the uptime, were ahead of `performance.now()` when they were last read. */
  #day = Date.now() - performance.now()
  #uptime = uptime() * 1_000 - performance.now()
  /** Whether each uptime read so far was in whole seconds. Where it has a fraction, one reading in a hundred has none. */
  #coarse = Number.isInteger(uptime())
  #rereadAt = 0
  #comparedAt = 0
  /** The jumps of the time of day that no suspension explains, oldest first, with the times when they were noticed. */
  readonly #jumps: { readonly at: number; ms: number }[] = []

  now(): number {
    const now = performance.now()
    if (now - this.#comparedAt >= COMPARE) {
      this.#comparedAt = now
      if (now >= this.#rereadAt || Math.abs(Date.now() - now - this.#day) > JUMP) this.#read(now)
    }
    return now + this.#suspended
  }

  behind(since: number): number {
    let ms = 0
    for (const jump of this.#jumps) if (jump.at > since) ms += jump.ms
    return ms
  }

  after(delay: number, fire: () => void): Timer {
    const due = this.now() + delay
    let handle: NodeJS.Timeout
    const sleep = (left: number) => {
      handle = setTimeout(wake, Math.min(Math.max(left, 0), LONGEST))
    }
    // A Node timer counts whole ms, so it may fire up to 1 ms early.
    const wake = () => {
      const left = due - this.now()
      if (left > 0) sleep(left)
      else fire()
    }
    sleep(delay)
    return { cancel: () => clearTimeout(handle) }
  }

  #read(now: number): void {
    this.#rereadAt = now + REREAD
    const day = Date.now() - now - this.#day
    const seconds = uptime()
    if (performance.now() - now > INTERRUPTED) return
    const up = seconds * 1_000 - now - this.#uptime
    this.#coarse &&= Number.isInteger(seconds)
    const error = this.#coarse ? COARSE : JUMP
    // The time of day is more precise than the uptime, unless it was set as well.
    const suspended = up > error ? (Math.abs(up - day) < error ? day : up) : 0
    this.#uptime += up
    if (Math.abs(day) > JUMP) this.#day += day
    this.#suspended += suspended
    const jumps = this.#jumps
    if (day - suspended > JUMP) jumps.push({ at: now + this.#suspended, ms: day - suspended })
    const [oldest] = jumps
    if (jumps.length > JUMPS && oldest) {
      jumps.shift()
      jumps[0]!.ms += oldest.ms
    }
  }
}

export const systemClock: Clock = new SystemClock()

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

const clocks = new WeakMap<Clock, AwakeClock>()

/**
 * Returns the clock that measures how long a server has been silent. This clock counts only the time in which this
 * process ran and so could have received an answer. Leases do not use this clock: they end in real time, whether or not
 * this process runs.
 */
export function awake(clock: Clock): AwakeClock {
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
export class AwakeClock implements Clock {
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
    return this.at(this.#clock.now())
  }

  /** Returns the time on this clock at which the other clock shows `now`, its present time. */
  at(now: number): number {
    return Math.min(now, this.#due) - this.#missed
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

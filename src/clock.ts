/**
 * This library measures time in ms on a clock that never goes back and also counts while the machine is suspended. No
 * single clock of a machine does that everywhere, so three are compared: what two of them say counts at once, and what
 * one of them says alone puts all leases in doubt. All code that waits gets a Clock, so tests can replace the clock.
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
   * Returns by how many ms `now()` may be behind the true time, because since the given time one clock of the machine
   * has moved ahead alone. If the method is absent, the clock is never in doubt.
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

/** Two clocks have moved apart if one of them has gone on by this many ms more, or less, than the other. */
const APART = 100
/**
 * The time of day is read at most once in this many ms in which the process runs. So a suspension is noticed at most this
 * much later.
 */
const COMPARE = 0.25
/** The interval, in ms, at which the uptime is read even if the time of day has not moved: it costs a system call. */
const REREAD = 100
/** If reading all clocks took this many ms, the process was interrupted meanwhile, and the times do not fit together. */
const INTERRUPTED = 20
/** How many doubts are remembered one by one. */
const DOUBTS = 8

/** Returns the uptime of the machine in s; NaN if it cannot be read. */
function readUptime(): number {
  try {
    return uptime()
  } catch {
    return Number.NaN
  }
}

/**
 * On Linux, `performance.now()` stands still while the machine is suspended, but Redis on another machine goes on. Two
 * other clocks go on, too, but neither can be trusted alone. Anybody may set the time of day. The uptime of a container
 * may be wrong or reset, and libuv reads another clock, in whole seconds, if a process has no file descriptor left.
 * What the two say, measured by `performance.now()`:
 *
 *     uptime ╲ time of day   has moved ahead                  has not moved, or was set back
 *     has moved ahead        1. suspended: the part that      3. doubt: suspended while the time of day was set back,
 *                            both say counts; the rest is        or a wrong uptime
 *                            doubt, as in 2 and 3
 *     has not moved, or      2. doubt: a paused virtual       4. nothing
 *     back, or unreadable       machine, or a time that was
 *                               set
 *
 * A holds the lock, the machine of A is suspended for longer than the lease, and B gets the lock (I1):
 *
 * 1. `now()` jumps ahead. A's lease is over before A next looks at it. A timer that is pending does not count the jump:
 *    Node's timers go on with the time that they had left.
 * 2. and 3. `now()` does not jump, but `behind` says by how much it may be wrong. A's `held` is false at once, and a grant
 *    to A that was under way is not used yet. Redis is asked, and A learns that its lease is over, or that it goes on.
 *    Until the answer, nothing is released or declared lost: a wrong clock costs a round trip, but no lock.
 * 4. A was not suspended. A clock that has gone back is compared with its new time from now on, so it hides no later
 *    suspension.
 */
class SystemClock implements Clock {
  /** How long the machine was suspended, in ms. */
  #suspended = 0
  /** By how many ms the other clocks were ahead of `performance.now()` when they last moved. NaN: never read. */
  #day = Date.now() - performance.now()
  #uptime = Number.NaN
  #rereadAt = 0
  #comparedAt = 0
  /** What one clock has said alone, oldest first, with the times when that was noticed. */
  readonly #doubts: { readonly at: number; ms: number }[] = []

  now(): number {
    const now = performance.now()
    if (now - this.#comparedAt >= COMPARE) {
      this.#comparedAt = now
      if (now >= this.#rereadAt || Math.abs(Date.now() - now - this.#day) > APART) this.#read(now)
    }
    return now + this.#suspended
  }

  behind(since: number): number {
    let ms = 0
    for (const doubt of this.#doubts) if (doubt.at > since) ms += doubt.ms
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
    const seconds = readUptime()
    if (performance.now() - now > INTERRUPTED) return
    const ahead = seconds * 1_000 - now
    // An uptime in whole seconds may be up to 1 s too small. So it proves no move that is smaller.
    const error = Number.isInteger(seconds) ? 1_000 : 0
    if (Number.isNaN(this.#uptime)) this.#uptime = ahead + error
    const least = ahead - this.#uptime || 0
    const read = Math.max(least, Math.min(0, least + error))
    // The time of day is more precise than the uptime.
    const up = Math.abs(read - day) <= APART ? day : read
    if (Math.abs(day) > APART) this.#day += day
    if (Math.abs(up) > APART) this.#uptime += up
    const both = Math.min(day, up)
    const suspended = both > APART ? both : 0
    this.#suspended += suspended
    const ms = Math.max(day, up) - suspended
    const doubts = this.#doubts
    if (ms > APART) doubts.push({ at: now + this.#suspended, ms })
    const [oldest] = doubts
    if (doubts.length > DOUBTS && oldest) {
      doubts.shift()
      doubts[0]!.ms += oldest.ms
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

/**
 * Returns whether a lease of `ttl` ms that lasts until `deadline` (`surelyUntil`) may be over: because its time has
 * passed, or because the clock has been in doubt since the request was sent.
 */
export function mayBeOver(clock: Clock, deadline: number, ttl: number, now = clock.now()): boolean {
  return deadline - (clock.behind?.(deadline - surelyUntil(0, ttl)) ?? 0) <= now
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

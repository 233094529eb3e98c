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

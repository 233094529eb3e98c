/**
 * Ends a wait at the caller's timeout, or when the caller's signal aborts. In both cases, the caller's promise settles
 * at once. The waiter is then removed from Redis in the background (I6).
 */
import type { Clock } from '../clock.ts'

/**
 * The calls that wait with the same signal. A program often has one shutdown signal for thousands of calls. The calls
 * share one listener, because Node warns about more than ten listeners, and searches all of them to remove one.
 */
class Audience extends Set<() => void> {
  handleEvent(): void {
    for (const tell of this) tell()
  }
}

const audiences = new WeakMap<AbortSignal, Audience>()

/**
 * Calls `giveUp` after `timeout` ms, or when the signal aborts. Returns a function that cancels this, or undefined if
 * nothing limits the wait.
 */
export function limit(
  signal: AbortSignal | undefined,
  timeout: number | undefined,
  clock: Clock,
  giveUp: () => void,
): (() => void) | undefined {
  const leave = signal && onAbort(signal, giveUp)
  if (timeout === undefined || timeout === Number.POSITIVE_INFINITY) return leave
  const timer = clock.after(timeout, giveUp)
  return () => {
    timer.cancel()
    leave?.()
  }
}

/** Calls `tell` when the signal aborts. Returns a function that cancels this. */
export function onAbort(signal: AbortSignal, tell: () => void): () => void {
  const audience = audiences.get(signal) ?? new Audience()
  if (audience.size === 0) {
    audiences.set(signal, audience)
    signal.addEventListener('abort', audience)
  }
  audience.add(tell)
  return () => {
    audience.delete(tell)
    if (audience.size === 0) signal.removeEventListener('abort', audience)
  }
}

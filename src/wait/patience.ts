/**
 * The end of a caller's patience: its time-out, and its signal. Either settles the caller's promise at once; whatever
 * became of the wish is taken back in the background (I6).
 */
import type { Clock } from '../clock.ts'

/**
 * The calls that wait with one signal. A program has one for its end, and thousands of calls wait with it; so they share a
 * listener: Node warns of more than ten, and goes through all of them to remove one.
 */
class Audience extends Set<() => void> {
  handleEvent(): void {
    for (const tell of this) tell()
  }
}

const audiences = new WeakMap<AbortSignal, Audience>()

/**
 * Calls `giveUp` when `timeout` ms are over or the signal aborts, unless what it returns is called before. Undefined: nothing
 * limits the wait.
 */
export function limit(
  signal: AbortSignal | undefined,
  timeout: number | undefined,
  clock: Clock,
  giveUp: () => void,
): (() => void) | undefined {
  const leave = signal && onAbort(signal, giveUp)
  if (timeout === undefined) return leave
  const timer = clock.after(timeout, giveUp)
  return () => {
    timer.cancel()
    leave?.()
  }
}

/** Calls `tell` if the signal aborts before the function is called that is returned. */
function onAbort(signal: AbortSignal, tell: () => void): () => void {
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

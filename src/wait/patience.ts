/**
 * The end of a caller's patience: its time-out, and its signal. Either settles the caller's promise at once; whatever
 * became of the wish is taken back behind it (I6).
 */
import type { Clock, Timer } from '../clock.ts'

export interface Limits {
  readonly signal: AbortSignal | undefined
  /** ms; undefined: as long as it takes. */
  readonly timeout: number | undefined
}

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

export function limited({ signal, timeout }: Limits): boolean {
  return signal !== undefined || timeout !== undefined
}

/**
 * The outcome of the wait, or what `giveUp` returns when the time is up. It is called on an abort, too, and then the reason
 * of the signal is what the promise rejects with.
 */
export async function patiently<T>(
  outcome: Promise<T>,
  { signal, timeout }: Limits,
  giveUp: () => T,
  clock: Clock,
): Promise<T> {
  let timer: Timer | undefined
  let leave: (() => void) | undefined
  try {
    return await new Promise<T>((resolve, reject) => {
      outcome.then(resolve, reject)
      if (timeout !== undefined) timer = clock.after(timeout, () => resolve(giveUp()))
      if (signal) leave = onAbort(signal, () => reject(signal.reason))
    })
  } catch (error) {
    // Not before: an outcome that was first by a moment is kept.
    giveUp()
    throw error
  } finally {
    timer?.cancel()
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

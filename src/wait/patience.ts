/**
 * The end of a caller's patience: its time-out, and its signal. Either settles the caller's promise at once; whatever
 * became of the wish is taken back behind it (I6).
 */
import pTimeout, { type Options } from 'p-timeout'

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
 * of the signal is what the promise rejects with. In either case the outcome has to settle then, whatever it is.
 * `customTimers`: those of p-timeout.
 */
export async function patiently<T>(
  outcome: Promise<T>,
  { signal, timeout }: Limits,
  giveUp: () => T,
  customTimers?: Options<T>['customTimers'],
): Promise<T> {
  const ends = signal ? unlessAborted(outcome, signal) : outcome
  try {
    if (timeout === undefined) return await ends
    return await pTimeout<T, T>(ends, {
      milliseconds: timeout,
      fallback: giveUp,
      ...(customTimers && { customTimers }),
    })
  } catch (error) {
    giveUp()
    throw signal?.aborted ? signal.reason : error
  }
}

function unlessAborted<T>(outcome: Promise<T>, signal: AbortSignal): Promise<T> {
  const audience = audiences.get(signal) ?? new Audience()
  if (audience.size === 0) {
    audiences.set(signal, audience)
    signal.addEventListener('abort', audience)
  }
  let tell!: () => void
  const ends = new Promise<T>((resolve, reject) => {
    tell = () => reject(signal.reason)
    audience.add(tell)
    outcome.then(resolve, reject)
  })
  return ends.finally(() => {
    audience.delete(tell)
    if (audience.size === 0) signal.removeEventListener('abort', audience)
  })
}

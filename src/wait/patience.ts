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

export function limited({ signal, timeout }: Limits): boolean {
  return signal !== undefined || timeout !== undefined
}

/**
 * The outcome of the wait, or what `giveUp` returns when the time is up. It is called on an abort, too, and then the reason
 * of the signal is what the promise rejects with. `customTimers`: those of p-timeout.
 */
export async function patiently<T>(
  outcome: Promise<T>,
  { signal, timeout }: Limits,
  giveUp: () => T,
  customTimers?: Options<T>['customTimers'],
): Promise<T> {
  const milliseconds = timeout ?? Number.POSITIVE_INFINITY
  try {
    return await pTimeout<T, T>(outcome, {
      milliseconds,
      fallback: giveUp,
      ...(signal && { signal }),
      ...(customTimers && { customTimers }),
    })
  } catch (error) {
    giveUp()
    throw signal?.aborted ? signal.reason : error
  }
}

/** Helpers for promises that are not settled yet. */

/** Runs everything that is ready to run: all microtasks, and those that they start. */
export function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Returns the present state of a promise: 'pending', its value, or its error. */
export async function now(promise: Promise<unknown>): Promise<unknown> {
  let state: unknown = 'pending'
  const note = (outcome: unknown) => {
    state = outcome
  }
  promise.then(note, note)
  await settled()
  return state
}

/** Returns the same promise. If it rejects before the test reads it, that does not count as unhandled. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

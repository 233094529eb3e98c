/** Looking at promises whose time has not come yet. */

/** Lets everything run that is ready to run: all microtasks, and those that they start. */
export function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** How a promise stands now: 'pending', its value, or its error. */
export async function now(promise: Promise<unknown>): Promise<unknown> {
  let state: unknown = 'pending'
  const note = (outcome: unknown) => {
    state = outcome
  }
  promise.then(note, note)
  await settled()
  return state
}

/** The same promise; a rejection that the test looks at later is not "unhandled" meanwhile. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

/**
 * Receives the outcome of a request, once: one of the two is called. A promise instead would cost each request several
 * objects, and each caller several turns of the queue of microtasks.
 */
export interface Outcome<T> {
  /** `now`: the time, in monotonic ms, if it was read when the reply came. */
  done(value: T, now?: number): void
  failed(error: Error): void
}

/** Passes the outcome of a promise on. */
export function settle<T>(promise: Promise<T>, to: Outcome<T>): void {
  promise.then(
    value => to.done(value),
    error => to.failed(error),
  )
}

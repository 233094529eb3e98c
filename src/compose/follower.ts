import { onAbort } from '../key/limits.ts'

/**
 * Makes a signal that aborts with the first of the signals that it follows. `AbortSignal.any` would do the same, but
 * Node 20 keeps an entry for each signal that it makes, for as long as a followed signal lives. A program may pass one
 * signal to all of its calls. And if a signal of `AbortSignal.any` has a listener, Node 20 keeps it for ever.
 */
export class Follower extends AbortController {
  readonly #left: (() => void)[] = []

  follow(signal: AbortSignal): void {
    if (signal.aborted) this.abort(signal.reason)
    else this.#left.push(onAbort(signal, () => this.abort(signal.reason)))
  }

  /** Ends what `follow` has begun. Nothing of it is left in the followed signals. */
  stop(): void {
    for (const leave of this.#left.splice(0)) leave()
  }
}

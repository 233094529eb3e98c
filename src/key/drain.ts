/**
 * The drain of a closing client: the time in which its holders may still release their locks. The drain is over when
 * the client holds nothing any more, or when the time given to `close` has passed. If `close` was called several times,
 * the drain is over when the first of the given times has passed.
 */
import type { Clock, Timer } from '../clock.ts'

export class Drain {
  /** Resolves when the drain is over. `ended` has been called by then. */
  readonly over: Promise<void>
  readonly #clock: Clock
  readonly #ended: () => void
  #resolve!: () => void
  #end = Number.POSITIVE_INFINITY
  #timer: Timer | undefined

  /** `ended` is called once, at the moment when the drain is over. */
  constructor(clock: Clock, ended: () => void) {
    this.#clock = clock
    this.#ended = ended
    this.over = new Promise(resolve => {
      this.#resolve = resolve
    })
  }

  /** Ends the drain `ms` from now, or earlier if an earlier end is set. */
  within(ms: number): void {
    const now = this.#clock.now()
    const end = now + ms
    if (end >= this.#end) return
    this.#end = end
    this.#timer?.cancel()
    if (ms > 0) this.#timer = this.#clock.after(ms, () => this.finish())
    else this.finish()
  }

  /** Ends the drain now. */
  finish(): void {
    if (this.#end === Number.NEGATIVE_INFINITY) return
    // `#end` is set before `ended` is called. `ended` emits events, and a listener may call `close` again. This second
    // call must find that the drain has ended.
    this.#end = Number.NEGATIVE_INFINITY
    this.#timer?.cancel()
    this.#ended()
    this.#resolve()
  }
}

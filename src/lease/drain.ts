/**
 * The drain of a closing client: the time that the client gives its holders to release. The drain is over when the
 * client holds nothing any more, or at the earliest time that a caller of `close` has set.
 */
import type { Clock, Timer } from '../clock.ts'

export class Drain {
  /** Resolves when the drain is over, after `ended` was called. */
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
    // The end is set before `ended` is called, because a listener may then close the client again.
    this.#end = Number.NEGATIVE_INFINITY
    this.#timer?.cancel()
    this.#ended()
    this.#resolve()
  }
}

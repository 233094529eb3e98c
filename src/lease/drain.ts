/**
 * The time that a closing client gives its holders to release. The drain is over when nothing is held, or at the
 * earliest of the ends that callers of `close` have set.
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
    // Set before `ended` is called, because its listeners may close the client again.
    this.#end = Number.NEGATIVE_INFINITY
    this.#timer?.cancel()
    this.#ended()
    this.#resolve()
  }
}

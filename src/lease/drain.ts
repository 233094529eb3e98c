/**
 * The time that a client which is being closed leaves to those who hold: it is over when nothing is held any more, or at
 * the earliest of the ends that its caller has named.
 */
import type { Clock, Timer } from '../clock.ts'

export class Drain {
  /** Resolves at the end, after `ended` was called. */
  readonly over: Promise<void>
  readonly #clock: Clock
  readonly #ended: () => void
  #resolve!: () => void
  #end = Number.POSITIVE_INFINITY
  #timer: Timer | undefined

  /** `ended`: called once, in the moment of the end. */
  constructor(clock: Clock, ended: () => void) {
    this.#clock = clock
    this.#ended = ended
    this.over = new Promise(resolve => {
      this.#resolve = resolve
    })
  }

  /** It ends so many ms from now, unless it ends sooner. */
  within(ms: number): void {
    const now = this.#clock.now()
    const end = now + ms
    if (end >= this.#end) return
    this.#end = end
    this.#timer?.cancel()
    if (ms > 0) this.#timer = this.#clock.after(ms, () => this.finish())
    else this.finish()
  }

  /** It ends now. */
  finish(): void {
    if (this.#end === Number.NEGATIVE_INFINITY) return
    // Before anybody is told: a listener may close the client once more.
    this.#end = Number.NEGATIVE_INFINITY
    this.#timer?.cancel()
    this.#ended()
    this.#resolve()
  }
}

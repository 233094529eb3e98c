/** The events of one history, as text. If `kept` is false, nothing is formatted or stored. */
import type { Timeline } from './timeline.ts'

export class Trace {
  readonly lines: string[] = []
  readonly #timeline: Timeline
  readonly #kept: boolean

  constructor(timeline: Timeline, kept: boolean) {
    this.#timeline = timeline
    this.#kept = kept
  }

  note(who: string, what: () => string): void {
    if (this.#kept) this.lines.push(`${this.#timeline.now.toFixed(3).padStart(10)}  ${who.padEnd(8)} ${what()}`)
  }
}

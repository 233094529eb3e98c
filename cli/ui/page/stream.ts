/** The way from the server: frames as they come, and whether they come. */
import type { Frame, View } from './messages.ts'

/**
 * `live`: pictures come in time. `late`: they do not, for this reason, as far as it is known. `lost`: the program is not there,
 * and it is tried again. `over`: there is nothing at this address any more.
 */
export type Condition =
  | { readonly name: 'live' | 'lost' | 'over'; readonly age: number | null }
  | { readonly name: 'late'; readonly age: number | null; readonly reason: string | null }

/** Between two looks at the clock, in ms. */
const TICK = 1_000
/** The server says something every two seconds: after this many ms without a word, the way is cut. */
const SILENCE = 6_000

export class Stream {
  readonly #draw: (frame: Frame) => void
  readonly #tell: (condition: Condition) => void
  #source: EventSource | undefined
  #address = ''
  /** The last frame's own word on its picture, and when it came. */
  #last: { readonly age: number | null; readonly patience: number; readonly trouble: string | null } | undefined
  #heard = 0
  /** When it was last opened, and whether a frame has come since. */
  #opened = 0
  #begun = false

  constructor(draw: (frame: Frame) => void, tell: (condition: Condition) => void) {
    this.#draw = draw
    this.#tell = tell
    setInterval(() => this.#judge(), TICK)
    // Who does not see it does not look: so nothing is asked of Redis for a page in the background.
    document.addEventListener('visibilitychange', () => (document.hidden ? this.#close() : this.#open()))
    addEventListener('pagehide', () => this.#close())
    addEventListener('pageshow', () => this.#open())
  }

  look({ sort, reversed, filter, rows, holders, queue, open }: View): void {
    const query = {
      sort,
      filter,
      reversed: String(reversed),
      rows: String(rows),
      holders: String(holders),
      queue: String(queue),
      open: open?.key ?? '',
      kind: open?.kind ?? '',
    }
    this.#address = `events?${new URLSearchParams(query)}`
    this.#close()
    this.#open()
  }

  #open(): void {
    if (this.#source || document.hidden || this.#address === '') return
    this.#opened = performance.now()
    this.#begun = false
    this.#source = new EventSource(this.#address)
    this.#source.addEventListener('message', ({ data }) => {
      const frame = JSON.parse(data) as Frame
      this.#last = frame
      this.#begun = true
      this.#heard = performance.now()
      this.#draw(frame)
      this.#judge()
    })
    this.#source.addEventListener('error', () => this.#judge())
  }

  #close(): void {
    this.#source?.close()
    this.#source = undefined
  }

  #judge(): void {
    if (!this.#source) return
    const now = performance.now()
    const silent = now - Math.max(this.#heard, this.#opened)
    const { age: was = null, patience = 0, trouble = null } = this.#last ?? {}
    const age = was === null ? null : was + now - this.#heard
    const { readyState } = this.#source
    if (readyState === EventSource.CLOSED) this.#tell({ name: 'over', age })
    else if (silent > SILENCE || (this.#begun && readyState === EventSource.CONNECTING))
      this.#tell({ name: 'lost', age })
    else if (!this.#begun)
      return // what was so before still is, until it is known better
    else if (trouble !== null || age === null || age > patience) this.#tell({ name: 'late', age, reason: trouble })
    else this.#tell({ name: 'live', age })
  }
}

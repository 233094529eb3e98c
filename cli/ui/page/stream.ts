/** Reads the stream from the server: delivers its frames, and reports whether they arrive. */
import type { Frame, View } from './messages.ts'

/**
 * - `live`: data about the locks arrive in time.
 * - `late`: the data arrive late; `reason` says why, if that is known.
 * - `lost`: `baton ui` does not answer, and the page keeps trying.
 * - `over`: `baton ui` no longer serves a page at this address.
 */
export type Condition =
  | { readonly name: 'live' | 'lost' | 'over'; readonly age: number | null }
  | { readonly name: 'late'; readonly age: number | null; readonly reason: string | null }

/** How often the page checks whether its data are late, in ms. */
const TICK = 1_000
/**
 * The server sends something every two seconds. After this many ms without a message, the connection is considered
 * broken.
 */
const SILENCE = 6_000

export class Stream {
  readonly #draw: (frame: Frame) => void
  readonly #tell: (condition: Condition) => void
  #source: EventSource | undefined
  #address = ''
  /** Values from the last message of the server. `#heard` is the time when this message arrived. */
  #last: { readonly age: number | null; readonly patience: number; readonly trouble: string | null } | undefined
  #heard = 0
  /** The time when the stream was last opened. `#begun` says whether a message has arrived since then. */
  #opened = 0
  #begun = false

  constructor(draw: (frame: Frame) => void, tell: (condition: Condition) => void) {
    this.#draw = draw
    this.#tell = tell
    setInterval(() => this.#judge(), TICK)
    // A hidden page closes its stream, so it costs Redis nothing.
    document.addEventListener('visibilitychange', () => (document.hidden ? this.#close() : this.#open()))
    addEventListener('pagehide', () => this.#close())
    addEventListener('pageshow', () => this.#open())
  }

  look({ sort, reversed, filter, rows, within, groups, holders, queue, open }: View): void {
    const query = {
      sort,
      filter,
      reversed: String(reversed),
      rows: String(rows),
      within,
      groups: String(groups),
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
      return // the previous condition stays until a message arrives or the connection fails
    else if (trouble !== null || age === null || age > patience) this.#tell({ name: 'late', age, reason: trouble })
    else this.#tell({ name: 'live', age })
  }
}

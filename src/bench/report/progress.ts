/** How far the run is: in a terminal a bar with the time left, elsewhere only which server is used. */
import type { WriteStream } from 'node:tty'
import { createLogUpdate } from 'log-update'
import type { Listener } from '../run.ts'

export interface Progress extends Listener {
  /** Leaves the terminal as it is; nothing is drawn afterwards. */
  end(): void
}

const width = 30
const drawEvery = 250

export function openProgress(out: WriteStream, env: NodeJS.ProcessEnv): Progress {
  const live = out.isTTY === true && env['TERM'] !== 'dumb'
  const announce = (line: string) => void out.write(`${line}\n`)
  return live ? new Bar(out) : { announce, look() {}, begin() {}, trial() {}, ended() {}, end() {} }
}

class Bar implements Progress {
  readonly #update: ReturnType<typeof createLogUpdate>
  #total = 0
  /** Expected ms of the trials that have ended, and of the one that is running. */
  #done = 0
  #current = 0
  /** What those that have ended took. */
  #took = 0
  #currentAt = 0
  #failed = 0
  #text = ''
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly out: WriteStream) {
    this.#update = createLogUpdate(out)
  }

  announce(line: string): void {
    this.out.write(`${line}\n`)
  }

  look(rival: string): void {
    this.#update(`Looking at ${rival}`)
  }

  begin(expected: number): void {
    this.#total = expected
    this.#timer = setInterval(() => this.#draw(), drawEvery)
  }

  trial(rival: string, scenario: string, round: number, expected: number): void {
    this.#current = expected
    this.#currentAt = performance.now()
    this.#text = `${scenario}, round ${round}: ${rival}`
    this.#draw()
  }

  ended({ outcome }: { outcome: string }): void {
    this.#done += this.#current
    this.#took += performance.now() - this.#currentAt
    this.#current = 0
    if (outcome === 'failed') this.#failed += 1
  }

  end(): void {
    clearInterval(this.#timer)
    this.#update.clear()
    this.#update.done()
  }

  #draw(): void {
    const now = performance.now()
    // One that takes longer than expected stands still at its end.
    const done = this.#done + Math.min(now - this.#currentAt, this.#current)
    const share = this.#total === 0 ? 0 : done / this.#total
    const full = Math.round(share * width)
    const bar = '█'.repeat(full) + '░'.repeat(width - full)
    // The trials to come are off their expectation by as much as those before.
    const factor = this.#done === 0 ? 1 : this.#took / this.#done
    const left = clock((this.#total - done) * factor)
    const failed = this.#failed > 0 ? `  ${this.#failed} failed` : ''
    const line = `${bar} ${Math.floor(share * 100)} %  ${left} left  ${this.#text}${failed}`
    this.#update(line.slice(0, (this.out.columns || 80) - 1))
  }
}

function clock(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/**
 * Shows the progress of a run. A terminal shows a bar with the time left. Otherwise, a line for each round of a
 * scenario is printed to stderr.
 */
import type { Writable } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { createLogUpdate } from 'log-update'
import type { Trial } from '../contract.ts'
import type { Listener } from '../run.ts'

export interface Progress extends Listener {
  /** Removes the bar. Nothing is drawn afterwards. */
  end(): void
}

const width = 30
const drawEvery = 250

/**
 * Opens the display of a run. If `out` is not a terminal, another program may read it, so it receives only the server's
 * name and the tables.
 */
export function openProgress(out: WriteStream, errors: Writable, env: NodeJS.ProcessEnv): Progress {
  const live = out.isTTY === true && env['TERM'] !== 'dumb'
  return live ? new Bar(out) : new Lines(out, errors)
}

/** Estimates the progress and the time left, from expected and measured durations. */
class Pace {
  /** A text with the number of trials that have failed so far; empty if none has failed. */
  failures = ''
  #failed = 0
  /** Expected ms of all trials. */
  #total = 0
  /** Expected ms of the trials that have ended. */
  #done = 0
  /** Expected ms of the running trial. */
  #current = 0
  /** Measured ms of the trials that have ended. */
  #took = 0
  #currentAt = 0

  begin(expected: number): void {
    this.#total = expected
  }

  trial(expected: number): void {
    this.#current = expected
    this.#currentAt = performance.now()
  }

  ended({ outcome }: Trial, left: number): void {
    this.#done += this.#current
    this.#took += performance.now() - this.#currentAt
    this.#current = 0
    this.#total = this.#done + left
    if (outcome === 'failed') this.failures = `failed measurements: ${++this.#failed}`
  }

  now(): { readonly share: number; readonly left: number } {
    // If the running trial takes longer than expected, only its expected time counts as done.
    const done = this.#done + Math.min(performance.now() - this.#currentAt, this.#current)
    // Assumes that the remaining trials exceed their expected time by the same factor as the trials so far.
    const factor = this.#done === 0 ? 1 : this.#took / this.#done
    return { share: this.#total === 0 ? 0 : done / this.#total, left: Math.max(0, (this.#total - done) * factor) }
  }
}

class Bar implements Progress {
  readonly #update: ReturnType<typeof createLogUpdate>
  readonly #pace = new Pace()
  #text = ''
  #timer: NodeJS.Timeout | undefined

  constructor(private readonly out: WriteStream) {
    this.#update = createLogUpdate(out)
  }

  announce(line: string): void {
    this.out.write(`${line}\n`)
  }

  look(rival: string): void {
    this.#update(`Testing ${rival} briefly before the first round`)
  }

  begin(_rounds: number, expected: number): void {
    this.#pace.begin(expected)
    this.#timer = setInterval(() => this.#draw(), drawEvery)
  }

  trial(rival: string, scenario: string, round: number, expected: number): void {
    this.#pace.trial(expected)
    this.#text = `${scenario}, round ${round}: ${rival}`
    this.#draw()
  }

  ended(trial: Trial, left: number): void {
    this.#pace.ended(trial, left)
  }

  end(): void {
    clearInterval(this.#timer)
    this.#update.clear()
    this.#update.done()
  }

  #draw(): void {
    const { share, left } = this.#pace.now()
    const full = Math.round(share * width)
    const bar = '█'.repeat(full) + '░'.repeat(width - full)
    const { failures } = this.#pace
    const line = `${bar} ${Math.floor(share * 100)} %  ${clock(left)} left  ${this.#text}${failures && `  ${failures}`}`
    this.#update(line.slice(0, (this.out.columns || 80) - 1))
  }
}

class Lines implements Progress {
  readonly #pace = new Pace()
  #rounds = 0
  #last = ''

  constructor(
    private readonly out: Writable,
    private readonly errors: Writable,
  ) {}

  announce(line: string): void {
    this.out.write(`${line}\n`)
  }

  look(): void {
    this.#say('Testing each lock briefly before the first round')
  }

  begin(rounds: number, expected: number): void {
    this.#rounds = rounds
    this.#pace.begin(expected)
  }

  trial(_rival: string, scenario: string, round: number, expected: number): void {
    this.#pace.trial(expected)
    const { share, left } = this.#pace.now()
    const { failures } = this.#pace
    const what = `${scenario}, round ${round} of ${this.#rounds}`
    this.#say(
      `${what}: ${Math.floor(share * 100)} % done, about ${roughly(left)} left${failures && `, ${failures}`}`,
      what,
    )
  }

  ended(trial: Trial, left: number): void {
    this.#pace.ended(trial, left)
  }

  end(): void {}

  /** Prints a line. `what` is its subject. If the next lines have the same subject, they are not printed. */
  #say(line: string, what = line): void {
    if (what !== this.#last) this.errors.write(`${line}\n`)
    this.#last = what
  }
}

function clock(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** Returns a duration in words, such as '75 s' or '35 min'. */
export function roughly(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  if (minutes < 2) return `${Math.round(ms / 1_000)} s`
  return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

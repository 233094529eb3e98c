/**
 * A post is the place of one process in a run. It has the connections to the servers, and the process that works there
 * at present. When that process is killed, a new process with a new name takes its place. Steps on one post run one
 * after another.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { bundled, bundleFolder } from '../../kit/bundle.ts'
import { plainEnvironment } from '../../kit/stepped-clock.ts'
import type { Recorder } from '../recorder.ts'
import type { Line } from './line.ts'
import type { Terms } from './terms.ts'
import { Turns } from './turns.ts'
import type { Orders, ToWorker } from './worker.ts'

const program = bundled(new URL('worker.ts', import.meta.url), bundleFolder())

/** What the processes of all posts share. */
export interface Places {
  readonly witnessUrl: string
  readonly history: string
}

export class Post {
  /** The process's ways to the servers, by the numbers of the servers. */
  readonly lines: readonly Line[]
  readonly #terms: Terms
  readonly #places: Places
  readonly #recorder: Recorder
  readonly #number: number
  readonly #turns = new Turns()
  #generation = 0
  #child!: ChildProcess
  #drained = false

  constructor(terms: Terms, places: Places, recorder: Recorder, number: number, lines: readonly Line[]) {
    this.#terms = terms
    this.#places = places
    this.#recorder = recorder
    this.#number = number
    this.lines = lines
    this.#staff()
  }

  /** The name of the present process. */
  get worker(): string {
    return this.workers.at(-1)!
  }

  /** The names of all processes that have worked at this post. The present process is the last. */
  get workers(): string[] {
    return Array.from({ length: this.#generation }, (_, i) => `w${this.#number}.${i + 1}`)
  }

  /** Whether the process's client listens for its grants. */
  get atWork(): boolean {
    return this.lines.some(({ inbox }) => inbox !== undefined)
  }

  get drained(): boolean {
    return this.#drained
  }

  inTurn(step: () => Promise<void>): Promise<void> {
    return this.#turns.inTurn(step)
  }

  tell(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal)
  }

  async replace(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#recorder.record('died', { worker: this.worker })
    this.#child.kill('SIGKILL')
    await gone
    this.#staff()
  }

  /**
   * Asks the process to close its client, and kills the process if it does not end on its own within `patience` ms.
   */
  async dismiss(patience: number): Promise<void> {
    const { worker } = this
    const child = this.#child
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      this.tell('close')
      const timer = setTimeout(() => child.kill('SIGKILL'), patience)
      await gone
      clearTimeout(timer)
    }
    this.#recorder.record('exited', { worker, forced: child.exitCode !== 0 })
    await Promise.all(this.lines.map(({ proxy }) => proxy.close()))
  }

  abandon(): void {
    this.#child.kill('SIGKILL')
  }

  #staff(): void {
    this.#generation += 1
    this.#drained = false
    const orders: Orders = {
      ...this.#terms,
      ...this.#places,
      urls: this.lines.map(({ proxy }) => proxy.url),
      worker: this.worker,
      stream: this.#number * 1_000 + this.#generation,
    }
    this.#child = fork(program, [JSON.stringify(orders)], {
      env: plainEnvironment(),
    })
    this.#child.on('message', message => {
      if (message === 'drained') this.#drained = true
    })
  }
}

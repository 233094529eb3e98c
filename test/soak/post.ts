/**
 * One of the places where a process works: its proxy, and whoever works there at present. A killed process is followed by
 * a new one with a new name. Whatever is done to a post is done one thing after another.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Recorder } from '../history/recorder.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import type { Terms } from './terms.ts'
import type { Orders, ToWorker } from './worker.ts'

const program = fileURLToPath(new URL('worker.ts', import.meta.url))

export interface Places {
  readonly url: string
  readonly witnessUrl: string
  readonly history: string
}

export class Post {
  readonly proxy: FaultProxy
  readonly #terms: Terms
  readonly #places: Places
  readonly #recorder: Recorder
  readonly #number: number
  #generation = 0
  #child!: ChildProcess
  #drained = false
  #turn: Promise<void> = Promise.resolve()

  private constructor(terms: Terms, places: Places, recorder: Recorder, number: number, proxy: FaultProxy) {
    this.#terms = terms
    this.#places = places
    this.#recorder = recorder
    this.#number = number
    this.proxy = proxy
    this.#staff()
  }

  static async open(terms: Terms, places: Places, recorder: Recorder, number: number): Promise<Post> {
    return new Post(terms, places, recorder, number, await FaultProxy.open(places.url))
  }

  /** The present process. */
  get worker(): string {
    return `w${this.#number}.${this.#generation}`
  }

  get drained(): boolean {
    return this.#drained
  }

  /** After everything that was asked before. */
  inTurn(step: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(step)
    return this.#turn
  }

  tell(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal)
  }

  /** SIGKILL, and a new process. */
  async replace(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#recorder.record('died', { worker: this.worker })
    this.#child.kill('SIGKILL')
    await gone
    this.#staff()
  }

  /** Ends the process: by itself within `patience` ms after its client was closed, or else by force. */
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
    await this.proxy.close()
  }

  /** At once, whatever its state. For a run that has failed. */
  abandon(): void {
    this.#child.kill('SIGKILL')
  }

  #staff(): void {
    this.#generation += 1
    this.#drained = false
    const orders: Orders = {
      ...this.#terms,
      ...this.#places,
      url: this.proxy.url,
      worker: this.worker,
      stream: this.#number * 1_000 + this.#generation,
    }
    this.#child = fork(program, [JSON.stringify(orders)], { execArgv: ['--import', 'tsx'] })
    this.#child.on('message', message => {
      if (message === 'drained') this.#drained = true
    })
  }
}

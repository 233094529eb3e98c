/**
 * One of the places where a process works: its proxy, and whoever works there at present. A killed process is followed by
 * a new one with a new name. Whatever is done to a post is done one thing after another.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { FrameProxy } from '../../kit/frame-proxy.ts'
import { plainEnvironment } from '../../kit/stepped-clock.ts'
import type { Recorder } from '../recorder.ts'
import type { Terms } from './terms.ts'
import type { Orders, ToWorker } from './worker.ts'

const program = fileURLToPath(new URL('worker.ts', import.meta.url))

export interface Places {
  readonly url: string
  readonly witnessUrl: string
  readonly history: string
}

export class Post {
  readonly proxy: FrameProxy
  readonly #terms: Terms
  readonly #places: Places
  readonly #recorder: Recorder
  readonly #number: number
  #generation = 0
  #child!: ChildProcess
  #drained = false
  #turn: Promise<void> = Promise.resolve()

  private constructor(terms: Terms, places: Places, recorder: Recorder, number: number, proxy: FrameProxy) {
    this.#terms = terms
    this.#places = places
    this.#recorder = recorder
    this.#number = number
    this.proxy = proxy
    this.#staff()
  }

  static async open(terms: Terms, places: Places, recorder: Recorder, number: number): Promise<Post> {
    return new Post(terms, places, recorder, number, await FrameProxy.open(places.url))
  }

  /** The present process. */
  get worker(): string {
    return this.workers.at(-1)!
  }

  /** All processes that have worked here, the present one last. */
  get workers(): string[] {
    return Array.from({ length: this.#generation }, (_, i) => `w${this.#number}.${i + 1}`)
  }

  /** The channel of the present process's grants, as soon as it listens. */
  get inbox(): string | undefined {
    return this.proxy.channels().find(name => name.startsWith('lock:inbox:'))
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

  /** Its way leads to another server from now on. */
  moveTo(url: string): void {
    this.proxy.switchTo(url)
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
    this.#child = fork(program, [JSON.stringify(orders)], {
      execArgv: ['--import', 'tsx'],
      env: plainEnvironment(),
    })
    this.#child.on('message', message => {
      if (message === 'drained') this.#drained = true
    })
  }
}

/** Child processes that exchange messages with the test. The test's cleanup kills them, whatever their state. */
import { type ChildProcess, fork } from 'node:child_process'
import { inject, onTestFinished } from 'vitest'
import { bundled } from './bundle.ts'
import { stopwatch, whenOver } from './time.ts'

export class Child {
  readonly process: ChildProcess
  readonly messages: unknown[] = []
  readonly #wakers = new Set<() => void>()

  /** Runs a TypeScript file of test/ with these arguments. */
  constructor(file: URL, args: string[] = []) {
    this.process = fork(bundled(file, inject('bundles')), args, { execArgv: ['--enable-source-maps'] })
    this.process.on('message', message => {
      this.messages.push(message)
      for (const wake of this.#wakers) wake()
    })
    onTestFinished(() => this.kill())
  }

  get pid(): number {
    return this.process.pid as number
  }

  send(message: object): void {
    this.process.send(message)
  }

  /** Resolves to the first matching message, whether already received or not. Fails after `limit` ms of a stopwatch. */
  message<T>(matches: (message: T) => boolean, limit = 15_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = (this.messages as T[]).find(matches)
        if (!found) return
        done()
        resolve(found)
      }
      const late = whenOver(stopwatch(this.pid), limit, () => {
        done()
        reject(new Error(`no such message within ${limit} ms: ${matches}; came: ${JSON.stringify(this.messages)}`))
      })
      const done = () => {
        late()
        this.#wakers.delete(look)
      }
      this.#wakers.add(look)
      look()
    })
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal)
  }

  /** Sends SIGKILL and waits for the process to end. */
  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const gone = new Promise(resolve => this.process.once('exit', resolve))
    this.process.kill('SIGKILL')
    await gone
  }
}

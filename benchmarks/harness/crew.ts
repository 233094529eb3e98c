/** Runs the worker processes of one trial: starts them, gives them orders with time limits, and ends them. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { loader, programFile } from '../../local-redis/package-root.ts'
import type { Drained, Order, Report } from '../contract.ts'

export interface Command {
  readonly command: string
  readonly args: readonly string[]
}

type ReportTo<Op extends Order['op']> = Op extends Drained['op'] ? Drained : Extract<Report, { op: Op }>

/** Returns the command that starts a worker in Node. `further`: a module with additional rivals, for tests. */
export function nodeWorker(further?: string): Command {
  const program = programFile('benchmarks/worker/main')
  return {
    command: process.execPath,
    args: ['--expose-gc', ...loader, program, ...(further === undefined ? [] : [further])],
  }
}

const complaintLength = 2_000

export class Worker {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #ended: Promise<void>
  #complaint = ''
  #heard: ((report: Report) => void) | undefined
  #failed: ((error: Error) => void) | undefined

  constructor({ command, args }: Command) {
    // The worker has its own process group, so killing the group also ends processes that the rival's library started.
    this.#child = spawn(command, args, { stdio: 'pipe', detached: true })
    const { stdin, stdout, stderr } = this.#child
    stdin.on('error', () => {}) // a write fails only after the worker has ended, and 'close' below reports the end
    stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-complaintLength)
    })
    createInterface({ input: stdout }).on('line', line => this.#hear(line))
    this.#ended = new Promise(resolve => {
      this.#child.once('close', (code, signal) => {
        this.#failed?.(new Error(`the worker process ended (${signal ?? `exit code ${code}`})${this.#lastWords()}`))
        resolve()
      })
      this.#child.once('error', error => {
        this.#failed?.(error)
        resolve()
      })
    })
  }

  /** Rejects when the worker reports a failure, ends, or has not answered within `limit` ms. */
  ask<O extends Order>(order: O, limit: number): Promise<ReportTo<O['op']>> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer)
        this.#heard = undefined
        this.#failed = undefined
      }
      this.#failed = error => {
        settle()
        reject(error)
      }
      this.#heard = report => {
        if (report.op === 'failed') return this.#failed?.(new Error(report.error))
        settle()
        resolve(report as ReportTo<O['op']>)
      }
      const late = () => this.#failed?.(new Error(`no answer to '${order.op}' within ${(limit / 1_000).toFixed(1)} s`))
      const timer = setTimeout(late, limit)
      if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) {
        return this.#failed(new Error(`the worker process has ended${this.#lastWords()}`))
      }
      this.#child.stdin.write(`${JSON.stringify(order)}\n`)
    })
  }

  /** Sends SIGKILL to the worker and to the processes that it started. Resolves when the worker has ended. */
  async kill(): Promise<void> {
    const { pid } = this.#child
    if (pid !== undefined) {
      try {
        process.kill(-pid, 'SIGKILL')
      } catch {
        // `process.kill` throws if all processes of the group have already ended.
      }
    }
    await this.#ended
  }

  #hear(line: string): void {
    if (line.startsWith('{')) this.#heard?.(JSON.parse(line) as Report) // any other line was printed by a library
  }

  #lastWords(): string {
    const error = /^\w*(?:Error|Exception)\b.*$/m.exec(this.#complaint)?.[0]
    const words = error ?? this.#complaint.trim().split('\n').at(-1) ?? ''
    return words === '' ? '' : `: ${words}`
  }
}

/** Runs a program to its end and keeps what it said. A program that does not end is killed, and counts as failed. */
import { execFile } from 'node:child_process'
import { onTestFinished } from 'vitest'

export interface Ending {
  /** Exit code; null: killed. */
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

/** Time for a program to end, in ms. Generous: it only has to be shorter than for ever. */
const LIMIT = 60_000

interface RunOptions {
  readonly cwd?: URL | string
  /** In addition to this process's own. */
  readonly env?: Record<string, string>
}

export function run(file: string, args: string[], { cwd, env }: RunOptions = {}): Promise<Ending> {
  return new Promise((resolve, reject) => {
    const options = { cwd, env: { ...process.env, ...env }, timeout: LIMIT, killSignal: 'SIGKILL' } as const
    const child = execFile(file, args, { ...options, maxBuffer: 2 ** 26 }, (error, output, errors) => {
      if (error && child.pid === undefined) reject(error)
      else resolve({ code: child.exitCode, output, errors })
    })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
  })
}

/** The same for a program of Node. */
export function runNode(args: string[], options?: RunOptions): Promise<Ending> {
  return run(process.execPath, args, options)
}

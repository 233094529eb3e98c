/**
 * Runs programs until they end or are stopped, and keeps their output. A program that does not end in time is killed,
 * and counts as failed.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export interface Ending {
  /** The exit code; null if a signal killed the program. */
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

/**
 * Time limit for a program, in ms. No program should need that long. The limit only keeps a test from waiting for ever.
 */
const LIMIT = 120_000

interface RunOptions {
  readonly cwd?: URL | string
  /** Environment variables that the program gets besides those of this process. */
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

/** Runs a Node program, as `run` does for other programs. */
export function runNode(args: string[], options?: RunOptions): Promise<Ending> {
  return run(process.execPath, args, options)
}

/** Returns the arguments with which Node runs an example. */
export function example(name: string, ...args: string[]): string[] {
  return ['--import', 'tsx', fileURLToPath(new URL(`../../examples/${name}`, import.meta.url)), ...args]
}

/** A Node program that runs until it is stopped. The caller must end it. */
export class Running {
  readonly lines: string[] = []
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #look = () => {}

  constructor(args: string[], env: Record<string, string>) {
    this.#child = spawn(process.execPath, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#ended = once(this.#child, 'close')
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      createInterface(stream).on('line', line => {
        this.lines.push(line)
        this.#look()
      })
    }
  }

  get pid(): number {
    return this.#child.pid as number
  }

  /** Resolves to the first matching line, whether already printed or not. Rejects if the program ends without it. */
  async line(matches: RegExp): Promise<string> {
    const found = new Promise<string>(resolve => {
      this.#look = () => {
        const line = this.lines.find(each => matches.test(each))
        if (line !== undefined) resolve(line)
      }
      this.#look()
    })
    const ended = this.#ended.then(() => {
      throw new Error(`no line like ${matches}:\n${this.lines.join('\n')}`)
    })
    return Promise.race([found, ended])
  }

  /** Resolves to the exit code when the program ends; null if a signal killed it. */
  async ended(): Promise<number | null> {
    await this.#ended
    return this.#child.exitCode
  }

  /** Sends this signal and resolves to the exit code; null if the signal killed the program. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal)
    await this.#ended
    return this.#child.exitCode
  }
}

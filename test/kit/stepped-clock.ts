/**
 * A time of day and an uptime that a test can set for its servers, and a monotonic clock that can stand still. This module
 * compiles a small library and preloads it into the servers. The library adds offsets to the machine's times. All servers that are
 * started with the same `SteppedClock` have the same offsets. Needs gcc, and servers that are processes on this machine.
 */
import { execFile } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const source = fileURLToPath(new URL('clock-shim.c', import.meta.url))
const variables = ['LD_PRELOAD', 'BATON_CLOCK_OFFSET'] as const

export class SteppedClock {
  readonly #shim: string
  readonly #file: string
  readonly #open: number
  #offset = 0
  #stoodStill = 0

  private constructor(shim: string, file: string) {
    this.#shim = shim
    this.#file = file
    this.#open = openSync(file, 'r+')
  }

  /**
   * Compiles the shared library clock-shim.so into the folder `dir`. The folder must exist as long as the clock is
   * used.
   */
  static async make(dir: string): Promise<SteppedClock> {
    const [shim, file] = [join(dir, 'clock-shim.so'), join(dir, 'clock-offset')]
    await promisify(execFile)('gcc', ['-shared', '-fPIC', '-O1', '-o', shim, source, '-ldl'])
    await writeFile(file, Buffer.alloc(24))
    return new SteppedClock(shim, file)
  }

  /** The clock's time of day now, in ms. */
  now(): number {
    return Date.now() + this.#offset
  }

  /** The clock's offset from the true time of day, in ms. */
  get offset(): number {
    return this.#offset
  }

  /** Sets the offset; it takes effect at once. */
  set(ms: number): void {
    this.#write(ms, 0)
    this.#offset = ms
  }

  /** Takes `ms` out of the monotonic clock. Called before stopped processes go on: they were suspended for that time. */
  stoodStill(ms: number): void {
    this.#stoodStill += ms
    this.#write(this.#stoodStill, 8)
  }

  /** Shifts the uptime by `ms`, at once. */
  setUptime(ms: number): void {
    this.#write(ms, 16)
  }

  /**
   * Runs `launch`. Each process that starts during `launch` gets this clock, unless it starts with `plainEnvironment`.
   */
  async under<T>(launch: () => Promise<T>): Promise<T> {
    Object.assign(process.env, { LD_PRELOAD: this.#shim, BATON_CLOCK_OFFSET: this.#file })
    try {
      return await launch()
    } finally {
      for (const name of variables) delete process.env[name]
    }
  }

  close(): void {
    closeSync(this.#open)
  }

  #write(ms: number, at: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(Math.round(ms * 1_000)))
    writeSync(this.#open, bytes, 0, 8, at)
  }
}

/** Returns this process's environment without the variables that give a new process a stepped clock. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const environment = { ...process.env }
  for (const name of variables) delete environment[name]
  return environment
}

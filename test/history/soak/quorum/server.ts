/**
 * One of the servers of a quorum. It can crash and come back, with or without its data. It can be stopped. It has its
 * own time of day.
 */
import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { findServerSource, type RunningServer } from '../../../../local-redis/index.ts'
import { SteppedClock } from '../../../kit/stepped-clock.ts'
import { eventually } from '../../../kit/time.ts'
import { Turns } from '../scene.ts'
import { quiet } from '../stage.ts'
import type { Emptied } from './stage.ts'

/** Settings with which a server writes each change to disk before it replies. */
const persisting = ['--appendonly', 'yes', '--appendfsync', 'always', '--auto-aof-rewrite-percentage', '0']
const forgetful = ['--appendonly', 'no', '--appendfsync', 'always', '--auto-aof-rewrite-percentage', '0']

/**
 * Starts servers one after another. A server gets its clock from environment variables of this process, and these can
 * name only one clock at a time.
 */
const launches = new Turns()

export class QuorumServer {
  readonly number: number
  readonly clock: SteppedClock
  /** A direct connection to the server. While the server is away, commands wait until it is back. */
  readonly admin: Redis
  readonly #server: RunningServer
  readonly #dir: string
  #stopped = false

  private constructor(number: number, server: RunningServer, clock: SteppedClock, dir: string) {
    this.number = number
    this.clock = clock
    this.admin = quiet(new Redis(server.url, { maxRetriesPerRequest: null, retryStrategy: () => 50 }))
    this.#server = server
    this.#dir = dir
  }

  static async open(number: number, folder: string): Promise<QuorumServer> {
    const source = await findServerSource()
    const dir = join(folder, `server-${number}`)
    mkdirSync(dir)
    const clock = await SteppedClock.make(dir)
    const server = await launched(clock, () => source.start({ args: persisting, dir }))
    return new QuorumServer(number, server, clock, dir)
  }

  get url(): string {
    return this.#server.url
  }

  /** Ends the server as a crash would. */
  kill(): Promise<void> {
    return this.#server.kill()
  }

  /** Restarts the server after a crash, with every change that it has confirmed. */
  async comeBack(): Promise<void> {
    await launched(this.clock, () => this.#server.restart())
  }

  /**
   * Restarts the server after a crash, without data. `says` decides whether the server reports truthfully that it does
   * not persist.
   */
  async comeBackEmpty(says: Emptied): Promise<void> {
    await rm(join(this.#dir, 'appendonlydir'), { recursive: true, force: true })
    const args = says === 'the truth' ? forgetful : persisting
    await launched(this.clock, () => this.#server.restart({ args }))
  }

  /** Makes the server persist its present data, and every write from now on. */
  async persist(): Promise<void> {
    await this.admin.config('SET', 'appendonly', 'yes')
    await eventually(async () => {
      const info = await this.admin.info('persistence')
      return ['aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0', 'aof_last_bgrewrite_status:ok'].every(line =>
        info.includes(line),
      )
    })
  }

  stop(): void {
    this.#signal('SIGSTOP')
    this.#stopped = true
  }

  goOn(): void {
    this.#signal('SIGCONT')
    this.#stopped = false
  }

  async close(): Promise<void> {
    this.admin.disconnect()
    if (this.#stopped) this.goOn()
    await this.#server.stop()
    this.clock.close()
  }

  #signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const { pid } = this.#server
    if (pid === undefined) throw new Error('the soak needs servers that are processes of this machine')
    process.kill(pid, signal)
  }
}

async function launched<T>(clock: SteppedClock, launch: () => Promise<T>): Promise<T> {
  let result: T
  await launches.inTurn(async () => {
    result = await clock.under(launch)
  })
  return result!
}

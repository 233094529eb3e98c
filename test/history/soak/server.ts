/**
 * A server of the locks. It can crash and come back, with or without its data. It can be stopped. It has a time of day
 * that can be set.
 */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis, type RedisOptions } from 'ioredis'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'
import { SteppedClock } from '../../kit/stepped-clock.ts'
import { eventually } from '../../kit/time.ts'
import { Turns } from './turns.ts'

/**
 * The Redis user that makes the faults. No other connection has this user, so it can revoke and restore the rights of
 * all other users.
 */
const KEEPER = { username: 'keeper', password: 'any' } as const
const withKeeper = ['--user', KEEPER.username, 'on', 'nopass', '~*', '&*', '+@all']
/** Settings with which a server writes each change to disk before it replies. */
const persisting = ['--appendonly', 'yes', '--appendfsync', 'always', '--auto-aof-rewrite-percentage', '0']
const forgetful = ['--appendonly', 'no']

/**
 * What a server that comes back empty reports about its persistence. If the report is wrong, two callers may hold a
 * lock at the same time.
 */
export type Emptied = 'the truth' | 'that it persists'

/**
 * Starts servers one after another. A server gets its clock from environment variables of this process, and these can
 * name only one clock at a time.
 */
const launches = new Turns()

interface Props {
  readonly number: number
  readonly server: RunningServer
  readonly args: readonly string[]
  readonly dir: string
  readonly clock: SteppedClock
  readonly ownsClock: boolean
}

export class Server {
  readonly number: number
  readonly clock: SteppedClock
  /** The URL for the user `keeper`. */
  readonly keeperUrl: string
  /** A direct connection to the server. While the server is away, commands wait until it is back. */
  readonly redis: Redis
  /** The path of the file to which the server would save its data. */
  readonly dump: string
  readonly #server: RunningServer
  readonly #args: readonly string[]
  readonly #dir: string
  readonly #ownsClock: boolean
  #stopped = false

  private constructor({ number, server, args, dir, clock, ownsClock }: Props) {
    this.number = number
    this.clock = clock
    this.keeperUrl = server.url.replace('//', `//${KEEPER.username}:${KEEPER.password}@`)
    this.dump = join(dir, 'dump.rdb')
    this.#server = server
    this.#args = args
    this.#dir = dir
    this.#ownsClock = ownsClock
    this.redis = this.connect()
  }

  /** Without `more`, the server persists every write. Without `clock`, it has a clock of its own. */
  static async open(number: number, folder: string, more = persisting, clock?: SteppedClock): Promise<Server> {
    const source = await findServerSource()
    const dir = join(folder, `server-${number}`)
    await mkdir(dir)
    const args = [...withKeeper, ...more]
    const its = clock ?? (await SteppedClock.make(dir))
    const server = await launches.inTurn(() => its.under(() => source.start({ args, dir })))
    return new Server({ number, server, args, dir, clock: its, ownsClock: clock === undefined })
  }

  get url(): string {
    return this.#server.url
  }

  /** Makes one more direct connection. Ignores its errors, which are expected here. The next command reports them. */
  connect(options: RedisOptions = {}): Redis {
    return new Redis(this.url, {
      ...KEEPER,
      maxRetriesPerRequest: null,
      retryStrategy: () => 50,
      ...(options as object),
    }).on('error', () => {})
  }

  /** Ends the server as a crash would. */
  kill(): Promise<void> {
    return this.#server.kill()
  }

  /** Restarts the server after a crash, with every change that is on its disk. */
  async comeBack(...more: readonly string[]): Promise<void> {
    await launches.inTurn(() => this.clock.under(() => this.#server.restart({ args: [...this.#args, ...more] })))
  }

  /**
   * Restarts the server after a crash, without data. `says` decides whether the server reports truthfully that it does
   * not persist.
   */
  async comeBackEmpty(says: Emptied): Promise<void> {
    await this.forgetDisk()
    await this.comeBack(...(says === 'the truth' ? forgetful : []))
  }

  /** Deletes the data on the disk. */
  async forgetDisk(): Promise<void> {
    for (const path of [this.dump, join(this.#dir, 'appendonlydir')]) await rm(path, { recursive: true, force: true })
  }

  /** Makes the server persist its present data, and every write from now on. */
  async persist(): Promise<void> {
    await this.redis.config('SET', 'appendonly', 'yes')
    await eventually(async () => {
      const info = await this.redis.info('persistence')
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
    this.redis.disconnect()
    if (this.#stopped) this.goOn()
    await this.#server.stop()
    if (this.#ownsClock) this.clock.close()
  }

  #signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const { pid } = this.#server
    if (pid === undefined) throw new Error('the soak needs servers that are processes of this machine')
    process.kill(pid, signal)
  }
}

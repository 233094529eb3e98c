/**
 * What a run works with: the server that faults hit; the spare server, which replaces it in a failover; the server of
 * the register (test/history/witnesses.ts), which no fault hits; and one `Post` for each process (post.ts). The Redis
 * user `keeper` makes the faults, through connections of its own.
 */
import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'
import { LockClient } from '../../../src/index.ts'
import type { Place } from '../../kit/replication.ts'
import { SteppedClock } from '../../kit/stepped-clock.ts'
import { Recorder } from '../recorder.ts'
import { OneWay } from './one-way.ts'
import { Post } from './post.ts'
import { LOOPED, type Terms, TIMES } from './terms.ts'

/**
 * The Redis user that makes the faults. No other connection has this user, so it can revoke and restore the rights of
 * all other users.
 */
const KEEPER = { username: 'keeper', password: 'any' } as const
/** A subscriber whose output piles up to this many bytes is disconnected. */
export const OUTPUT_LIMIT = 2_000_000
export const harmed: readonly string[] = [
  ...['--enable-debug-command', 'yes'],
  ...['--lua-time-limit', '50'],
  ...['--user', KEEPER.username, 'on', 'nopass', '~*', '&*', '+@all'],
  ...['--client-output-buffer-limit', `pubsub ${OUTPUT_LIMIT} 0 0`],
  ...['--repl-diskless-sync-delay', '0'],
]

interface Props {
  readonly keys: readonly string[]
  readonly server: RunningServer
  readonly spare: RunningServer
  readonly witness: RunningServer
  /** The time of day of the two servers that can be the master. */
  readonly clock: SteppedClock
  readonly recorder: Recorder
  readonly posts: readonly Post<OneWay>[]
  /** The path of the file to which the server would save its data. */
  readonly dump: string
}

export class Stage {
  readonly keys: readonly string[]
  readonly server: RunningServer
  readonly clock: SteppedClock
  readonly recorder: Recorder
  readonly posts: readonly Post<OneWay>[]
  readonly dump: string
  /**
   * Direct connections to the server that faults hit: the first for faults, the second for commands that would block
   * the first, the third for reading queues.
   */
  readonly admin: Redis
  readonly second: Redis
  readonly eyes: Redis
  readonly register: Redis
  /** The two servers that can be the master. Between faults, the first of them is the master. */
  readonly places: readonly [Place, Place]
  /**
   * The lock client of the user `keeper`. It makes the forced releases. Before the clock is set back, it also requests
   * each lock, so that Redis has data of each lock (clock-faults.ts).
   */
  readonly locks: LockClient
  readonly #servers: readonly RunningServer[]

  private constructor({ keys, server, spare, witness, clock, recorder, posts, dump }: Props) {
    this.keys = keys
    this.server = server
    this.clock = clock
    this.recorder = recorder
    this.posts = posts
    this.dump = dump
    this.#servers = [server, spare, witness]
    const connect = ({ url }: RunningServer) =>
      quiet(new Redis(url, { ...KEEPER, maxRetriesPerRequest: null, retryStrategy: () => 50 }))
    this.admin = connect(server)
    this.second = connect(server)
    this.eyes = connect(server)
    this.register = quiet(new Redis(witness.url))
    this.places = [
      { url: server.url, redis: this.admin },
      { url: spare.url, redis: connect(spare) },
    ]
    // The processes' clients have the same `tokenMemory` and `waiterTtl`. With the longer defaults, locks would still
    // have keys when the end of the run checks that none are left.
    this.locks = new LockClient(
      { port: server.port, host: '127.0.0.1', ...KEEPER },
      { label: 'keeper', tokenMemory: TIMES.tokenMemory, waiterTtl: TIMES.waiterTtl },
    )
  }

  static async open(terms: Terms): Promise<Stage> {
    const { folder } = terms
    const source = await findServerSource()
    const clock = await SteppedClock.make(folder)
    const dir = join(folder, 'server')
    mkdirSync(dir)
    const server = await clock.under(() => source.start({ args: harmed, dir }))
    const spare = await clock.under(() => source.start({ args: harmed }))
    const witness = await source.start()
    const history = join(folder, 'history.jsonl')
    const recorder = new Recorder(history)
    const places = { witnessUrl: witness.url, history }
    const posts: Post<OneWay>[] = []
    for (let i = 1; i <= terms.processes; i++) {
      posts.push(new Post(terms, places, recorder, i, await OneWay.open(server.url)))
    }
    const dump = join(dir, 'dump.rdb')
    return new Stage({ keys: [...terms.keys, LOOPED], server, spare, witness, clock, recorder, posts, dump })
  }

  /** Records the server's time of day. The checker needs it, because tokens are times of this clock. */
  readClock(): void {
    this.recorder.record('clock', { wall: this.clock.now() })
  }

  /**
   * Moves the servers' time of day by `ms`. Reads the time right before and after, so that the history shows when the
   * step happened.
   */
  async stepClock(ms: number): Promise<void> {
    this.readClock()
    this.clock.set(this.clock.offset + ms)
    this.readClock()
    const [seconds] = await this.admin.time()
    const off = Number(seconds) * 1_000 - this.clock.now()
    if (Math.abs(off) > 5_000) throw new Error(`the server's clock is off by ${off} ms: it has not taken the step`)
  }

  /** Deletes the saved data, so that the server's next start is without data. */
  async forgetDump(): Promise<void> {
    await rm(this.dump, { recursive: true, force: true })
  }

  /** Ends the processes, whatever their state. */
  abandon(): void {
    for (const post of this.posts) post.abandon()
  }

  async close(): Promise<void> {
    this.abandon()
    await this.locks.close()
    const [, spare] = this.places
    for (const redis of [this.admin, this.second, this.eyes, this.register, spare.redis]) redis.disconnect()
    await Promise.all(this.#servers.map(server => server.stop()))
    this.clock.close()
    this.recorder.close()
  }
}

/** Ignores connection errors, which are expected here. The next command reports them. */
export function quiet(redis: Redis): Redis {
  return redis.on('error', () => {})
}

/** What a run plays on: the server that is harmed, the one that never is, the posts, and the keeper's own connections. */
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { LockClient } from '../../src/index.ts'
import { findServerSource, type RunningServer } from '../../src/local-redis/index.ts'
import { Recorder } from '../history/recorder.ts'
import { Post } from './post.ts'
import { type Terms, TOKEN_MEMORY } from './terms.ts'

/** The keeper has rights of its own, so that those of everybody else can be revoked and restored. */
const KEEPER = { username: 'keeper', password: 'any' } as const
const harmed = [
  ...['--enable-debug-command', 'yes'],
  ...['--lua-time-limit', '50'],
  ...['--user', KEEPER.username, 'on', 'nopass', '~*', '&*', '+@all'],
]

export class Stage {
  readonly server: RunningServer
  readonly witness: RunningServer
  readonly recorder: Recorder
  readonly history: string
  readonly posts: readonly Post[]
  /** Direct connections to the harmed server: for faults, for what would block the first, and for looking. */
  readonly admin: Redis
  readonly second: Redis
  readonly eyes: Redis
  readonly register: Redis
  /** For forced releases. */
  readonly locks: LockClient

  private constructor(
    server: RunningServer,
    witness: RunningServer,
    recorder: Recorder,
    history: string,
    posts: Post[],
  ) {
    this.server = server
    this.witness = witness
    this.recorder = recorder
    this.history = history
    this.posts = posts
    const connect = () =>
      quiet(new Redis(server.url, { ...KEEPER, maxRetriesPerRequest: null, retryStrategy: () => 50 }))
    this.admin = connect()
    this.second = connect()
    this.eyes = connect()
    this.register = quiet(new Redis(witness.url))
    this.locks = new LockClient(
      { port: server.port, host: '127.0.0.1', ...KEEPER },
      { label: 'keeper', tokenMemory: TOKEN_MEMORY },
    )
  }

  static async open(terms: Terms): Promise<Stage> {
    const source = await findServerSource()
    const server = await source.start({ args: harmed })
    const witness = await source.start()
    const history = join(terms.folder, 'history.jsonl')
    const recorder = new Recorder(history)
    const places = { url: server.url, witnessUrl: witness.url, history }
    const posts: Post[] = []
    for (let i = 0; i < terms.processes; i++) posts.push(await Post.open(terms, places, recorder, i + 1))
    return new Stage(server, witness, recorder, history, posts)
  }

  /** Ends the processes, whatever their state. */
  abandon(): void {
    for (const post of this.posts) post.abandon()
  }

  /** Ends what is still there. */
  async close(): Promise<void> {
    this.abandon()
    await this.locks.close()
    for (const redis of [this.admin, this.second, this.eyes, this.register]) redis.disconnect()
    await Promise.all([this.server.stop(), this.witness.stop()])
    this.recorder.close()
  }
}

/** A lost connection is expected here, and told by the next command. */
function quiet(redis: Redis): Redis {
  return redis.on('error', () => {})
}

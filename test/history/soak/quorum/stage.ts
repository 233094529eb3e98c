/**
 * The parts of a run over a quorum: the servers, the server of the witnesses, the posts of the processes (post.ts), and
 * a client that makes the forced releases.
 */
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { findServerSource, type RunningServer } from '../../../../local-redis/index.ts'
import type { LockClient } from '../../../../src/index.ts'
import { Recorder } from '../../recorder.ts'
import { clientOf } from '../client-of.ts'
import { Post } from '../post.ts'
import { quiet } from '../stage.ts'
import { LOOPED, type Terms } from '../terms.ts'
import { Lines } from './lines.ts'
import { QuorumServer } from './server.ts'
import { majorityOf } from './terms.ts'

interface Props {
  readonly terms: Terms
  readonly servers: readonly QuorumServer[]
  readonly dead: readonly QuorumServer[]
  readonly witness: RunningServer
  readonly recorder: Recorder
  readonly posts: readonly Post<Lines>[]
  readonly emptied: Emptied
}

/**
 * What a server that comes back empty reports about its persistence. If the report is wrong, two callers may hold a
 * lock at the same time.
 */
export type Emptied = 'the truth' | 'that it persists'

export class QuorumStage {
  readonly keys: readonly string[]
  /** The servers, except those that are dead for the whole run. */
  readonly servers: readonly QuorumServer[]
  /** The number of all servers. */
  readonly size: number
  readonly recorder: Recorder
  readonly posts: readonly Post<Lines>[]
  readonly register: Redis
  readonly emptied: Emptied
  /** The run's own client, which makes the forced releases. */
  readonly locks: LockClient
  readonly #witness: RunningServer
  readonly #dead: readonly QuorumServer[]

  private constructor({ terms, servers, dead, witness, recorder, posts, emptied }: Props) {
    this.keys = [...terms.keys, LOOPED]
    this.servers = servers
    this.size = servers.length + dead.length
    this.#dead = dead
    this.recorder = recorder
    this.posts = posts
    this.emptied = emptied
    this.register = quiet(new Redis(witness.url))
    const { lease, waiterTtl, tokenMemory } = terms.times
    const urls = [...servers, ...dead].map(({ url }) => url)
    this.locks = clientOf(urls, { label: 'keeper', lease, waiterTtl, tokenMemory })
    this.#witness = witness
  }

  /** `dies`: whether a minority of the servers dies now. Whether they are killed or stopped follows from the seed. */
  static async open(terms: Terms, count: number, emptied: Emptied, dies: boolean): Promise<QuorumStage> {
    const servers: QuorumServer[] = []
    for (let i = 0; i < count; i++) servers.push(await QuorumServer.open(i, terms.folder))
    const dead = dies ? servers.splice(majorityOf(count)) : []
    const witness = await (await findServerSource()).start()
    const history = join(terms.folder, 'history.jsonl')
    const recorder = new Recorder(history)
    const places = { witnessUrl: witness.url, history }
    const posts: Post<Lines>[] = []
    for (let i = 1; i <= terms.processes; i++) {
      posts.push(new Post(terms, places, recorder, i, await Lines.open([...servers, ...dead].map(({ url }) => url))))
    }
    for (const server of dead) await (terms.seed % 2 === 0 ? server.kill() : server.stop())
    if (dies) {
      const numbers = dead.map(({ number }) => number)
      recorder.record('fault', { fault: 0, name: 'dead', reach: 'server', servers: numbers, phase: 'begin' })
    }
    return new QuorumStage({ terms, servers, dead, witness, recorder, posts, emptied })
  }

  /** Records the server's time of day. The checker needs it, because tokens are times of this clock. */
  readClock({ number, clock }: QuorumServer): void {
    this.recorder.record('clock', { wall: clock.now(), server: number })
  }

  abandon(): void {
    for (const post of this.posts) post.abandon()
  }

  async close(): Promise<void> {
    this.abandon()
    await this.locks.close()
    this.register.disconnect()
    await Promise.all(
      [...this.servers, ...this.#dead, this.#witness].map(server =>
        'close' in server ? server.close() : server.stop(),
      ),
    )
    this.recorder.close()
  }
}

/**
 * What a run works with: the servers of the locks, which faults hit; the server of the register
 * (test/history/witnesses.ts), which no fault hits; and one `Post` for each process (post.ts). If the locks are on one
 * server, a spare server replaces it in a failover. If they are on several servers, each of these persists every write.
 * A server that has come back empty is the exception: it must report that it does not persist, so that clients do not
 * count its votes yet. It persists again once all clients certainly count its votes.
 */
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'
import type { LockClient } from '../../../src/index.ts'
import { Recorder } from '../recorder.ts'
import { clientOf } from './client-of.ts'
import { Line } from './line.ts'
import { Post } from './post.ts'
import { type Emptied, Server } from './server.ts'
import { LOOPED, majorityOf, type Terms } from './terms.ts'

/** A subscriber whose output piles up to this many bytes is disconnected. */
export const OUTPUT_LIMIT = 2_000_000
/** Settings that faults of a single server need. */
const harmed = [
  ...['--enable-debug-command', 'yes'],
  ...['--lua-time-limit', '50'],
  ...['--client-output-buffer-limit', `pubsub ${OUTPUT_LIMIT} 0 0`],
  ...['--repl-diskless-sync-delay', '0'],
]

interface Props {
  readonly terms: Terms
  readonly servers: readonly Server[]
  readonly dead: readonly Server[]
  readonly spare: Server | undefined
  readonly witness: RunningServer
  readonly recorder: Recorder
  readonly posts: readonly Post[]
}

export class Stage {
  readonly keys: readonly string[]
  /** The servers of the locks, except those that are dead for the whole run. */
  readonly servers: readonly Server[]
  /** The number of all servers of the locks. */
  readonly size: number
  /** Replaces a single server in a failover. It has the same clock. */
  readonly spare: Server | undefined
  readonly recorder: Recorder
  readonly posts: readonly Post[]
  /** The connection to the server of the register. */
  readonly register: Redis
  readonly emptied: Emptied
  /**
   * The lock client of the user `keeper`. It makes the forced releases. Before the clock of a single server is set
   * back, it also requests each lock, so that Redis has data of each lock (clock-faults.ts).
   */
  readonly locks: LockClient
  readonly #witness: RunningServer
  readonly #all: readonly Server[]

  private constructor({ terms, servers, dead, spare, witness, recorder, posts }: Props) {
    this.keys = [...terms.keys, LOOPED]
    this.servers = servers
    this.size = terms.servers
    this.spare = spare
    this.recorder = recorder
    this.posts = posts
    this.register = new Redis(witness.url).on('error', () => {})
    this.emptied = terms.disksLost ? 'that it persists' : 'the truth'
    // The processes' clients have the same options. With the longer defaults, locks would still have keys when the end
    // of the run checks that none are left.
    const { lease, waiterTtl, tokenMemory } = terms.times
    const urls = [...servers, ...dead].map(({ keeperUrl }) => keeperUrl)
    this.locks = clientOf(urls, { label: 'keeper', lease, waiterTtl, tokenMemory })
    this.#witness = witness
    this.#all = [...servers, ...dead, ...(spare ? [spare] : [])]
  }

  static async open(terms: Terms): Promise<Stage> {
    const { folder } = terms
    const several = terms.servers > 1
    const servers: Server[] = []
    for (let i = 0; i < terms.servers; i++) servers.push(await Server.open(i, folder, several ? undefined : harmed))
    const spare = several ? undefined : await Server.open(1, folder, harmed, servers[0]!.clock)
    const witness = await (await findServerSource()).start()
    const history = join(folder, 'history.jsonl')
    const recorder = new Recorder(history)
    const places = { witnessUrl: witness.url, history }
    const posts: Post[] = []
    for (let i = 1; i <= terms.processes; i++) {
      const lines = await Promise.all(servers.map(({ url }) => Line.open(url)))
      posts.push(new Post(terms, places, recorder, i, lines))
    }
    const dead = terms.dead ? servers.splice(majorityOf(servers.length)) : []
    for (const server of dead) await (terms.seed % 2 === 0 ? server.kill() : server.stop())
    if (dead.length > 0) {
      const numbers = dead.map(({ number }) => number)
      recorder.record('fault', { fault: 0, name: 'dead', reach: 'server', servers: numbers, phase: 'begin' })
    }
    return new Stage({ terms, servers, dead, spare, witness, recorder, posts })
  }

  /** The only server of a run with one. */
  get server(): Server {
    return this.servers[0]!
  }

  /** Records the server's time of day. The checker needs it, because tokens are times of this clock. */
  readClock({ number, clock }: Server): void {
    this.recorder.record('clock', { wall: clock.now(), server: number })
  }

  /** Ends the processes, whatever their state. */
  abandon(): void {
    for (const post of this.posts) post.abandon()
  }

  async close(): Promise<void> {
    this.abandon()
    await this.locks.close()
    this.register.disconnect()
    await Promise.all([...this.#all.map(server => server.close()), this.#witness.stop()])
    this.recorder.close()
  }
}

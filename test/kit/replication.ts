/** One server as the replica of another, over a link that can be made to lose what is written from a moment on. */
import type { Redis } from 'ioredis'
import { FaultProxy } from './fault-proxy.ts'
import { eventually } from './time.ts'

/** A server, and a connection to it that goes through nothing that is harmed. */
export interface Place {
  readonly url: string
  readonly redis: Redis
}

/** A full copy takes a fork, and up to a second until the replica asks; more on a busy machine. */
const PATIENCE = 15_000

export class Replication {
  readonly #master: Place
  readonly #replica: Place
  readonly #link: FaultProxy

  private constructor(master: Place, replica: Place, link: FaultProxy) {
    this.#master = master
    this.#replica = replica
    this.#link = link
  }

  /** Resolves when the replica has a full copy and follows. */
  static async begin(master: Place, replica: Place): Promise<Replication> {
    const link = await FaultProxy.open(master.url)
    await replica.redis.replicaof('127.0.0.1', new URL(link.url).port)
    await eventually(async () => /master_link_status:up/.test(await replica.redis.info('replication')), PATIENCE)
    return new Replication(master, replica, link)
  }

  /** The replica gets all that had been written before this call, and from its end on nothing. */
  async loseWrites(): Promise<void> {
    const written = await offset(this.#master.redis, 'master_repl_offset')
    await eventually(async () => (await offset(this.#replica.redis, 'slave_repl_offset')) >= written, PATIENCE)
    this.loseWritesNow()
  }

  /** The replica gets nothing from now on. Whether it had all before, the caller knows. */
  loseWritesNow(): void {
    this.#link.swallow('down')
  }

  /** The replica is a master with what it has. */
  async promote(): Promise<void> {
    await this.#replica.redis.replicaof('NO', 'ONE')
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}

async function offset(redis: Redis, name: string): Promise<number> {
  return Number(new RegExp(`${name}:(\\d+)`).exec(await redis.info('replication'))?.[1])
}

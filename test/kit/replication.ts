/**
 * Makes one server the replica of another. From a moment that the test chooses, the replica receives no more writes.
 */
import type { Redis } from 'ioredis'
import { FaultProxy } from './fault-proxy.ts'
import { eventually } from './time.ts'

/** A server, and a direct connection to it. Replication goes through a proxy instead. */
export interface Place {
  readonly url: string
  readonly redis: Redis
}

/** Time limit in ms for a step of the replication. A full copy is slow on a busy machine. */
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

  /** Starts the replication. Resolves when the replica has a full copy and follows the master. */
  static async begin(master: Place, replica: Place): Promise<Replication> {
    const link = await FaultProxy.open(master.url)
    await replica.redis.replicaof('127.0.0.1', new URL(link.url).port)
    await eventually(async () => /master_link_status:up/.test(await replica.redis.info('replication')), PATIENCE)
    return new Replication(master, replica, link)
  }

  /**
   * Waits until the replica has everything that was written before this call. After this call has resolved, the replica
   * receives nothing more.
   */
  async loseWrites(): Promise<void> {
    const written = await offset(this.#master.redis, 'master_repl_offset')
    await eventually(async () => (await offset(this.#replica.redis, 'slave_repl_offset')) >= written, PATIENCE)
    this.loseWritesNow()
  }

  /** From now on, the replica receives nothing. Earlier writes that have not reached it yet are lost too. */
  loseWritesNow(): void {
    this.#link.swallow('down')
  }

  /** Makes the replica a master with the data that it has. */
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

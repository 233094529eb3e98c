/** Inspects the servers directly, without the lock client, in any topology. */
import type { Cluster, Redis } from 'ioredis'
import { calls } from './command-stats.ts'

/** Finds the keys on one server whose names contain `text`. Returns the names, sorted. */
export async function keysWith(redis: Redis, text: string): Promise<string[]> {
  const found: string[] = []
  for await (const names of redis.scanStream({ match: `*${text}*`, count: 1000 })) found.push(...(names as string[]))
  return found.sort()
}

/** The name of the connections with which tests inspect servers. `connections` leaves them out. */
export const ADMIN = 'admin'

/** Inspects all masters of a topology, with all rights. */
export class Admin {
  readonly #parts: readonly (Redis | Cluster)[]

  /** Takes one ioredis instance. For a quorum, takes one instance per server. */
  constructor(...parts: readonly (Redis | Cluster)[]) {
    this.#parts = parts
  }

  /** Asks each master and returns all answers. */
  async each<T>(ask: (master: Redis) => Promise<T>): Promise<T[]> {
    await Promise.all(this.#parts.map(part => part.ping()))
    const masters = this.#parts.flatMap(part => ('nodes' in part ? part.nodes('master') : [part]))
    return Promise.all(masters.map(ask))
  }

  /**
   * Calls `ask` with each ioredis instance: one, or in a quorum one per server. Use this for commands on a key, because
   * the instance of a cluster sends each of them to the node that has the key.
   */
  everywhere<T>(ask: (redis: Redis | Cluster) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#parts.map(ask))
  }

  /** Finds the keys on all servers whose names contain `text`. Returns the names, sorted. */
  async keysWith(text: string): Promise<string[]> {
    const found = await this.each(master => keysWith(master, text))
    return [...new Set(found.flat())].sort()
  }

  /** Returns the sorted names of the channels that have subscribers. */
  async channels(pattern = '*'): Promise<string[]> {
    const found = await this.each(async master => [
      ...((await master.pubsub('CHANNELS', pattern)) as string[]),
      ...((await master.pubsub('SHARDCHANNELS', pattern).catch(noneBefore7)) as string[]),
    ])
    // Leave out the sentinels' own channel.
    return [...new Set(found.flat())].filter(name => name !== '__sentinel__:hello').sort()
  }

  /** Returns the connections in CLIENT LIST, except those of administrators and sentinels. */
  async connections(): Promise<string[]> {
    const lists = await this.each(master => master.client('LIST') as Promise<string>)
    const lines = lists.flatMap(list => list.trim().split('\n'))
    return lines.filter(line => !/ name=(admin|sentinel-\S*) /.test(line) && !/ flags=[SM] /.test(line))
  }

  /** Counts the calls of each command on all masters, since the servers started or since `before`. */
  async calls(before: Record<string, number> = {}): Promise<Record<string, number>> {
    const sum: Record<string, number> = {}
    for (const counts of await this.each(master => calls(master))) {
      for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
    }
    const since = Object.entries(sum).map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
    return Object.fromEntries(since.filter(([, count]) => count > 0))
  }
}

/**
 * A server older than Redis 7 has no sharded channels, and rejects PUBSUB SHARDCHANNELS. In that case, returns no
 * channels.
 */
function noneBefore7(error: Error): never[] {
  if (/SHARDCHANNELS/.test(error.message)) return []
  throw error
}

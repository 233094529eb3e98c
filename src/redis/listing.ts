/** Finds the locks in Redis. One SCAN finds the locks of all kinds. In a cluster, each master is scanned. */
import type { Cluster, Redis } from 'ioredis'
import { hostAndPort } from './address.ts'
import type { Connection } from './connection.ts'
import { glob } from './glob.ts'
import type { Keys, Namespace } from './keys.ts'

/** The COUNT of each SCAN. It limits how long one SCAN blocks the server. */
const PAGE = 500

/**
 * Yields pages of keys that match the pattern and may have a lock, each with the index of its kind in `kinds`. Each key
 * comes at most once. The keys are in no particular order.
 */
export async function* listKeys(
  connection: Connection,
  names: Namespace,
  kinds: readonly Keys[],
  pattern: string,
): AsyncGenerator<[kind: number, key: string][], void, undefined> {
  const matches = glob(pattern)
  const seen = new Set<string>()
  const done = new Set<string>()
  for (;;) {
    const masters = await connection.run(async redis => mastersOf(redis))
    // A server may become master during the listing. It is not in `done` yet, so its locks are listed too.
    const master = masters.find(name => !done.has(name))
    if (master === undefined) return
    done.add(master)
    let cursor = '0'
    do {
      const page = await connection.run(redis => scan(redis, master, cursor, names.pattern))
      if (!page) break
      cursor = page[0]
      const found: [kind: number, key: string][] = []
      for (const name of page[1]) {
        for (const [kind, keys] of kinds.entries()) {
          const key = keys.keyOf(name)
          if (key === undefined || !matches(key) || seen.has(name)) continue
          seen.add(name)
          found.push([kind, key])
        }
      }
      yield found
    } while (cursor !== '0')
  }
}

/** Returns a page of key names. Undefined: `master` is no longer a master. */
async function scan(
  redis: Redis | Cluster,
  master: string,
  cursor: string,
  pattern: string,
): Promise<[string, string[]] | undefined> {
  const server = hasNodes(redis) ? redis.nodes().find(node => hostAndPort(node.options) === master) : redis
  if (server) return server.scan(cursor, 'MATCH', pattern, 'COUNT', PAGE)
  if (!mastersOf(redis).includes(master)) return undefined
  // Another server may have replaced this master. Because of the error below, `Connection` repeats the call, until the
  // slot table has been read again and names the new master.
  if (hasNodes(redis)) redis.refreshSlotsCache(() => {})
  throw new Error(`the master at ${master} is out of reach`)
}

function hasNodes(redis: Redis | Cluster): redis is Cluster {
  return 'nodes' in redis
}

/** Returns the servers that together have all keys: a single server, or every master in the slot table of a cluster. */
function mastersOf(redis: Redis | Cluster): string[] {
  return hasNodes(redis) ? [...new Set(redis.slots.map(([master]) => master as string))] : ['']
}

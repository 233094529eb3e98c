/** Finds the locks in Redis by one SCAN for all kinds; in a cluster, on every master. */
import type { Cluster, Redis } from 'ioredis'
import type { Connection } from './connection.ts'
import { glob } from './glob.ts'
import type { Keys, Namespace } from './keys.ts'

/** The COUNT of each SCAN: it limits for how long one call blocks the server. */
const PAGE = 500

/**
 * Yields the keys that match the pattern and may have a lock, each with the index of its kind in `kinds`. Each key
 * comes at most once, in no particular order, a page at a time.
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
    // A server that has become master during the listing is not in `done`: its locks may not have been listed yet.
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

/** Returns a page of key names; undefined: this server is no longer a master. */
async function scan(
  redis: Redis | Cluster,
  master: string,
  cursor: string,
  pattern: string,
): Promise<[string, string[]] | undefined> {
  const server = hasNodes(redis) ? redis.nodes().find(node => addressOf(node) === master) : redis
  if (server) return server.scan(cursor, 'MATCH', pattern, 'COUNT', PAGE)
  if (!mastersOf(redis).includes(master)) return undefined
  // The server may have been replaced. When the slot table has been read again, it names the new master. Until then,
  // the call is repeated.
  if (hasNodes(redis)) redis.refreshSlotsCache(() => {})
  throw new Error(`${master} is out of reach`)
}

function hasNodes(redis: Redis | Cluster): redis is Cluster {
  return 'nodes' in redis
}

/** Returns the servers that together have all keys: one, or every master in the slot table of a cluster. */
function mastersOf(redis: Redis | Cluster): string[] {
  return hasNodes(redis) ? [...new Set(redis.slots.map(([master]) => master as string))] : ['']
}

function addressOf({ options }: Redis): string {
  return `${options.host}:${options.port}`
}

/** The locks that are in Redis, found by one SCAN for all kinds; in a cluster, on every master. */
import type { Cluster, Redis } from 'ioredis'
import type { Connection } from './connection.ts'
import { glob } from './glob.ts'
import type { Keys, Namespace } from './keys.ts'

/** Keys asked for in one SCAN: it bounds how long the server does nothing else. */
const PAGE = 500

/**
 * The keys that match the pattern and whose lock may be there, each with the place of its kind in `kinds`; each at most once, in no
 * order, a page at a time.
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
    // One that has taken over in the meantime is another one, with locks that may not have been seen.
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

/** A page of names of keys; undefined: this server is no master any more. */
async function scan(
  redis: Redis | Cluster,
  master: string,
  cursor: string,
  pattern: string,
): Promise<[string, string[]] | undefined> {
  const server = hasNodes(redis) ? redis.nodes().find(node => addressOf(node) === master) : redis
  if (server) return server.scan(cursor, 'MATCH', pattern, 'COUNT', PAGE)
  if (!mastersOf(redis).includes(master)) return undefined
  // It may be replaced: the table says by whom, once it has been asked for anew. Until then it is tried again.
  if (hasNodes(redis)) redis.refreshSlotsCache(() => {})
  throw new Error(`${master} is out of reach`)
}

function hasNodes(redis: Redis | Cluster): redis is Cluster {
  return 'nodes' in redis
}

/** The names of the servers whose keys make up the whole: one, or every master of a cluster by its table of slots. */
function mastersOf(redis: Redis | Cluster): string[] {
  return hasNodes(redis) ? [...new Set(redis.slots.map(([master]) => master as string))] : ['']
}

function addressOf({ options }: Redis): string {
  return `${options.host}:${options.port}`
}

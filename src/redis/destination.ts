/**
 * Whether what one address leads to is a server that can have the locks. A node of a cluster has a part of the keys only,
 * and a sentinel none: of the one a call would hear MOVED, and of the other "unknown command", for as long as it tries.
 *
 * Asked of each connection before anything else, for the address may lead elsewhere the next time. Everybody may send
 * HELLO; where it is not known, or not answered as it should be, nothing speaks against the server.
 */
import type { Cluster, Redis } from 'ioredis'
import { isOfCluster, isUninvited, WrongServer } from './refusals.ts'

/** What is special about where a connection leads. */
export interface Destination {
  /** Connecting again may lead to another server, because sentinels say where. */
  readonly followsMaster?: boolean
  /** Looks at the server that a connection has come up to, before anything is asked of it: why it will not do. Never rejects. */
  check?(redis: Redis | Cluster): Promise<Error | undefined>
  /** Whether a refusal shows that the server is the wrong one. */
  betrayed?(redis: Redis | Cluster, refusal: Error): WrongServer | undefined
}

/** `keyOf`: the key of a lock. */
export function singleServer(keyOf: (name: string) => string): Destination {
  return {
    async check(redis) {
      const mode = await modeOf(redis)
      if (mode instanceof Error) return mode
      if (mode === 'sentinel') return sentinel(redis)
      if (mode !== 'cluster') return undefined
      return (await parts(redis, keyOf('a'), keyOf('b'))) ? clusterNode(redis) : undefined
    },
    betrayed: (redis, error) => (isOfCluster(error) ? clusterNode(redis) : undefined),
  }
}

/** A server that others have named. ioredis 5 says that a connection is ready before the server has taken its password. */
export const namedServer: Destination = {
  async check(redis) {
    const mode = await modeOf(redis)
    return mode instanceof Error ? mode : undefined
  },
}

function clusterNode(redis: Redis | Cluster): WrongServer {
  return new WrongServer(`${nameOf(redis)} is a node of a cluster; pass an ioredis Cluster`)
}

function sentinel(redis: Redis | Cluster): WrongServer {
  return new WrongServer(
    `${nameOf(redis)} is a sentinel, which stores no locks; pass { sentinels: [{ host, port }], name: '<name of the master>' }`,
  )
}

function nameOf({ options }: Redis | Cluster): string {
  const { path, host, port } = options as { path?: string; host?: string; port?: number }
  return path ?? `${host}:${port}`
}

/** 'standalone', 'cluster' or 'sentinel', as far as it says so; or why it lets nobody in. */
async function modeOf(redis: Redis | Cluster, refusal?: Error): Promise<unknown> {
  try {
    return field(await redis.call('HELLO'), 'mode')
  } catch (error) {
    if (!isUninvited(error)) return refusal
    // What ioredis 5 sends next may be rejected with what the server has said of the password.
    return refusal ? error : modeOf(redis, error)
  }
}

/** By RESP2 the names and values of a map come as one list. */
function field(map: unknown, name: string): unknown {
  if (Array.isArray(map)) return map[map.indexOf(name) + 1]
  if (map instanceof Map) return map.get(name)
  return (map as Record<string, unknown>)[name]
}

/**
 * Whether it keeps locks apart by their slots. What stands for a whole cluster, and says so, may not; the only node of one
 * does, and cannot renew two locks at once. It is asked for nothing that needs a right of its own.
 */
function parts(redis: Redis | Cluster, one: string, other: string): Promise<boolean> {
  return redis.eval('return 1', 2, one, other).then(
    () => false,
    (error: Error) => isOfCluster(error),
  )
}

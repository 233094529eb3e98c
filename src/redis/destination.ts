/**
 * Checks that the server at the address can store the locks. A node of a cluster has only a part of the keys, and a
 * sentinel has none. Every call to such a node would fail with MOVED, and every call to a sentinel with "unknown
 * command".
 *
 * Each connection is checked before anything else is sent, because the address may lead to another server each time.
 * Every user may send HELLO. A server that does not know HELLO, or whose answer cannot be read, is accepted.
 */
import type { Cluster, Redis } from 'ioredis'
import { isOfCluster, isUninvited, WrongServer } from './refusals.ts'

/** The checks and properties of a connection's destination. */
export interface Destination {
  /** Whether a new connection may lead to another server than the last one, because sentinels name the master. */
  readonly followsMaster?: boolean
  /**
   * Checks the server at the other end of a new connection, before anything else is sent. Resolves to the reason why
   * the server cannot be used, or to undefined. Never rejects.
   */
  check?(redis: Redis | Cluster): Promise<Error | undefined>
  /** Returns an error if this refusal shows that the server is the wrong one. */
  betrayed?(redis: Redis | Cluster, refusal: Error): WrongServer | undefined
}

/** Returns the checks of a connection to a single server. `keyOf`: returns the Redis key of a lock with this name. */
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

/**
 * The check of a server whose address came from a cluster or from sentinels. Only the password is checked, because
 * ioredis 5 reports a connection as ready before the server has accepted the password.
 */
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

/**
 * Asks the server for its mode. Resolves to 'standalone', 'cluster' or 'sentinel'; to undefined if the server does not
 * say; or to an error if it does not accept our password. `refusal`: the first error, if this is the second attempt.
 */
async function modeOf(redis: Redis | Cluster, refusal?: Error): Promise<unknown> {
  try {
    return field(await redis.call('HELLO'), 'mode')
  } catch (error) {
    if (!isUninvited(error)) return refusal
    // HELLO is sent once more. ioredis may reject this second one with the server's answer to the password, which
    // explains more than the first error.
    return refusal ? error : modeOf(redis, error)
  }
}

/** Reads a field of a map, which in RESP2 arrives as one list of names and values. */
function field(map: unknown, name: string): unknown {
  if (Array.isArray(map)) return map[map.indexOf(name) + 1]
  if (map instanceof Map) return map.get(name)
  return (map as Record<string, unknown>)[name]
}

/**
 * Returns whether the server refuses a script with keys of two slots. A proxy for a whole cluster may call itself a
 * cluster and still accept the script; such a server can be used. A node that is alone in its cluster refuses the
 * script, and could not renew two locks in one call. EVAL is a command that the locks need anyway, so the check needs
 * no further right.
 */
function parts(redis: Redis | Cluster, one: string, other: string): Promise<boolean> {
  return redis.eval('return 1', 2, one, other).then(
    () => false,
    (error: Error) => isOfCluster(error),
  )
}

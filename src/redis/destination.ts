/**
 * Checks that the server at the address can store the locks, and selects the database. A node of a cluster has only a
 * part of the keys, and a sentinel has none. Calls to a node would fail with MOVED, and calls to a sentinel with
 * "unknown command".
 *
 * Each connection is checked before anything else is sent, because the address may lead to another server each time.
 * The check sends HELLO, which every user may send. If the server does not know HELLO, or if its answer cannot be read,
 * the server is accepted.
 *
 * The check also sends SELECT, because ioredis would use database 0 if the server refuses SELECT, as a busy server does.
 * Then two clients would hold the same lock, in two databases (I1).
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { isError } from '../errors.ts'
import { hostAndPort } from './address.ts'
import { isDemoted, isFinal, isOfCluster, isUninvited, WrongServer } from './refusals.ts'
import { withoutArguments } from './without-arguments.ts'

/** The server that a connection should reach, and the checks of that server. */
export interface Destination {
  /**
   * Checks the server at the other end of a new connection, before anything else is sent. `demoted`: the address led to
   * a replica, so the server also has to accept a write. If the server cannot be used, resolves to the reason,
   * otherwise to undefined. Never rejects.
   */
  check?(redis: Redis | Cluster, demoted: boolean): Promise<Error | undefined>
  /** If a refusal shows that the server is the wrong one, returns the error that says so. */
  wrongServer?(redis: Redis | Cluster, refusal: Error): WrongServer | undefined
}

/** Returns the checks of a connection to a single server. `keyOf` returns the Redis key of the lock `name`. */
export function singleServer(keyOf: (name: string) => string, database: number): Destination {
  return {
    async check(redis, demoted) {
      const [mode, refusal] = await Promise.all([modeOf(redis), select(redis, database)])
      if (isError(mode)) return mode
      if (mode === 'sentinel') return sentinel(redis)
      if (mode === 'cluster' && (await parts(redis, keyOf('a'), keyOf('b')))) return clusterNode(redis)
      return refusal ?? (demoted ? refusedWrite(redis, keyOf('a')) : undefined)
    },
    wrongServer: (redis, error) => (isOfCluster(error) ? clusterNode(redis) : undefined),
  }
}

/**
 * The check of a node whose address came from a cluster. It checks only whether the node has accepted the password,
 * because ioredis 5 may report a connection as ready before that.
 */
export const clusterMember: Destination = {
  async check(redis) {
    const mode = await modeOf(redis)
    return isError(mode) ? mode : undefined
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
  return (options as RedisOptions).path ?? hostAndPort(options as RedisOptions)
}

/**
 * Asks the server for its mode. Resolves to 'standalone', 'cluster' or 'sentinel', or to undefined if the server does
 * not say. If HELLO fails because the server has not accepted the password, HELLO is sent a second time. If that fails
 * too, resolves to an error. `refusal`: the error of the first HELLO.
 */
async function modeOf(redis: Redis | Cluster, refusal?: Error): Promise<unknown> {
  try {
    return field(await redis.call('HELLO'), 'mode')
  } catch (error) {
    if (!isUninvited(error)) return refusal
    // HELLO is sent once more, because ioredis may reject the second HELLO with the server's answer to the password.
    // That answer says more than the first error.
    return refusal ? error : modeOf(redis, error)
  }
}

/**
 * Selects the database. If the server refuses, resolves to the reason. A refusal that may pass is returned as it is.
 * The command is in capitals, so that ioredis does not recognise it: ioredis would select the same database on the next
 * connection, and would not handle a refusal there.
 */
async function select(redis: Redis | Cluster, database: number): Promise<Error | undefined> {
  if (database === 0) return undefined
  try {
    await redis.call('SELECT', database)
    return undefined
  } catch (raw) {
    // If the server refuses the password, ioredis may reject SELECT with that error, which contains the password.
    const error = withoutArguments(raw as Error)
    const lasting = isFinal(error) && !isUninvited(error)
    return lasting ? new WrongServer(`Redis refused database ${database}`, error) : error
  }
}

/** A script with a write that changes nothing. */
export const idleWrite = "return redis.call('HDEL', KEYS[1], '')"

/** If the server refuses a write because it is a replica, resolves to this refusal. The write changes nothing. */
function refusedWrite(redis: Redis | Cluster, key: string): Promise<Error | undefined> {
  return redis.eval(idleWrite, 1, key).then(
    () => undefined,
    (error: Error) => (isDemoted(error) ? error : undefined),
  )
}

/** Returns a field of a map. In RESP2, a map arrives as one list in which names and values alternate. */
function field(map: unknown, name: string): unknown {
  if (Array.isArray(map)) return map[map.indexOf(name) + 1]
  const { get } = map as Partial<Map<string, unknown>>
  return typeof get === 'function' ? get.call(map, name) : (map as Record<string, unknown>)[name]
}

/**
 * Returns whether a server that calls itself a cluster refuses a script with keys of two slots. A node of a
 * cluster refuses the script, even if it is the only node. Such a server cannot be used, because the client could not
 * renew two locks in one call. A proxy for a whole cluster may accept the script, and then it can be used. The script
 * is sent with EVAL, because the locks need the right to EVAL anyway.
 */
function parts(redis: Redis | Cluster, one: string, other: string): Promise<boolean> {
  return redis.eval('return 1', 2, one, other).then(
    () => false,
    (error: Error) => isOfCluster(error),
  )
}

/**
 * Checks what the caller gave as `redis`, before anything connects. ioredis ends the process with an unhandled rejection
 * if the database is no number. It ignores options that it does not know, and then connects to 127.0.0.1:6379.
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { LockArgumentError } from '../errors.ts'
import { addressNames, checkNames } from './ioredis-options.ts'
import { serverUrl } from './url.ts'

const accepted =
  'an ioredis Redis or Cluster, its options, a redis:// URL as text, or a client, cluster or sentinel of node-redis 5 or 6'

/** Returns the options of ioredis that the URL stands for. */
export function optionsOfUrl(text: string): RedisOptions {
  const options = serverUrl(text)?.options
  if (options) return options
  const [, socket = '/run/redis.sock'] = /^rediss?:\/\/[^/?#@]*((?:\/[\w.-]+)+\.sock)$/.exec(text) ?? []
  throw new LockArgumentError(
    'redis',
    text === '' ? 'an empty string' : 'no address of Redis (not shown, because it may contain a password)',
    `redis://[user:password@]host:port/database, with / ? # @ % in a password percent-encoded, or rediss://… for TLS; for a Unix socket, unix://${socket} or { path: '${socket}' }; for a cluster, an ioredis Cluster`,
  )
}

/** Checks that these are options of ioredis, for one server or for a master with sentinels. */
export function checkPlain(options: unknown): asserts options is RedisOptions {
  if (!isPlain(options)) throw new LockArgumentError('redis', nameOf(options), accepted)
  checkNames(options)
  const { sentinels }: RedisOptions = options
  // `checkPorts` refuses sentinels that are no objects.
  for (const each of [sentinels ?? []].flat())
    if (typeof each === 'object') checkNames({ ...each }, 'redis.sentinels', addressNames)
}

/** Returns the number of the database, which may be given as text. Throws LockArgumentError if it is none. */
export function databaseOf({ db }: Pick<RedisOptions, 'db'>): number {
  return wholeNumber('redis.db', db ?? 0, 0, 2 ** 31 - 1)
}

/** Checks the ports: of the server, unless it has a Unix socket or sentinels name it, and of the sentinels. */
export function checkPorts({ port, path, sentinels }: RedisOptions): void {
  for (const each of [sentinels ?? { port: path ? undefined : port }].flat()) {
    // A text may contain a password, so the error does not show it.
    if (typeof each === 'string') throw new LockArgumentError('redis.sentinels', 'given', 'an array: [{ host, port }]')
    wholeNumber('redis.port', each?.port ?? 6_379, 1, 65_535)
  }
}

function wholeNumber(name: string, value: unknown, least: number, most: number): number {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  if (Number.isInteger(number) && (number as number) >= least && (number as number) <= most) return number as number
  throw new LockArgumentError(name, value, `a whole number from ${least} to ${most}`)
}

/** Returns whether the value is an instance of ioredis. Throws LockArgumentError if the instance cannot be used. */
export function isInstance(value: unknown): value is Redis | Cluster {
  if (typeof value !== 'object' || value === null || !('duplicate' in value && 'options' in value)) return false
  if (!('connector' in value || 'connectionPool' in value)) {
    const why =
      'ioredis-mock has no server that could run the scripts of the locks; for tests, give memory() of redis-baton/memory, or start a Redis'
    throw new LockArgumentError('redis', nameOf(value), `${accepted}; ${why}`)
  }
  // ioredis 4 has no `isCluster` in its Redis. In its Cluster, it has it, and also the list of its scripts.
  if (!('isCluster' in value) || '_addedScriptHashes' in value) {
    throw new LockArgumentError('redis', `${nameOf(value)} of ioredis 4`, 'ioredis 5.4 or newer, or ioredis 6')
  }
  return true
}

/** Describes a value without showing possible secrets. */
function nameOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? `an instance of ${value.constructor?.name || 'a class'}` : value
}

/** Returns whether the value is a plain object. The object may come from another realm, as it does in Jest. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || (Object.getPrototypeOf(prototype) === null && !Array.isArray(value))
}

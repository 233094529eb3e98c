/**
 * The client's own connections, made from whatever the caller gave. The caller's instance is only read: duplicates of it
 * are made with its own class, so its version of ioredis, its TLS, Sentinel and NAT settings all stay in force.
 */
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { LockArgumentError } from '../errors.ts'

export type RedisSource = Redis | Cluster | RedisOptions | string

export interface Clients {
  /** A new connection that does not connect by itself. */
  make(): Redis | Cluster
  readonly keyPrefix: string
  /** Whether it is a cluster, where channels belong to slots. */
  readonly cluster: boolean
}

/**
 * What every connection needs, so that a command is never sent twice behind our back and a promise never stays open
 * (redis/connection.ts has the reasons). The prefix is applied in redis/keys.ts, to keys and channels alike.
 */
const manners = {
  lazyConnect: true,
  retryStrategy: () => null,
  enableOfflineQueue: false,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: null,
  enableReadyCheck: false,
  enableAutoPipelining: false,
  reconnectOnError: null,
  commandTimeout: undefined,
  socketTimeout: undefined,
  connectTimeout: 5_000,
  disconnectTimeout: 200,
  keyPrefix: '',
  stringNumbers: false,
  replyMapping: 'legacy',
  monitor: false,
  readOnly: false,
  scripts: undefined,
  himportFieldsets: undefined,
} satisfies RedisOptions

export function clientsOf(source: RedisSource): Clients {
  if (typeof source === 'string') return fromUrl(source)
  if (isCluster(source)) {
    const keyPrefix = source.options.keyPrefix ?? ''
    return { make: () => duplicateCluster(source), keyPrefix, cluster: true }
  }
  if (isRedis(source)) {
    return { make: () => source.duplicate(manners), keyPrefix: source.options.keyPrefix ?? '', cluster: false }
  }
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    throw new LockArgumentError('redis', source, 'an ioredis Redis or Cluster, its options, or a redis:// URL')
  }
  return { make: () => new Redis({ ...source, ...manners }), keyPrefix: source.keyPrefix ?? '', cluster: false }
}

function fromUrl(url: string): Clients {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    // The text itself is not shown: a mistyped URL may hold a password.
    throw new LockArgumentError('redis', '(not shown)', 'a URL that begins with redis:// or rediss://')
  }
  const keyPrefix = new URL(url).searchParams.get('keyPrefix') ?? ''
  return { make: () => new Redis(url, manners), keyPrefix, cluster: false }
}

function duplicateCluster(source: Cluster): Cluster {
  return source.duplicate([], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    retryDelayOnFailover: 0,
    shardedSubscribers: true,
    keyPrefix: '',
    redisOptions: { ...source.options.redisOptions, ...manners },
  })
}

function isRedis(value: unknown): value is Redis {
  return typeof value === 'object' && value !== null && 'duplicate' in value && 'options' in value
}

function isCluster(value: unknown): value is Cluster {
  return value instanceof Cluster || (isRedis(value) && 'nodes' in value)
}

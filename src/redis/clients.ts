/**
 * The client's own connections, made from whatever the caller gave. The caller's instance is only read: duplicates of it
 * are made with its own class, so its version of ioredis, its TLS, Sentinel and NAT settings all stay in force.
 */
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { LockArgumentError } from '../errors.ts'

/**
 * What a client is made from: an ioredis instance, which stays the caller's, its options, or a URL (`redis:`, `rediss:`).
 * @since 0.1.0
 */
export type RedisSource = Redis | Cluster | RedisOptions | string

export interface Clients {
  /** A new connection that does not connect by itself. `silence`: how many ms a node of a cluster may leave a command unanswered. */
  make(silence: number): Redis | Cluster
  readonly keyPrefix: string
  /** Whether it is a cluster, where channels belong to slots. */
  readonly cluster: boolean
  /** How to reach the sentinels, where they say which server is the master. */
  readonly sentinels?: RedisOptions | undefined
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
  role: 'master',
  // ioredis goes on in its list where it was the last time. Once through all of it, then redis/connection.ts tries again.
  sentinelRetryStrategy: times => (times === 1 ? 0 : null),
  // ioredis would wait for the answer of a sentinel that hangs, for ever.
  sentinelCommandTimeout: 1_000,
  // redis/sentinels.ts does that.
  failoverDetector: false,
  readOnly: false,
  scripts: undefined,
  himportFieldsets: undefined,
} satisfies RedisOptions

export function clientsOf(source: RedisSource): Clients {
  if (typeof source === 'string') return fromUrl(source)
  if (isCluster(source)) {
    const keyPrefix = source.options.keyPrefix ?? ''
    return { make: silence => duplicateCluster(source, silence), keyPrefix, cluster: true }
  }
  if (isRedis(source)) {
    const { options } = source
    return { make: () => heardOut(source.duplicate(manners)), ...traits(options) }
  }
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    throw new LockArgumentError('redis', source, 'an ioredis Redis or Cluster, its options, or a redis:// URL')
  }
  return { make: () => heardOut(new Redis({ ...source, ...manners })), ...traits(source) }
}

function traits(options: RedisOptions): Omit<Clients, 'make'> {
  return { keyPrefix: options.keyPrefix ?? '', cluster: false, sentinels: options.sentinels ? options : undefined }
}

function fromUrl(url: string): Clients {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    // The text itself is not shown: a mistyped URL may hold a password.
    throw new LockArgumentError('redis', '(not shown)', 'a URL that begins with redis:// or rediss://')
  }
  const own = new URL(url)
  const keyPrefix = own.searchParams.get('keyPrefix') ?? ''
  // What a URL says counts more for ioredis than what stands beside it.
  for (const name of Object.keys(manners)) own.searchParams.delete(name)
  return { make: () => heardOut(new Redis(own.href, manners)), keyPrefix, cluster: false }
}

/** A connection of our own to a node of a cluster. */
export function ownConnectionTo(node: Redis): Redis {
  return heardOut(node.duplicate(manners))
}

/**
 * MOVED, ASK and TRYAGAIN are followed by ioredis: none of them has run anything. All else is for redis/connection.ts.
 * Of the many connections inside, it sees the answers only; so each has to find out by itself that it is half-open.
 */
function duplicateCluster(source: Cluster, silence: number): Cluster {
  const cluster = source.duplicate([], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    clusterNodeRetryStrategy: null,
    // For a node that is being connected to, which is only done when there is a command for it.
    enableOfflineQueue: true,
    enableReadyCheck: false,
    enableAutoPipelining: false,
    scaleReads: 'master',
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 20,
    // redis/shards.ts does that.
    shardedSubscribers: false,
    keyPrefix: '',
    redisOptions: { ...source.options.redisOptions, ...manners, socketTimeout: silence },
  })
  cluster.on('error', error => tellWhy(cluster, error))
  cluster.on('+node', heardOut)
  cluster.on('+node', hearOutAsking)
  return cluster
}

/**
 * ioredis listens to the first error of a socket. With TLS there may be another behind it (the alert of a server that refuses
 * us, then what is left of the connection), and an error that nobody hears ends the process.
 */
export function heardOut(redis: Redis): Redis {
  const hear = () => redis.stream?.on('error', () => {})
  redis.on('connect', hear)
  redis.on('error', hear)
  return redis
}

/**
 * ASKING is sent ahead of a command that follows a slot on its way, and nobody hears what becomes of it: a user without
 * the right to it would end the process by a rejection that nobody handles. The command behind it says what is wrong.
 */
function hearOutAsking(node: Redis): void {
  const asking = node.asking.bind(node)
  node.asking = (...callback) => {
    const asked = asking(...callback)
    asked.catch(() => {})
    return asked
  }
}

/**
 * Where no node could be asked for the table of slots, ioredis says that the connection was closed, and keeps the socket's
 * error to itself. So one of the nodes is connected to once more.
 */
function tellWhy(cluster: Cluster, { lastNodeError }: Error & { lastNodeError?: Error }): void {
  const [node] = cluster.nodes()
  if (!node || !lastNodeError || lastNodeError.name === 'ReplyError') return
  const probe = heardOut(node.duplicate({ ...manners, connectTimeout: 500 }))
  probe.on('error', reason => cluster.emit('error', reason))
  // The greeting may never be answered.
  const limit = setTimeout(() => probe.disconnect(), 500)
  probe.once('end', () => clearTimeout(limit))
  probe.connect().then(
    () => probe.disconnect(),
    () => {},
  )
}

function isRedis(value: unknown): value is Redis {
  return typeof value === 'object' && value !== null && 'duplicate' in value && 'options' in value
}

function isCluster(value: unknown): value is Cluster {
  return value instanceof Cluster || (isRedis(value) && 'nodes' in value)
}

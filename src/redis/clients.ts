/**
 * The client's own connections, made from whatever the caller gave. The caller's instance is only read: duplicates of it
 * are made with its own class, so its version of ioredis, its TLS, Sentinel and NAT settings all stay in force. Of anything else an
 * instance of the installed ioredis is made first, which is never connected.
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { LockArgumentError, LockError } from '../errors.ts'
import load from './ioredis.cjs'
import { type Credentials, isNodeRedis, type NodeRedisInstance, readNodeRedis } from './node-redis.ts'

/**
 * An instance of ioredis, a `Redis` or a `Cluster`: of version 5.4 or newer, or of 6.
 * @since 0.2.0
 */
export interface IoredisInstance {
  /** What it was made with. @since 0.2.0 */
  readonly options: object
  /** Whether it is connected. @since 0.2.0 */
  readonly status: string
  /** Makes the connections of the client. @since 0.2.0 */
  duplicate(...args: never[]): object
}

/**
 * What a client is made from: an instance of ioredis, which stays the caller's, its options, a URL (`redis:`, `rediss:`), or
 * a client of node-redis.
 * @since 0.1.0
 */
export type RedisSource = IoredisInstance | NodeRedisInstance | RedisOptions | string

export interface Clients {
  /** A new connection that does not connect by itself. `silence`: how many ms a node of a cluster may leave a command unanswered. */
  make(silence: number): Redis | Cluster
  readonly keyPrefix: string
  /** Whether it is a cluster, where channels belong to slots. */
  readonly cluster: boolean
  /** Where sentinels say which server is the master. */
  readonly sentinels?: SentinelClients | undefined
}

export interface SentinelClients {
  /** How to reach them, as for a connection to the master. */
  readonly options: RedisOptions
  /** A connection to one of them. */
  make(options: RedisOptions): Redis
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
  // ioredis 5 introduces itself on whatever connection there is by then, and says of that one that it is ready.
  disableClientInfo: true,
} satisfies RedisOptions

/** What does not count for another server than the master. */
const elsewhere = {
  sentinels: undefined,
  name: undefined,
  path: '',
  username: undefined,
  password: undefined,
  tls: undefined,
  db: undefined,
  connectionName: undefined,
  Connector: undefined,
}

const accepted =
  'an ioredis Redis or Cluster, its options, a redis:// URL, or a client, cluster or sentinel of node-redis 5 or 6'

export function clientsOf(source: RedisSource): Clients {
  const { pattern, credentials } = patternOf(source)
  const { keyPrefix = '' } = pattern.options
  if ('nodes' in pattern) {
    return { make: silence => duplicateCluster(pattern, silence, credentials), keyPrefix, cluster: true }
  }
  const make = () => own(pattern.duplicate(manners), credentials)
  const { options } = pattern
  const sentinel = (options: RedisOptions) => own(pattern.duplicate({ ...manners, ...elsewhere, ...options }))
  return { make, keyPrefix, cluster: false, sentinels: options.sentinels && { options, make: sentinel } }
}

/** An instance to make others from: the caller's, or one that never connects. */
interface Pattern {
  readonly pattern: Redis | Cluster
  readonly credentials?: Credentials | undefined
}

function patternOf(source: RedisSource): Pattern {
  if (typeof source === 'string') return { pattern: fromUrl(source) }
  if (isNodeRedis(source)) {
    const { options, nodes, natMap, keyPrefix, credentials } = readNodeRedis(source)
    if (!nodes) return { pattern: fromOptions(options), credentials }
    const { Cluster } = installed()
    const redisOptions = { ...options, ...manners }
    return { pattern: new Cluster(nodes, { lazyConnect: true, redisOptions, natMap, keyPrefix }), credentials }
  }
  if (isInstance(source)) return { pattern: source }
  if (!isPlain(source)) throw new LockArgumentError('redis', nameOf(source), accepted)
  return { pattern: fromOptions(source) }
}

function fromOptions(options: RedisOptions): Redis {
  return new (installed().Redis)({ ...options, ...manners, keyPrefix: options.keyPrefix })
}

function fromUrl(url: string): Redis {
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) {
    // The text itself is not shown: a mistyped URL may hold a password.
    throw new LockArgumentError(
      'redis',
      '(not shown)',
      'a URL that begins with redis:// or rediss://; for a cluster, an ioredis Cluster',
    )
  }
  const own = new URL(url)
  // What a URL says counts more for ioredis than what stands beside it.
  for (const name of Object.keys(manners)) if (name !== 'keyPrefix') own.searchParams.delete(name)
  return new (installed().Redis)(own.href, manners)
}

function installed(): ReturnType<typeof load> {
  try {
    return load()
  } catch (error) {
    throw new LockError(
      'ERR_LOCK_IOREDIS',
      'cannot load ioredis, which makes the connections; install it: npm install ioredis',
      undefined,
      error,
    )
  }
}

/** A connection of our own to a node of a cluster. */
export function ownConnectionTo(node: Redis): Redis {
  return heardOut(node.duplicate(manners))
}

/**
 * MOVED, ASK and TRYAGAIN are followed by ioredis: none of them has run anything. All else is for redis/connection.ts.
 * Of the many connections inside, it sees the answers only; so each has to find out by itself that it is half-open.
 */
function duplicateCluster(pattern: Cluster, silence: number, credentials?: Credentials): Cluster {
  const cluster = pattern.duplicate([], {
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
    redisOptions: { ...pattern.options.redisOptions, ...manners, socketTimeout: silence },
  })
  cluster.on('error', error => tellWhy(cluster, error))
  cluster.on('+node', node => own(node, credentials))
  cluster.on('+node', hearOutAsking)
  return cluster
}

function own(redis: Redis, credentials?: Credentials): Redis {
  if (credentials) askFirst(redis, credentials)
  return heardOut(redis)
}

/**
 * Each connection is made with the credentials of its time, and so are those that ioredis makes by duplicating this one. It has no
 * option for that, but waits for its connector; where that fails, the attempt to connect has failed.
 */
function askFirst(redis: Redis, credentials: Credentials): void {
  const { connector } = redis as unknown as { connector: { connect(tell: unknown): Promise<unknown> } }
  const connect = connector.connect.bind(connector)
  connector.connect = async tell => {
    const { username, password } = await credentials()
    Object.assign(redis.options, { username, password })
    Object.assign(redis.condition as object, { auth: username ? [username, password] : password })
    return connect(tell)
  }
  const duplicate = redis.duplicate.bind(redis)
  redis.duplicate = override => {
    const other = duplicate(override)
    askFirst(other, credentials)
    return other
  }
}

/**
 * ioredis listens to the first error of a socket. With TLS there may be another behind it (the alert of a server that refuses
 * us, then what is left of the connection), and an error that nobody hears ends the process.
 *
 * A connection of ioredis 5 with a name, which is lost before the server has taken that, counts as ready afterwards, and for ever.
 */
export function heardOut(redis: Redis): Redis {
  const hear = () => redis.stream?.on('error', () => {})
  redis.on('connect', hear)
  redis.on('error', hear)
  redis.on('ready', () => {
    if (redis.stream?.destroyed) redis.status = 'end'
  })
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
  const probe = ownConnectionTo(node)
  probe.options.connectTimeout = 500
  probe.on('error', reason => cluster.emit('error', reason))
  // The greeting may never be answered.
  const limit = setTimeout(() => probe.disconnect(), 500)
  probe.once('end', () => clearTimeout(limit))
  probe.connect().then(
    () => probe.disconnect(),
    () => {},
  )
}

function isInstance(value: unknown): value is Redis | Cluster {
  return typeof value === 'object' && value !== null && 'duplicate' in value && 'options' in value
}

/** Without what may be secret. */
function nameOf(value: unknown): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? `an instance of ${value.constructor.name}` : value
}

/** Also where it comes from another realm, as in Jest. */
function isPlain(value: unknown): value is RedisOptions {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || (Object.getPrototypeOf(prototype) === null && !Array.isArray(value))
}

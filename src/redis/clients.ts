/**
 * Makes the client's own connections from whatever the caller gave. An ioredis instance of the caller is only read.
 * Duplicates of it are made with its own class, so its version of ioredis and its settings for TLS, Sentinel and NAT
 * all apply. For anything else, an instance of the installed ioredis is made first, as a pattern for duplicates; it
 * never connects.
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { LockArgumentError, LockError } from '../errors.ts'
import load from './ioredis.cjs'
import { type Credentials, isNodeRedis, type NodeRedisInstance, readNodeRedis } from './node-redis.ts'

/**
 * An ioredis instance, a `Redis` or a `Cluster`, of version 5.4 or newer, or of version 6.
 * @since 0.2.0
 */
export interface IoredisInstance {
  /** The options that it was made with. @since 0.2.0 */
  readonly options: object
  /** The state of its connection. @since 0.2.0 */
  readonly status: string
  /** Makes a copy of the instance. The lock client's connections are such copies. @since 0.2.0 */
  duplicate(...args: never[]): object
}

/**
 * What a client is made from: an ioredis instance, which remains the caller's; ioredis options; a URL (`redis:`,
 * `rediss:`); or a client of node-redis.
 * @since 0.1.0
 */
export type RedisSource = IoredisInstance | NodeRedisInstance | RedisOptions | string

export interface Clients {
  /**
   * Returns a new connection that does not connect on its own. `silence`: for how many ms a node of a cluster may leave
   * a command unanswered.
   */
  make(silence: number): Redis | Cluster
  readonly keyPrefix: string
  /** Whether it is a cluster, in which channels belong to slots. */
  readonly cluster: boolean
  /** The sentinels that know which server is the master; undefined: there are none. */
  readonly sentinels?: SentinelClients | undefined
}

export interface SentinelClients {
  /** How to reach the sentinels, in the options of a connection to the master. */
  readonly options: RedisOptions
  /** Returns a new connection to one of the sentinels. */
  make(options: RedisOptions): Redis
}

/**
 * Options for every connection, so that ioredis never sends a command twice without our knowledge, and never leaves a
 * promise open (redis/connection.ts has the reasons). redis/keys.ts applies the prefix, to keys and channels alike.
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
  // ioredis continues in its list of sentinels where it last stopped. It may go through the whole list once; then
  // redis/connection.ts tries again.
  sentinelRetryStrategy: times => (times === 1 ? 0 : null),
  // Without a limit, ioredis would wait forever for the answer of a sentinel that hangs.
  sentinelCommandTimeout: 1_000,
  // redis/sentinels.ts detects failovers.
  failoverDetector: false,
  readOnly: false,
  scripts: undefined,
  himportFieldsets: undefined,
  // ioredis 5 may send CLIENT SETINFO on a newer connection than the one it was meant for, and then report the newer
  // connection as ready.
  disableClientInfo: true,
} satisfies RedisOptions

/** Options of the master's connection that do not apply to a sentinel. */
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

/** An instance to duplicate: the caller's, or one that never connects. */
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
    // The URL is not shown: a mistyped URL may contain a password.
    throw new LockArgumentError(
      'redis',
      '(not shown)',
      'a URL that begins with redis:// or rediss://; for a cluster, an ioredis Cluster',
    )
  }
  const own = new URL(url)
  // In ioredis, the parameters of a URL override the options that are passed with it. So the URL must not set these
  // options.
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

/** Returns a new connection of our own to a node of a cluster. */
export function ownConnectionTo(node: Redis): Redis {
  return heardOut(node.duplicate(manners))
}

/**
 * ioredis follows MOVED, ASK and TRYAGAIN, which is safe because none of these commands was executed.
 * redis/connection.ts handles all other errors. It sees only the answers of the many connections inside the cluster, so
 * each of them must detect on its own that it is half-open (`socketTimeout`).
 */
function duplicateCluster(pattern: Cluster, silence: number, credentials?: Credentials): Cluster {
  const cluster = pattern.duplicate([], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    clusterNodeRetryStrategy: null,
    // Queues commands for a node whose connection is being made. ioredis connects to a node only when there is a
    // command for it.
    enableOfflineQueue: true,
    enableReadyCheck: false,
    enableAutoPipelining: false,
    scaleReads: 'master',
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 20,
    // redis/shards.ts subscribes to channels of shards.
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
 * Asks for credentials before each attempt to connect, also on connections that ioredis makes by duplicating this one.
 * ioredis has no option for that, but waits for its connector. If that fails, the attempt to connect fails.
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
 * Handles errors and states of a socket that ioredis overlooks.
 *
 * ioredis handles only the first error of a socket. With TLS, a second one may follow: first the alert of a server that
 * refuses us, then the error of the broken connection. An error event without a listener ends the process.
 *
 * In ioredis 5, a connection with a name that is lost before the server has accepted the name becomes ready afterwards,
 * and stays so forever.
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
 * During a slot migration, ioredis sends ASKING ahead of a command and ignores its result. If the user lacks the right
 * to ASKING, the unhandled rejection would end the process. The command that follows fails too, and its error says what
 * is wrong.
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
 * When no node answers the request for the slot table, ioredis says only that the connection was closed, and hides the
 * socket's error. So one node is connected to once more, to learn the error.
 */
function tellWhy(cluster: Cluster, { lastNodeError }: Error & { lastNodeError?: Error }): void {
  const [node] = cluster.nodes()
  if (!node || !lastNodeError || lastNodeError.name === 'ReplyError') return
  const probe = ownConnectionTo(node)
  probe.options.connectTimeout = 500
  probe.on('error', reason => cluster.emit('error', reason))
  // The server may never answer the greeting.
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

/** Describes a value without showing what may be secret. */
function nameOf(value: unknown): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? `an instance of ${value.constructor.name}` : value
}

/** Also true for objects of another realm, as in Jest. */
function isPlain(value: unknown): value is RedisOptions {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || (Object.getPrototypeOf(prototype) === null && !Array.isArray(value))
}

/**
 * Makes the client's own connections from the source that the caller gave. An ioredis instance of the caller is only
 * read. Its duplicates are made with its own class, so its version of ioredis and its settings for TLS, Sentinel and
 * NAT apply. For any other source, an instance of the installed ioredis is made first, as a pattern for duplicates; the
 * pattern itself never connects.
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
 * The accepted sources of connections: an ioredis instance, which remains the caller's; ioredis options; a URL
 * (`redis:`, `rediss:`); or a client of node-redis.
 * @since 0.1.0
 */
export type RedisSource = IoredisInstance | NodeRedisInstance | RedisOptions | string

export interface Clients {
  /**
   * Returns a new connection, which does not connect on its own. `silence`: for how many ms a node of a cluster may
   * leave a command unanswered.
   */
  make(silence: number): Redis | Cluster
  readonly keyPrefix: string
  /** Whether it is a cluster. In a cluster, each channel belongs to a slot. */
  readonly cluster: boolean
  /** The sentinels that know which server is the master; undefined: there are none. */
  readonly sentinels?: SentinelClients | undefined
}

export interface SentinelClients {
  /** The options of a connection to the master, which say how to reach the sentinels. */
  readonly options: RedisOptions
  /** Returns a new connection to one of the sentinels. */
  make(options: RedisOptions): Redis
}

/**
 * Options for every connection. With them, ioredis never sends a command twice on its own, and never leaves a promise
 * open (redis/connection.ts has the reasons). The prefix is empty, because redis/keys.ts applies it to keys and
 * channels.
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
  // ioredis goes through its list of sentinels from the place where it last stopped. It may go through the whole list
  // once. After that, redis/connection.ts tries again.
  sentinelRetryStrategy: times => (times === 1 ? 0 : null),
  // Without a limit, ioredis would wait forever for the answer of a sentinel that hangs.
  sentinelCommandTimeout: 1_000,
  // redis/sentinels.ts detects failovers.
  failoverDetector: false,
  readOnly: false,
  scripts: undefined,
  himportFieldsets: undefined,
  // ioredis 5 may send CLIENT SETINFO on a newer connection than intended, and then report that connection as ready.
  disableClientInfo: true,
} satisfies RedisOptions

/** The options of the connection to the master that must not apply to a sentinel. */
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

/** The instance to duplicate: the caller's, or one that never connects. */
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
    // The error does not show the URL, because a mistyped URL may contain a password.
    throw new LockArgumentError(
      'redis',
      '(not shown)',
      'a URL that begins with redis:// or rediss://; for a cluster, pass an ioredis Cluster',
    )
  }
  const own = new URL(url)
  // In ioredis, parameters in a URL override the options passed with it. So these options are removed from the URL.
  for (const name of Object.keys(manners)) if (name !== 'keyPrefix') own.searchParams.delete(name)
  return new (installed().Redis)(own.href, manners)
}

function installed(): ReturnType<typeof load> {
  try {
    return load()
  } catch (error) {
    throw new LockError(
      'ERR_LOCK_IOREDIS',
      'cannot load ioredis, which redis-baton needs for its connections; install it: npm install ioredis',
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
 * Makes a connection to a cluster. ioredis may follow MOVED, ASK and TRYAGAIN, because a server that answers so has not
 * executed the command. redis/connection.ts handles all other errors. But it sees only the cluster as a whole, so each
 * connection to a node must detect on its own that it is half-open (`socketTimeout`).
 */
function duplicateCluster(pattern: Cluster, silence: number, credentials?: Credentials): Cluster {
  const cluster = pattern.duplicate([], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    clusterNodeRetryStrategy: null,
    // ioredis connects to a node only when there is a command for that node. The queue keeps commands until then.
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
 * Makes a connection ask for credentials before each attempt to connect. So do connections that ioredis makes by
 * duplicating it. ioredis has no option for this, but it waits for its connector. If the connector fails, so does the
 * attempt.
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
 * ioredis handles only the first error of a socket. With TLS, there may be two: the alert of a server that refuses us,
 * and then the error of the broken connection. The second would be an error event without a listener, which ends the
 * process.
 *
 * In ioredis 5, if a connection with a name is lost before the server has accepted the name, ioredis later marks it as
 * ready, for ever.
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
 * Handles rejected ASKING commands. During a slot migration, ioredis sends ASKING before a command, and ignores the
 * result of ASKING. If the user lacks the right to it, the unhandled rejection would end the process. The command after
 * it fails too, and its error names the problem.
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
 * Finds and reports why no node has answered the request for the slot table. ioredis only reports that the connection
 * was closed, and hides the socket's error. To learn that error, this function connects to one node once more.
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

/** Describes a value without showing possible secrets. */
function nameOf(value: unknown): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? `an instance of ${value.constructor.name}` : value
}

/** Returns whether the value is a plain object, even one of another realm, as in Jest. */
function isPlain(value: unknown): value is RedisOptions {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || (Object.getPrototypeOf(prototype) === null && !Array.isArray(value))
}

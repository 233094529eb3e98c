/**
 * Makes the client's own connections from the source that the caller gave. If the source is an ioredis instance, the
 * connections are duplicates of it. So they have its version of ioredis and its settings for TLS, Sentinel and NAT. The
 * instance itself remains unchanged. For any other source, this file makes an instance of the installed ioredis and
 * duplicates it. This instance never connects.
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import pTimeout from 'p-timeout'
import { isError, LockArgumentError, LockError } from '../errors.ts'
import { checkPlain, checkPorts, databaseOf, isInstance, optionsOfUrl } from './check-source.ts'
import load from './ioredis.cjs'
import { elsewhere, manners } from './ioredis-options.ts'
import { type FetchCredentials, isNodeRedis, type NodeRedisInstance, readNodeRedis, selectedBy } from './node-redis.ts'

/**
 * An ioredis instance, a `Redis` or a `Cluster`, of version 5.4 or newer, or of version 6.
 * @since 0.2.0
 */
export interface IoredisInstance {
  /** The options with which the instance was made. @since 0.2.0 */
  readonly options: object
  /** The state of the instance's connection. @since 0.2.0 */
  readonly status: string
  /** Makes a copy of the instance. The lock client's connections are such copies. @since 0.2.0 */
  duplicate(...args: never[]): object
}

/**
 * The accepted sources of connections: an ioredis instance, ioredis options, a URL (`redis:`, `rediss:`, `unix:`), or a
 * client of node-redis. The caller closes an ioredis instance or a client of node-redis itself. The locks are in the
 * database in which the instance is when the lock client is made. User and password are read anew for each connection.
 * @since 0.1.0
 */
export type RedisSource = IoredisInstance | NodeRedisInstance | RedisOptions | string

export interface Clients {
  /**
   * Makes an ioredis instance that does not connect yet. `silence`: if a node of a cluster leaves a command unanswered
   * for this many ms, the connection to that node is given up.
   */
  make(silence: number): Redis | Cluster
  readonly keyPrefix: string
  /** The database with the locks. redis/destination.ts selects it on each connection. */
  readonly database: number
  readonly cluster: boolean
  /** The sentinels that know which server is the master. Undefined: Redis has no sentinels. */
  readonly sentinels?: SentinelClients | undefined
}

export interface SentinelClients {
  /** The options of a connection to the master. They name the sentinels, and say how to reach them. */
  readonly options: RedisOptions
  /** Returns a new connection to one of the sentinels. */
  make(options: RedisOptions): Redis
}

/**
 * After this many ms without traffic, the operating system probes whether a connection still works. Load balancers drop
 * connections that are idle for a minute or more. ioredis 5 leaves this to the system, which begins after two hours.
 */
const KEEP_ALIVE = 60_000

/** Returns user and password for a new connection, before each attempt to connect. */
type Credentials = () => Logins | Promise<Logins>

type Logins = Pick<RedisOptions, 'username' | 'password' | 'sentinelUsername' | 'sentinelPassword'>

export function clientsOf(source: RedisSource): Clients {
  const { pattern, database, now, provider } = patternOf(source)
  const { keyPrefix = '' } = pattern.options
  const fetched = async (provider: FetchCredentials) => {
    // A provider that never answers would keep the client from ever connecting again.
    const { username, password } = await pTimeout(provider(), {
      milliseconds: manners.connectTimeout,
      message: 'the credentialsProvider is silent',
    })
    return { ...now(), username, password }
  }
  const credentials = provider ? () => fetched(provider) : now
  if ('nodes' in pattern) {
    const make = (silence: number) => duplicateCluster(pattern, silence, credentials)
    return { make, keyPrefix, database: 0, cluster: true }
  }
  const { options } = pattern
  const make = () => own(pattern.duplicate(mannersFor(options)), credentials)
  const ofSentinel = () => {
    const { sentinelUsername: username, sentinelPassword: password } = now()
    return { username, password }
  }
  const sentinel = (of: RedisOptions) =>
    own(pattern.duplicate({ ...mannersFor(options), ...elsewhere, ...of }), ofSentinel)
  const sentinels = options.sentinels && { options, make: sentinel }
  return { make, keyPrefix, database, cluster: false, sentinels }
}

/** Returns `manners`, and the `keepAlive` of the pattern if that is shorter than `KEEP_ALIVE`. */
function mannersFor({ keepAlive }: RedisOptions): typeof manners & RedisOptions {
  return { ...manners, keepAlive: Math.min(keepAlive || KEEP_ALIVE, KEEP_ALIVE) }
}

interface Pattern {
  /** The ioredis instance to duplicate. It is either the caller's, or one that was made here and never connects. */
  readonly pattern: Redis | Cluster
  readonly database: number
  /** Returns the options of a connection as they are now. The caller may change a password at any time. */
  now(): RedisOptions
  /** Fetches the user and the password; undefined if `now` has them. */
  readonly provider?: FetchCredentials | undefined
}

function patternOf(source: RedisSource): Pattern {
  if (isNodeRedis(source)) {
    const { options, nodes, natMap, keyPrefix, provider } = readNodeRedis(source)
    const given = databaseOf(options)
    const database = selectedBy(source) ?? given
    const now = () => readNodeRedis(source).options
    if (!nodes) return { pattern: fromOptions(options), database, now, provider }
    const redisOptions = { ...options, ...manners }
    const cluster = { lazyConnect: true, redisOptions, natMap, keyPrefix }
    return { pattern: ofIoredis(({ Cluster }) => new Cluster(nodes, cluster)), database, now, provider }
  }
  if (isInstance(source)) {
    const now = () => ('nodes' in source ? (source.options.redisOptions ?? {}) : source.options)
    checkPorts(source.options as RedisOptions)
    return { pattern: source, database: databaseOf({ db: databaseNow(source) ?? now().db }), now }
  }
  const options = typeof source === 'string' ? optionsOfUrl(source) : source
  checkPlain(options)
  return { pattern: fromOptions(options), database: databaseOf(options), now: () => options }
}

/**
 * Returns the database that the instance has selected; undefined if it has not connected yet. While the instance
 * reconnects, `prevCondition` has the database to which it will return.
 */
function databaseNow(redis: Redis | Cluster): number | undefined {
  const { prevCondition, condition } = redis as Partial<Record<'prevCondition' | 'condition', { select?: number }>>
  return (prevCondition ?? condition)?.select
}

function fromOptions(options: RedisOptions): Redis {
  checkPorts(options)
  return ofIoredis(({ Redis }) => new Redis({ ...options, ...manners, keyPrefix: options.keyPrefix }))
}

/** Makes an instance of the installed ioredis. If ioredis refuses the options, its error becomes a LockArgumentError. */
function ofIoredis<T>(make: (installed: ReturnType<typeof load>) => T): T {
  const ioredis = installed()
  try {
    return make(ioredis)
  } catch (error) {
    throw new LockArgumentError('redis', 'options that ioredis refuses', `others: ${(error as Error).message}`)
  }
}

function installed(): ReturnType<typeof load> {
  try {
    return load()
  } catch (error) {
    throw new LockError(
      'ERR_LOCK_IOREDIS',
      'cannot load ioredis, which redis-baton needs for its connections; install it (npm install ioredis), or, in a bundled program, pass an instance of it: new LockClient(new Redis(url))',
      undefined,
      error,
    )
  }
}

/** Returns a new connection to a node of a cluster. The ioredis `Cluster` does not use this connection. */
export function ownConnectionTo(node: Redis): Redis {
  return heardOut(node.duplicate(mannersFor(node.options)))
}

/**
 * Makes a connection to a cluster. If a node answers with MOVED, ASK or TRYAGAIN, ioredis itself sends the command
 * again. That is safe, because the node has not executed the command. redis/connection.ts handles all other errors. But
 * it cannot see the connections to the single nodes. So each of these must itself detect that it is half-open
 * (`socketTimeout`).
 */
function duplicateCluster(pattern: Cluster, silence: number, credentials: Credentials): Cluster {
  const { redisOptions: ofNodes = {} } = pattern.options
  const { username, password } = ofNodes
  const cluster = pattern.duplicate([], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    clusterNodeRetryStrategy: null,
    // ioredis connects to a node only when it has a command for that node. The offline queue keeps the command until
    // the connection is up.
    enableOfflineQueue: true,
    enableReadyCheck: false,
    enableAutoPipelining: false,
    scaleReads: 'master',
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 20,
    // This option is off because redis/shards.ts subscribes to the channels of shards.
    shardedSubscribers: false,
    keyPrefix: '',
    redisOptions: { ...ofNodes, ...mannersFor(ofNodes), socketTimeout: silence },
  })
  cluster.on('error', error => tellWhy(cluster, error))
  // A node from which the cluster is discovered may have a user and a password of its own.
  const isUsual = ({ options }: Redis) => same(options.username, username) && same(options.password, password)
  cluster.on('+node', node => {
    // If the caller's address of a node names a database, ioredis has put it into the options of this node.
    node.options.db = 0
    if (isUsual(node)) own(node, credentials)
    else heardOut(node)
  })
  cluster.on('+node', hearOutAsking)
  return cluster
}

/** Returns whether both are equal, or absent. ioredis replaces an absent option by null. */
function same(one: string | null | undefined, other: string | null | undefined): boolean {
  return (one ?? '') === (other ?? '')
}

/**
 * Makes a connection call `credentials` before each attempt to connect. Duplicates of the connection do the same.
 * ioredis has no option for this. But it waits for the method `connect` of its connector, so this method is replaced by
 * one that first calls `credentials`. If `credentials` fails, the attempt to connect fails.
 */
function own(redis: Redis, credentials: Credentials): Redis {
  const { connector } = redis as unknown as { connector: { connect(tell: unknown): Promise<unknown> } }
  const connect = connector.connect.bind(connector)
  connector.connect = async tell => {
    try {
      const asked = credentials()
      // `disconnect` has no effect before `connect` is called. So only a provider of credentials is waited for.
      const { username, password, sentinelUsername, sentinelPassword } = 'then' in asked ? await asked : asked
      Object.assign(redis.options, { username, password, sentinelUsername, sentinelPassword })
      Object.assign(redis.condition as object, { auth: username ? [username, password] : password })
      return await connect(tell)
    } catch (reason) {
      // ioredis emits the reason as it is, and the listeners of errors need an Error.
      throw isError(reason) ? reason : new Error(`${reason}`)
    }
  }
  const duplicate = redis.duplicate.bind(redis)
  redis.duplicate = override => own(duplicate(override), credentials)
  return heardOut(redis)
}

/**
 * Handles two cases that ioredis overlooks.
 *
 * The first case: ioredis handles only one error of a socket. With TLS, there may be two: the alert of a server that
 * refuses the client, and then the error of the broken connection. Without a listener, the second error would end the
 * process.
 *
 * The second case: a connection with a `connectionName` is lost before the server has accepted the name. ioredis 5 then
 * marks the lost connection as ready and never corrects that.
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
 * result of ASKING. If the Redis user lacks the right to ASKING, the unhandled rejection would end the process. The
 * rejection can be ignored: the command after ASKING fails as well, and its error names the problem.
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
 * was closed, and hides the socket's error. To find the socket's error, this function connects to one node once more.
 */
function tellWhy(cluster: Cluster, { lastNodeError }: Error & { lastNodeError?: Error }): void {
  const [node] = cluster.nodes()
  if (!node || !lastNodeError || lastNodeError.name === 'ReplyError') return
  const probe = ownConnectionTo(node)
  probe.options.connectTimeout = 500
  probe.on('error', reason => cluster.emit('error', reason))
  // This timer ends the probe if the server never completes the handshake.
  const limit = setTimeout(() => probe.disconnect(), 500)
  probe.once('end', () => clearTimeout(limit))
  probe.connect().then(
    () => probe.disconnect(),
    () => {},
  )
}

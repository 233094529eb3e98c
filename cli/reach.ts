/**
 * Opens the first connection to Redis. If this connection fails, the user learns why within seconds. All later
 * connections are made by the lock client, which keeps trying for longer.
 *
 * For a cluster and for sentinels, all named hosts are tried at the same time, and the first answer is enough. ioredis
 * would try one host after the other, would wait for each silent host, and would not report why the last host failed.
 */
import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { messageOf } from '../local-redis/error-message.ts'
import { serverUrl } from '../src/redis/url.ts'
import { withoutArguments } from '../src/redis/without-arguments.ts'
import type { Address, ClusterAddress, Credentials, Host, SentinelAddress, ServerAddress } from './address.ts'
import { exitCodes, Failure } from './failure.ts'

/** Options of a connection. `replyMapping` is left out, because it would change the reply types. */
type Options = Omit<RedisOptions, 'replyMapping'>

/** How long the first connection may take, from connecting until Redis has answered, in ms. */
export const CONNECT_WITHIN = 5_000
/**
 * How long each of several hosts may take to answer, in ms. This is less than `CONNECT_WITHIN`, so that time remains to
 * report which hosts did not answer.
 */
const EACH_WITHIN = 3_500

/** Options for a connection that never reconnects, and that fails instead of waiting. */
const once = {
  lazyConnect: true,
  // The ready check of ioredis calls INFO, which a user with few rights is not allowed to send. The check is not
  // needed: if the server is still loading its data, the lock client waits until it is ready.
  enableReadyCheck: false,
  connectTimeout: CONNECT_WITHIN,
  // How long a disconnect waits for the server to close its side of the connection, in ms. A server that hangs or has
  // died never closes its side.
  disconnectTimeout: 200,
  retryStrategy: () => null,
  sentinelRetryStrategy: () => null,
  maxRetriesPerRequest: 0,
} satisfies Options

/** Opens a connection that does not reconnect. Rejects with Failure within some seconds. */
export async function reach(address: Address): Promise<Redis | Cluster> {
  switch (address.kind) {
    case 'server':
      return reachServer(address)
    case 'cluster':
      return explained(address, reachCluster(address))
    case 'sentinel':
      return explained(address, reachMaster(address))
  }
}

/** Like `reach`, for the commands of `baton` that work with a single server only. */
export function reachServer(address: ServerAddress): Promise<Redis> {
  return explained(address, open(optionsOf(address), CONNECT_WITHIN, greet))
}

/**
 * Checks that more than half of a quorum's servers can be used, and resolves as soon as that is known. Calls `away` for
 * each server that has failed by then. Rejects with Failure as soon as too many servers have failed.
 */
export async function reachMost(servers: readonly ServerAddress[], away: (why: Failure) => void): Promise<void> {
  const most = Math.floor(servers.length / 2) + 1
  const over = new AbortController()
  const failures: Failure[] = []
  let reached = 0
  try {
    await new Promise<void>((resolve, reject) => {
      for (const server of servers) {
        const answer = open(optionsOf(server), CONNECT_WITHIN, greet, { over: true, signal: over.signal })
        explained(server, answer).then(
          () => {
            reached += 1
            if (reached === most) resolve()
          },
          (failure: Failure) => {
            // A cancelled attempt says nothing about its server.
            if (over.signal.aborted) return
            failures.push(failure)
            if (failures.length > servers.length - most) reject(tooFew(servers.length, most, failures))
          },
        )
      }
    })
  } finally {
    over.abort()
  }
  for (const failure of failures) away(failure)
}

function tooFew(all: number, most: number, failures: readonly Failure[]): Failure {
  const reasons = failures.map(({ message }) => message).join('; ')
  return new Failure(
    `fewer than ${most} of the ${all} servers of the quorum can be used: ${reasons}`,
    exitCodes.unavailable,
  )
}

async function reachCluster({ hosts, credentials, tls }: ClusterAddress): Promise<Cluster> {
  const [{ Cluster }, { heardOut }] = await Promise.all([import('ioredis'), import('../src/redis/clients.ts')])
  const ofNodes = { ...credentials, ...(tls && { tls: {} }) }
  await first(hosts, host => open({ ...host, ...ofNodes }, EACH_WITHIN, hasSlots, { over: true }))
  const cluster = new Cluster([...hosts], {
    lazyConnect: true,
    enableReadyCheck: false,
    clusterRetryStrategy: () => null,
    // Without this function, ioredis would replace host names by IP addresses before it connects. There are two reasons
    // against that. TLS checks a certificate against the host's name. And one name that cannot be resolved would make
    // the connection to the whole cluster fail, but must affect only its own node.
    dnsLookup: (host, done) => done(null, host),
    redisOptions: {
      ...ofNodes,
      connectTimeout: CONNECT_WITHIN,
      disconnectTimeout: 200,
      commandTimeout: CONNECT_WITHIN,
      socketTimeout: CONNECT_WITHIN,
    },
  })
  cluster.on('+node', heardOut)
  return firmly(cluster, CONNECT_WITHIN, async () => {
    await cluster.connect()
  })
}

async function reachMaster(address: SentinelAddress): Promise<Redis> {
  const { hosts, credentials, forSentinels, name, database, tls } = address
  const secure = tls ? { tls: {} } : {}
  const knows = (sentinel: Redis) => masterAt(sentinel, name)
  // The first sentinel that answers becomes the first in the list, because ioredis tries one sentinel after the other.
  const answered = await first(hosts, host =>
    open({ ...host, ...forSentinels, ...secure }, EACH_WITHIN, knows, { over: true }).catch(saidBySentinel),
  )
  const options = {
    sentinels: [answered, ...hosts.filter(host => host !== answered)],
    name,
    db: database,
    ...credentials,
    ...sentinelCredentials(forSentinels),
    ...(tls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: 1_000,
  }
  return open(options, CONNECT_WITHIN, connectedTo)
}

function sentinelCredentials({ username, password }: Credentials): Options {
  return {
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
  }
}

/** Returns the first host for which `ask` succeeds. If it fails for all hosts, rejects with all their errors. */
async function first(hosts: readonly Host[], ask: (host: Host) => Promise<unknown>): Promise<Host> {
  try {
    return await Promise.any(hosts.map(host => ask(host).then(() => host)))
  } catch (error) {
    const messages = (error as AggregateError).errors.map(messageOf)
    if (new Set(messages).size === 1) throw new Error(messages[0])
    throw new Error(hosts.map(({ host, port }, i) => `${host}:${port}: ${messages[i]}`).join('; '))
  }
}

interface Opening {
  /** Whether to disconnect once the server has passed the check. */
  readonly over?: true
  readonly signal?: AbortSignal
}

/** The address has been checked before, so it can be parsed. */
function optionsOf({ url }: ServerAddress): Options {
  return serverUrl(url)!.options
}

/** Makes a connection to a server. `check` connects it, and tests the server. */
async function open(
  options: Options,
  milliseconds: number,
  check: (redis: Redis) => Promise<void>,
  { over, signal }: Opening = {},
): Promise<Redis> {
  const [{ Redis }, { heardOut }] = await Promise.all([import('ioredis'), import('../src/redis/clients.ts')])
  const redis = heardOut(new Redis({ ...options, ...once }))
  await firmly(redis, milliseconds, check, signal)
  if (over) redis.disconnect()
  return redis
}

/** Runs `check` on the connection. If it fails, disconnects, and rejects with the error that says most. */
async function firmly<T extends Redis | Cluster>(
  redis: T,
  milliseconds: number,
  check: (redis: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<T> {
  const { default: within } = await import('p-timeout')
  let reason: Error | undefined
  redis.on('error', (error: Error & { lastNodeError?: Error }) => {
    reason = error.lastNodeError ?? error
  })
  try {
    const message = `the server gave no answer within ${milliseconds / 1_000} s`
    await within(check(redis), { milliseconds, message, ...(signal && { signal }) })
    // Fails if ioredis has reported any error, even if the check succeeded. For instance, if the database does not
    // exist, ioredis reports an error and continues with another database.
    if (reason) throw reason
    return redis
  } catch (error) {
    if (redis.status !== 'end') redis.disconnect()
    // "Connection is closed" is only a consequence of an error that ioredis has reported before.
    const said = reason && /closed|None of startup nodes/.test(messageOf(error)) ? reason : error
    throw said instanceof Error ? withoutArguments(said) : said
  }
}

/** Checks that locks can be kept on this server. */
async function greet(redis: Redis): Promise<void> {
  await redis.connect()
  // Every user may send HELLO. The field `mode` of the reply is the kind of server: standalone, sentinel or cluster.
  const traits = (await redis.call('HELLO').catch(() => [])) as unknown[]
  const mode = traits[traits.indexOf('mode') + 1]
  if (mode === 'cluster')
    throw new Error('the server is a node of a cluster; use an address that begins with redis+cluster://')
  if (mode === 'sentinel') {
    throw new Error('the server is a sentinel; use the address redis+sentinel://host:port/<master name>')
  }
}

async function connectedTo(redis: Redis): Promise<void> {
  await redis.connect()
  // The reply to this first command shows whether the password was right.
  await redis.time()
}

async function hasSlots(node: Redis): Promise<void> {
  await node.connect()
  const slots = (await node.cluster('SLOTS').catch((error: Error) => {
    if (/cluster support disabled|unknown command/i.test(error.message)) {
      throw new Error('the server is not a node of a cluster; use an address that begins with redis://')
    }
    throw error
  })) as unknown[]
  if (slots.length === 0) {
    throw new Error('the nodes of this cluster have no slots yet; assign them with redis-cli --cluster create')
  }
}

/**
 * Explains an error about the user name or password for the sentinels. Without the explanation, the reader of the error
 * would check the master's password.
 */
function saidBySentinel(error: Error): never {
  if (!/^(NOAUTH|WRONGPASS|NOPERM)\b/.test(error.message)) throw error
  const where = 'append the user and password of the sentinels to the address: ?sentinel_username=…&sentinel_password=…'
  throw new Error(`a sentinel refused the connection: ${error.message}; ${where}`)
}

async function masterAt(sentinel: Redis, name: string): Promise<void> {
  await sentinel.connect()
  const master = await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name).catch((error: Error) => {
    if (/^ERR unknown command/i.test(error.message)) {
      throw new Error('the server is not a sentinel; use an address that begins with redis://')
    }
    throw error
  })
  if (master === null) throw new Error(`the sentinels know no master named ${name}; check the name in the address`)
}

/** Resolves as `reached` does. If `reached` rejects, rejects with a Failure that the user can act on. */
async function explained<T>(address: Address, reached: Promise<T>): Promise<T> {
  try {
    return await reached
  } catch (error) {
    throw new Failure(`Redis at ${address.place} cannot be used: ${causeOf(error, address)}`, exitCodes.unavailable)
  }
}

/** Returns the error's text from Redis or the network, with advice if there is any. */
function causeOf(error: unknown, { kind, tls }: Address): string {
  const message = oneLine(messageOf(error))
  const scheme = (protocol: string) =>
    `use an address that begins with ${protocol}${kind === 'server' ? '' : `+${kind}`}://`
  if (tls) {
    if (/certificate|altname/i.test(message)) {
      return `${message}; to trust this certificate, set NODE_EXTRA_CA_CERTS to a file that contains it or its issuer`
    }
    if (/SSL|EPROTO|ETIMEDOUT|no answer|closed|ECONNRESET/i.test(message)) {
      return `the TLS handshake failed (${message}); if the server does not use TLS, ${scheme('redis')}`
    }
  } else if (/Connection is closed|ECONNRESET/.test(message)) {
    return `the server closed the connection without answering; if it expects TLS, ${scheme('rediss')}`
  }
  if (/NOAUTH\b/.test(message) && !message.includes('sentinel_password')) {
    return `${message}; put user:password@ before the host in the address`
  }
  return message
}

export function oneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}

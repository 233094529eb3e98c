/**
 * Reads the options of a node-redis client, and translates them into ioredis options. The node-redis client sends no
 * commands, and need not be connected.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClusterOptions, RedisOptions } from 'ioredis'
import { LockArgumentError } from '../errors.ts'

/**
 * A client of node-redis 5 or 6, made by `createClient` or `createCluster`, or by `createSentinel` of version 6. The
 * lock client only reads its options.
 * @since 0.2.0
 */
export interface NodeRedisInstance {
  /** Whether the node-redis client is connected. A closed client is accepted too. @since 0.2.0 */
  readonly isOpen: boolean
  /** Makes a copy of the client. The lock client uses this method to read the options. @since 0.2.0 */
  duplicate(...args: never[]): object
  /**
   * Closes the client. The lock client only checks that this method exists: clients of version 4 lack it and are
   * refused.
   * @since 0.2.0
   */
  destroy(): unknown
}

/** Fetches the user and the password for a new connection. */
export type FetchCredentials = () => Promise<{ username?: string | undefined; password?: string | undefined }>

interface Address {
  readonly host: string
  readonly port: number
}

type Socket = Partial<Address> & {
  readonly path?: string
  readonly family?: number
  readonly tls?: boolean
  readonly reconnectStrategy?: unknown
}

type Provider =
  | { readonly type: 'async-credentials-provider'; readonly credentials: FetchCredentials }
  | {
      readonly type: 'streaming-credentials-provider'
      subscribe(listener: object): Promise<[Awaited<ReturnType<FetchCredentials>>, { dispose(): void }]>
    }

interface ClientOptions {
  readonly url?: string
  readonly socket?: Socket
  readonly username?: string
  readonly password?: string
  readonly credentialsProvider?: Provider | undefined
  readonly database?: number
  readonly name?: string
  readonly keyPrefix?: string | Buffer
  readonly RESP?: 2 | 3
}

/** The options of a client, a cluster or a sentinel. Each of the three uses different fields. */
interface Options extends ClientOptions {
  readonly rootNodes?: readonly ClientOptions[]
  readonly defaults?: ClientOptions
  readonly sentinelRootNodes?: readonly Address[]
  readonly nodeClientOptions?: ClientOptions
  readonly sentinelClientOptions?: ClientOptions
  readonly nodeAddressMap?: Readonly<Record<string, Address>> | ((address: string) => Address | undefined)
}

export interface Reach {
  /** The options of a connection. In a cluster, they apply to every node. */
  readonly options: RedisOptions
  /** The nodes from which ioredis discovers the cluster. */
  readonly nodes?: RedisOptions[]
  readonly natMap?: ClusterOptions['natMap']
  readonly keyPrefix?: string | undefined
  readonly provider?: FetchCredentials | undefined
}

export function isNodeRedis(value: unknown): value is NodeRedisInstance {
  return typeof value === 'object' && value !== null && 'isOpen' in value
}

export function readNodeRedis(client: NodeRedisInstance): Reach {
  const options = optionsOf(client)
  const { rootNodes, defaults = {}, sentinelRootNodes, nodeAddressMap, RESP: protocol } = options
  const keyPrefix = options.keyPrefix === undefined ? undefined : String(options.keyPrefix)
  const natMap = nodeAddressMap as ClusterOptions['natMap']
  if (rootNodes) {
    // The nodes from which the cluster is discovered may require other credentials than the other nodes.
    const nodes = rootNodes.map(node => ({
      ...reach({ ...defaults, ...node, socket: { ...defaults.socket, ...node.socket } }),
      protocol,
    }))
    const { host, port, ...each } = reach(defaults)
    return { options: { ...each, protocol }, nodes, natMap, keyPrefix, provider: providerOf(defaults) }
  }
  if (!sentinelRootNodes) {
    return { options: { ...reach(options), protocol, keyPrefix }, provider: providerOf(options) }
  }
  const { nodeClientOptions = {}, sentinelClientOptions = {} } = options
  if (sentinelClientOptions.credentialsProvider) {
    throw new LockArgumentError(
      'redis',
      'a client with a credentialsProvider for its sentinels',
      'the username and password of the sentinels',
    )
  }
  const { host, port, ...each } = reach(nodeClientOptions)
  const { username, password, tls } = reach(sentinelClientOptions)
  return {
    options: {
      protocol,
      ...each,
      keyPrefix,
      sentinels: sentinelRootNodes.map(node => mapped(node, nodeAddressMap)),
      name: options.name,
      sentinelUsername: username,
      sentinelPassword: password,
      sentinelTLS: tls,
      enableTLSForSentinelMode: each.tls !== undefined,
      // ioredis learns of further sentinels from the known ones, but does not apply `natMap` to their addresses. So if
      // there is a `nodeAddressMap`, ioredis uses only the sentinels of `sentinelRootNodes`.
      updateSentinels: !nodeAddressMap,
      natMap,
    },
    provider: providerOf(nodeClientOptions),
  }
}

/**
 * Reads the options of a node-redis client. In every type of client, the method `duplicate` passes the options to the
 * constructor. So `duplicate` is called with a constructor that keeps the options. No other way of reading the options
 * works for every type of client.
 */
function optionsOf(client: NodeRedisInstance): Options {
  let found: Options | undefined
  const reader = {
    value: function Reader(options: Options = {}) {
      found = options
    },
  }
  // The options can be read only from clients with both methods. `destroy` is missing in clients of version 4.
  // `duplicate` is missing in sentinels of version 5.
  if ('duplicate' in client && 'destroy' in client) {
    client.duplicate.call(Object.create(Object.create(client, { constructor: reader })))
  }
  if (found) return found
  const accepted =
    'a client (not a pool) or a cluster of node-redis 5 or 6, a sentinel of node-redis 6, or the ioredis options { sentinels: [{ host, port }], name }'
  throw new LockArgumentError('redis', `an instance of ${client.constructor.name}`, accepted)
}

/**
 * Returns the database that the client has selected; undefined if it is of a cluster or of sentinels, or older than
 * node-redis 5.12. The client keeps the number private. But for each command, it publishes the number on a channel of
 * `node:diagnostics_channel`, before it finds that the command is aborted already. So nothing is sent.
 */
export function selectedBy(client: NodeRedisInstance): number | undefined {
  const { rootNodes, sentinelRootNodes } = optionsOf(client)
  if (rootNodes || sentinelRootNodes || !('sendCommand' in client)) return undefined
  const { sendCommand } = client as { sendCommand(args: string[], options: object): Promise<unknown> }
  const channel = 'tracing:node-redis:command:start'
  let database: number | undefined
  const learn = (command: unknown) => {
    database ??= (command as { database?: number }).database
  }
  subscribe(channel, learn)
  sendCommand.call(client, ['PING'], { abortSignal: AbortSignal.abort() }).catch(() => {})
  unsubscribe(channel, learn)
  return database
}

function reach(given: ClientOptions): RedisOptions {
  const { socket = {}, username, password, database, name } = parsed(given)
  const { host, port, path, family, tls, reconnectStrategy, ...ofTls } = socket
  return {
    ...(host && { host }),
    ...(port && { port }),
    ...(path && { path }),
    family,
    tls: tls ? ofTls : undefined,
    username,
    password,
    db: database,
    connectionName: name,
  }
}

/** Returns the options. If `url` is set, its host, port and credentials replace those of the other options. */
function parsed(given: ClientOptions): ClientOptions {
  const { url = '' } = given
  if (!/^rediss?:/.test(url)) return given
  const { hostname, port, username, password, protocol } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = { ...given.socket, host, port: Number(port || 6379), tls: protocol === 'rediss:' }
  if (!username && !password) return { ...given, socket }
  return { ...given, socket, username: decodeURIComponent(username), password: decodeURIComponent(password) }
}

function providerOf({ credentialsProvider: provider }: ClientOptions): FetchCredentials | undefined {
  if (!provider) return undefined
  if (provider.type === 'async-credentials-provider') return () => provider.credentials()
  return async () => {
    const [credentials, subscription] = await provider.subscribe({ onNext() {}, onError() {} })
    subscription.dispose()
    return credentials
  }
}

function mapped({ host, port }: Address, map: Options['nodeAddressMap']): Address {
  const name = `${host}:${port}`
  return (typeof map === 'function' ? map(name) : map?.[name]) ?? { host, port }
}

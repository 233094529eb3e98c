/**
 * A `Way` describes how to reach the servers of a topology (topology.ts). These functions turn a `Way` into a source
 * for a lock client or into an ioredis instance, or into another `Way`: through proxies, or as another user.
 */
import { Cluster, Redis } from 'ioredis'
import type { LockClient } from '../../../src/index.ts'
import { type MemoryStore, memory } from '../../../src/memory/index.ts'
import type { InstanceOptions, PlainWay, Way } from './topology.ts'

export type Source = ConstructorParameters<typeof LockClient>[0]
type PlainSource = Exclude<Source, readonly unknown[] | MemoryStore>

const stores = new Map<string, MemoryStore>()

/** Returns the store with this name in the memory of this process. */
export function storeNamed(name: string): MemoryStore {
  const store = stores.get(name) ?? memory()
  stores.set(name, store)
  return store
}

/**
 * Returns the source for a lock client: a URL, options, or for a cluster an ioredis instance that is not connected yet.
 */
export function sourceOf(way: Way): Source {
  if (way.kind === 'memory') return storeNamed(way.store)
  return way.kind === 'quorum' ? way.parts.map(plainSourceOf) : plainSourceOf(way)
}

function plainSourceOf(way: PlainWay): PlainSource {
  if (way.kind === 'url') return way.url
  return way.kind === 'server' ? way.options : instanceOf(way, { lazyConnect: true })
}

function serversOf(way: Way): Exclude<Way, { readonly kind: 'memory' }> {
  if (way.kind !== 'memory') return way
  throw new Error('there is no server: test/topology/not-repeated.ts lists the files that need one')
}

/** Returns how to reach each single server of a quorum. For any other topology, returns a list with only `way`. */
export function partsOf(way: Way): readonly PlainWay[] {
  const servers = serversOf(way)
  return servers.kind === 'quorum' ? servers.parts : [servers]
}

/** Creates an ioredis instance, as an application would. */
export function instanceOf(way: PlainWay, options: InstanceOptions = {}): Redis | Cluster {
  if (way.kind === 'url') return new Redis(way.url, options)
  if (way.kind === 'server') return new Redis({ ...way.options, ...options })
  const { keyPrefix, lazyConnect, enableAutoPipelining, ...ofNodes } = options
  const ofCluster = { keyPrefix, lazyConnect, enableAutoPipelining }
  const defined = Object.fromEntries(Object.entries(ofCluster).filter(([, value]) => value !== undefined))
  const redisOptions: InstanceOptions = { ...way.options.redisOptions, ...ofNodes }
  return new Cluster([...way.nodes], { ...way.options, ...defined, redisOptions })
}

/** Returns the same `Way` with this user's credentials, or without credentials. */
export function asUser<W extends Way>(way: W, user?: { username?: string; password?: string }): W
export function asUser(given: Way, user: { username?: string; password?: string } = {}): Way {
  const way = serversOf(given)
  const { username, password } = user
  if (way.kind === 'quorum') return { ...way, parts: way.parts.map(part => asUser(part, user)) }
  if (way.kind === 'server') return { ...way, options: { ...way.options, username, password } }
  if (way.kind === 'cluster') {
    const redisOptions = { ...way.options.redisOptions, username, password }
    return { ...way, options: { ...way.options, redisOptions } }
  }
  const { hostname, port } = new URL(way.url)
  return { kind: 'server', options: { host: hostname, port: Number(port), username, password } }
}

/**
 * Returns the ports that a lock client connects to if it uses this `Way`. `data` are the ports of all servers with
 * data.
 */
export function portsOf(given: Way, data: readonly number[]): readonly number[] {
  const way = serversOf(given)
  if (way.kind === 'quorum') return way.parts.flatMap(part => portsOf(part, data))
  if (way.kind === 'url') return [Number(new URL(way.url).port)]
  // Through sentinels or in a cluster, the client may connect to any server that holds data.
  return way.kind === 'server' && !way.options.sentinels ? [way.options.port as number] : data
}

/** Returns the same `Way`, with ports replaced according to the map. Sentinels keep their ports. */
export function through<W extends Way>(way: W, ports: ReadonlyMap<number, number>): W
export function through(given: Way, ports: ReadonlyMap<number, number>): Way {
  const way = serversOf(given)
  if (way.kind === 'quorum') return { ...way, parts: way.parts.map(part => through(part, ports)) }
  const natMap = Object.fromEntries(
    [...ports].map(([from, to]) => [`127.0.0.1:${from}`, { host: '127.0.0.1', port: to }]),
  )
  const instead = (port: number) => ports.get(port) ?? port
  if (way.kind === 'url') {
    const url = new URL(way.url)
    url.port = String(instead(Number(url.port)))
    return { kind: 'url', url: url.href.replace(/\/$/, '') }
  }
  if (way.kind === 'cluster') {
    const nodes = way.nodes.map(({ host, port }) => ({ host, port: instead(port) }))
    return { ...way, nodes, options: { ...way.options, natMap } }
  }
  if (way.options.sentinels) return { ...way, options: { ...way.options, natMap } }
  return { ...way, options: { ...way.options, port: instead(way.options.port as number) } }
}

/**
 * A port on which nothing ever listens. A quorum also uses the next ports, because each of its servers must have a
 * different address. Do not use a free port here: another test's server or proxy may take it.
 */
const DEAD_PORT = 1

/** Returns a `Way` of the same kind to ports on which nothing listens. */
export function toNobody(given: Way): Way {
  const way = serversOf(given)
  if (way.kind !== 'quorum') return plainlyToNobody(way, DEAD_PORT)
  return { ...way, parts: way.parts.map((part, i) => plainlyToNobody(part, DEAD_PORT + i)) }
}

function plainlyToNobody(way: PlainWay, port: number): PlainWay {
  if (way.kind === 'url') return through(way, new Map([[Number(new URL(way.url).port), port]]))
  if (way.kind === 'cluster') return { ...way, nodes: [{ host: '127.0.0.1', port }] }
  const { sentinels } = way.options
  return {
    ...way,
    options: { ...way.options, ...(sentinels ? { sentinels: [{ host: '127.0.0.1', port }] } : { port }) },
  }
}

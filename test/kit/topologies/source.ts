/** What becomes of a `Way`: the source of a lock client, an instance of ioredis, the same way through proxies or as another user. */
import { Cluster, Redis } from 'ioredis'
import type { LockClient } from '../../../src/index.ts'
import type { InstanceOptions, PlainWay, Way } from './topology.ts'

export type Source = ConstructorParameters<typeof LockClient>[0]
type PlainSource = Exclude<Source, readonly unknown[]>

/** What a lock client is made from: a URL, options, or, where nothing else is possible, an instance that stays unconnected. */
export function sourceOf(way: Way): Source {
  return way.kind === 'quorum' ? way.parts.map(plainSourceOf) : plainSourceOf(way)
}

function plainSourceOf(way: PlainWay): PlainSource {
  if (way.kind === 'url') return way.url
  return way.kind === 'server' ? way.options : instanceOf(way, { lazyConnect: true })
}

/** The parts of a way, each of which one instance leads along: several of a quorum. */
export function partsOf(way: Way): readonly PlainWay[] {
  return way.kind === 'quorum' ? way.parts : [way]
}

/** An instance as a caller would have it. */
export function instanceOf(way: PlainWay, options: InstanceOptions = {}): Redis | Cluster {
  if (way.kind === 'url') return new Redis(way.url, options)
  if (way.kind === 'server') return new Redis({ ...way.options, ...options })
  const { keyPrefix, lazyConnect, enableAutoPipelining, ...ofNodes } = options
  const ofCluster = { keyPrefix, lazyConnect, enableAutoPipelining }
  const defined = Object.fromEntries(Object.entries(ofCluster).filter(([, value]) => value !== undefined))
  const redisOptions: InstanceOptions = { ...way.options.redisOptions, ...ofNodes }
  return new Cluster([...way.nodes], { ...way.options, ...defined, redisOptions })
}

/** The same way as another user; without one, as nobody. */
export function asUser<W extends Way>(way: W, user?: { username?: string; password?: string }): W
export function asUser(way: Way, user: { username?: string; password?: string } = {}): Way {
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

/** The ports that a lock client connects to on this way, `data` being those of all servers that hold data. */
export function portsOf(way: Way, data: readonly number[]): readonly number[] {
  if (way.kind === 'quorum') return way.parts.flatMap(part => portsOf(part, data))
  if (way.kind === 'url') return [Number(new URL(way.url).port)]
  // Where it has to be told where the data is, it may be told any of them.
  return way.kind === 'server' && !way.options.sentinels ? [way.options.port as number] : data
}

/** The same way with other ports instead. Sentinels stay where they are. */
export function through<W extends Way>(way: W, ports: ReadonlyMap<number, number>): W
export function through(way: Way, ports: ReadonlyMap<number, number>): Way {
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
 * A port on which nobody listens, and never will; so are those that follow it, for a quorum, whose servers are not one. A port that was free a moment ago would be given to the next server or proxy
 * of another test: its client was once refused by somebody else's Redis, a second before its patience was over.
 */
const DEAD_PORT = 1

/** A way of the same kind on which nobody listens. */
export function toNobody(way: Way): Way {
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

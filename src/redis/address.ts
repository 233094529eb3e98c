/** The addresses of servers, for messages. */
import type { Cluster, Redis } from 'ioredis'

/** Returns where this connection leads, without user and password. */
export function addressOf(redis: Redis | Cluster): string {
  if ('nodes' in redis) {
    const { startupNodes } = redis as unknown as { startupNodes: readonly (string | number | Place)[] }
    return `the cluster ${startupNodes.map(hostAndPort).join(', ')}`
  }
  const { sentinels, name, path } = redis.options
  if (sentinels) return `${name} of the sentinels ${sentinels.map(hostAndPort).join(', ')}`
  return path || hostAndPort(redis.options)
}

type Place = { readonly host?: string | undefined; readonly port?: number | undefined }

/** Returns host and port of a server. */
export function hostAndPort(node: string | number | Place): string {
  if (typeof node === 'object') return `${node.host ?? 'localhost'}:${node.port ?? 6379}`
  if (typeof node === 'number') return `localhost:${node}`
  const url = node.includes('://') ? node : `redis://${node}`
  return URL.canParse(url) ? new URL(url).host : 'unknown'
}

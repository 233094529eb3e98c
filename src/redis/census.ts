/**
 * Counts the open clients of this process, by the address of their Redis. A program that makes a client again and again
 * without closing the old ones, for example at each hot reload, keeps two connections for each of them.
 */
import type { Cluster, Redis } from 'ioredis'
import { LockError } from '../errors.ts'

/** With so many open clients of one address, there is a warning. */
const MANY = 10

interface Crowd {
  open: number
  warned: boolean
}

const key = Symbol.for('redis-baton.clients')
/** All copies of this package in a process share the counts. They are numbers only, so they keep no client alive. */
const shared = globalThis as typeof globalThis & { [key]?: Map<string, Crowd> }

/** Counts a client that was opened. Returns the warning if it makes the clients of its address too many. */
export function enter(address: string): LockError | undefined {
  shared[key] ??= new Map()
  const crowd = shared[key].get(address) ?? { open: 0, warned: false }
  shared[key].set(address, crowd)
  crowd.open += 1
  if (crowd.open < MANY || crowd.warned) return undefined
  crowd.warned = true
  const many = `${crowd.open} lock clients of this process are open for ${address}, each with its own connections`
  return new LockError('ERR_LOCK_CLIENTS', `${many}; make one client for the process, and close those no longer used`)
}

/** Called when a client that was counted is closed. */
export function leave(address: string): void {
  const crowd = shared[key]?.get(address)
  if (!crowd) return
  crowd.open -= 1
  if (crowd.open === 0) shared[key]?.delete(address)
}

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

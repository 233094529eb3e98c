/** Connects a client to one Redis, to the servers of a quorum, or to a store in memory. */
import type { Backend } from './backend.ts'
import { type Clock, systemClock } from './clock.ts'
import { Quorum } from './compose/quorum/backend.ts'
import { LockArgumentError } from './errors.ts'
import { isMemory, MEMORY, type MemoryStore, type StoreClient } from './memory/store.ts'
import type { RedisSource } from './redis/clients.ts'
import type { LinkListener } from './redis/link.ts'
import { Server } from './redis/server.ts'
import type { Settings } from './settings.ts'

/**
 * The allowed numbers of servers in a quorum. An even number brings nothing: a quorum of four servers tolerates one
 * failed server, as does a quorum of three.
 */
const SIZES = [3, 5, 7]

/** What locks can be in. */
export type Source = RedisSource | MemoryStore | readonly RedisSource[]

export function clockOf(source: Source): Clock {
  return isMemory(source) ? source[MEMORY].clock : systemClock
}

export function connect(redis: Source, settings: Settings, client: StoreClient, listener: LinkListener): Backend {
  if (isMemory(redis)) {
    if (!settings.replicas) return redis[MEMORY].join(client, settings, listener)
    throw new LockArgumentError('replicas', settings.replicas, 'no option `replicas`, because memory has no replicas')
  }
  const clock = clockOf(redis)
  if (!isSeveral(redis)) return new Server(redis, settings, clock, listener)
  if (redis.some(isMemory))
    throw new LockArgumentError('redis', 'an array with a store in memory', 'servers of Redis, or one store by itself')
  if (!SIZES.includes(redis.length))
    throw new LockArgumentError(
      'redis',
      `an array of ${redis.length}`,
      '3, 5 or 7 independent servers; a single Redis is passed without an array',
    )
  if (settings.replicas) {
    throw new LockArgumentError(
      'replicas',
      settings.replicas,
      'no option `replicas`, because the servers of a quorum are independent of each other',
    )
  }
  return new Quorum(redis, settings, clock, listener)
}

export function isSeveral(redis: Source): redis is readonly RedisSource[] {
  return Array.isArray(redis)
}

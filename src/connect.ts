/** Connects a client to one Redis, or to the servers of a quorum. */
import type { Backend, BackendListener } from './backend.ts'
import type { Clock } from './clock.ts'
import { LateQuorum } from './compose/quorum/late-quorum.ts'
import { LockArgumentError } from './errors.ts'
import type { Settings } from './options.ts'
import type { RedisSource } from './redis/clients.ts'
import { Server } from './redis/server.ts'

/**
 * The allowed numbers of servers in a quorum. An even number brings nothing: a quorum of four servers tolerates one
 * failed server, as does a quorum of three.
 */
const SIZES = [3, 5, 7]

export function connect(
  redis: RedisSource | readonly RedisSource[],
  settings: Settings,
  clock: Clock,
  listener: BackendListener,
): Backend {
  if (!isSeveral(redis)) return Server.at(redis, settings, clock, listener)
  if (!SIZES.includes(redis.length))
    throw new LockArgumentError('redis', `an array of ${redis.length}`, '3, 5 or 7 independent servers')
  if (settings.replicas) {
    throw new LockArgumentError(
      'replicas',
      settings.replicas,
      'no option `replicas`, because the servers of a quorum are independent of each other',
    )
  }
  return new LateQuorum(redis, settings, clock, listener)
}

export function isSeveral(redis: RedisSource | readonly RedisSource[]): redis is readonly RedisSource[] {
  return Array.isArray(redis)
}

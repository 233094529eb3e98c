/**
 * Warns of a server that may evict locks, because nothing else shows that before a lock is lost. Each master is asked
 * when a connection to it has come up, after all commands that waited for the connection. No call waits for the answer,
 * and without an answer there is no warning.
 */
import type { Cluster, Redis } from 'ioredis'
import { LockError } from '../errors.ts'
import { hostAndPort } from './address.ts'

/**
 * A script that returns INFO about the memory. A server notes each refused command in its ACL LOG, so a user without the
 * right to INFO does not run it.
 */
export const memoryInfo = `
local may = redis.acl_check_cmd
return (not may or may('INFO')) and redis.call('INFO', 'memory') or ''`

export function warnOfEviction(redis: Redis | Cluster, warn: (error: LockError) => void): void {
  const masters = 'nodes' in redis ? redis.nodes('master') : [redis]
  for (const master of masters) {
    const asked = master.eval(memoryInfo, 0) as Promise<string>
    asked.then(
      info => {
        const [, limit] = /^maxmemory:(\d+)/m.exec(info) ?? []
        const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? []
        if (policy === 'noeviction' || Number(limit) === 0) return
        const at = master === redis ? '' : ` at ${hostAndPort(master.options)}`
        const found = `maxmemory is ${limit} and maxmemory-policy is ${policy}`
        const evicts = `Redis${at} may evict locks: ${found}; set maxmemory-policy to noeviction`
        warn(new LockError('ERR_LOCK_EVICTION', evicts))
      },
      () => {},
    )
  }
}

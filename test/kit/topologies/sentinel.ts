/** A master and a replica under three sentinels. */
import { RedisSentinel } from './redis-sentinel.ts'
import type { Topology, Way } from './topology.ts'

export const sentinel: Topology = {
  name: 'sentinel',
  async start(args = []) {
    // No failover may happen while the contract is tested, however busy the machine is.
    const servers = await RedisSentinel.start(args, 10_000)
    const way: Way = { kind: 'server', options: servers.options }
    return { client: way, admin: way, data: servers.data, stop: () => servers.stop() }
  },
}

/** A master and a replica under three sentinels. */
import { RedisSentinel } from './redis-sentinel.ts'
import type { Topology, Way } from './topology.ts'

export const sentinel: Topology = {
  name: 'sentinel',
  async start(args = []) {
    // The sentinels wait 10 s before they take a server for dead, so that a busy machine causes no failover during a
    // test.
    const servers = await RedisSentinel.start(args, 10_000)
    const way: Way = { kind: 'server', options: servers.options }
    return { client: way, admin: way, data: servers.data, stop: () => servers.stop() }
  },
}

/** Redis Cluster: three masters, each with one replica. */
import { RedisCluster } from './redis-cluster.ts'
import type { Topology, Way } from './topology.ts'

export const cluster: Topology = {
  name: 'cluster',
  async start(args = []) {
    const cluster = await RedisCluster.start(args)
    const way: Way = { kind: 'cluster', nodes: cluster.addresses, options: {} }
    const data = cluster.nodes.map(({ server }) => server)
    return { client: way, admin: way, data, stop: () => cluster.stop() }
  },
}

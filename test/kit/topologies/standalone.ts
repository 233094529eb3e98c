/** The topology of a single server. */
import { findServerSource } from '../../../local-redis/index.ts'
import type { Topology, Way } from './topology.ts'

export const standalone: Topology = {
  name: 'standalone',
  async start(args = []) {
    const server = await (await findServerSource()).start({ args })
    const way: Way = { kind: 'url', url: server.url }
    return { client: way, admin: way, data: [server], stop: () => server.stop() }
  },
}

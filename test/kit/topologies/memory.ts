/** Locks in memory: no server, and all clients in the process of the test. */
import { randomUUID } from 'node:crypto'
import type { Topology, Way } from './topology.ts'

export const memory: Topology = {
  name: 'memory',
  async start() {
    const way: Way = { kind: 'memory', store: randomUUID() }
    return { client: way, admin: way, data: [], stop: async () => {} }
  },
}

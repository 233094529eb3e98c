/** A quorum: three servers that know nothing of each other. */
import { persistsEveryWrite, type QuorumServer, startQuorumServer } from './quorum-server.ts'
import type { Topology, Way } from './topology.ts'

const SERVERS = 3

export const quorum: Topology = {
  name: 'quorum',
  async start(args = []) {
    const data: QuorumServer[] = []
    const stop = async () => {
      await Promise.all(data.map(server => server.stop()))
    }
    const launch = async () => data.push(await startQuorumServer([...persistsEveryWrite, ...args]))
    const launches = await Promise.allSettled(Array.from({ length: SERVERS }, launch))
    const failed = launches.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') {
      await stop()
      throw failed.reason
    }
    const way: Way = { kind: 'quorum', parts: data.map(({ url }) => ({ kind: 'url', url })) }
    return { client: way, admin: way, data, stop }
  },
}

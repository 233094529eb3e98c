/** All topologies in which the tests of test/contract run. */
import { acl } from './acl.ts'
import { cluster } from './cluster.ts'
import { memory } from './memory.ts'
import { quorum } from './quorum.ts'
import { sentinel } from './sentinel.ts'
import { standalone } from './standalone.ts'
import { tls } from './tls.ts'
import type { Topology } from './topology.ts'

export { standalone }

export const topologies: readonly Topology[] = [standalone, cluster, sentinel, tls, acl, quorum, memory]

export function topologyOf(name: string): Topology {
  const found = topologies.find(topology => topology.name === name)
  if (!found) throw new Error(`there is no topology ${name}`)
  return found
}

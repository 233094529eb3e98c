/** Starts the servers that all tests of a run share. Each test uses its own keys. */
import type { TestProject } from 'vitest/node'
import { obtainRedis, type RunningServer } from '../../local-redis/index.ts'
import { bundleFolder } from './bundle.ts'
import { DeclaredKeys } from './declared-keys.ts'
import { standalone, topologies } from './topologies/index.ts'
import { portsOf } from './topologies/source.ts'
import type { Topology, Ways } from './topologies/topology.ts'

declare module 'vitest' {
  interface ProvidedContext {
    topology: string
    place: Ways & { dataPorts: readonly number[] }
    /** The URL of the one server in the standalone topology. */
    redisUrl: string
    /** The folder for the bundles of programs (bundle.ts). */
    bundles: string
  }
}

/**
 * If the vitest project's name begins with the name of a topology, starts the servers of that topology. For every other
 * project, starts one server.
 */
export default async function setup(project: TestProject) {
  project.provide('bundles', bundleFolder())
  const topology = topologies.find(({ name }) => name === project.name.split(',')[0])
  return topology && topology !== standalone ? several(project, topology) : single(project)
}

async function single(project: TestProject) {
  const redis = await obtainRedis({ announce: line => console.log(line) })
  const way = { kind: 'url', url: redis.url } as const
  project.provide('topology', standalone.name)
  project.provide('place', { client: way, admin: way, dataPorts: portsOf(way, []) })
  project.provide('redisUrl', redis.url)
  return process.env['BATON_WITNESS'] ? witnessed([redis], redis.stop) : redis.stop
}

/** Watches the servers until they are stopped. */
async function witnessed(servers: readonly Pick<RunningServer, 'url'>[], stop: () => Promise<void>) {
  const witness = new DeclaredKeys()
  await Promise.all(servers.map(server => witness.watch(server)))
  return async () => {
    await stop()
    witness.end()
  }
}

async function several(project: TestProject, topology: Topology) {
  const { data, stop, ...ways } = await topology.start()
  project.provide('topology', topology.name)
  project.provide('place', { ...ways, dataPorts: data.map(({ port }) => port) })
  // The servers of the other topologies want TLS or a password, or are the same as a single server.
  return topology.name === 'cluster' ? witnessed(data, stop) : stop
}

/** Provides the distribution's own server package on Debian and Ubuntu, unpacked into a cache folder (packages.ts). */
import { join } from 'node:path'
import type { Finding, SourceOption } from './choose.ts'
import { libraryPath, unpackPackages } from './packages.ts'
import { launchProcess } from './process.ts'
import { startServer } from './server.ts'
import { serverNames, versionOf } from './server-binary.ts'

/**
 * The packages to try: for each server, its own package and its tools package. The server's binary is in the tools
 * package, and the server's own package only links to it.
 */
const choices = [
  ['redis-server', 'redis-tools'],
  ['valkey-server', 'valkey-tools'],
]

export function fromDistribution(env: NodeJS.ProcessEnv = process.env): SourceOption {
  return { name: 'distribution package', find: () => find(env) }
}

async function find(env: NodeJS.ProcessEnv): Promise<Finding> {
  const unpacked = await unpackPackages({ name: 'redis', choices, find: serverIn }, env)
  if ('unavailable' in unpacked) return unpacked
  const { found: server, distribution } = unpacked
  const launch = launchProcess(server.binary, server.env)
  const description = `${server.version} from the package of ${distribution} (${server.binary})`
  return { source: { kind: 'package', description, start: options => startServer(launch, options) } }
}

interface UnpackedServer {
  readonly binary: string
  readonly version: string
  readonly env: NodeJS.ProcessEnv
}

/** Returns the server in an unpacked tree, if there is one and it runs. */
async function serverIn(tree: string): Promise<UnpackedServer | undefined> {
  const env = { LD_LIBRARY_PATH: await libraryPath(tree) }
  for (const name of serverNames) {
    const binary = join(tree, 'usr', 'bin', name)
    const version = await versionOf(binary, env).catch(() => undefined)
    if (version !== undefined) return { binary, version, env }
  }
  return undefined
}

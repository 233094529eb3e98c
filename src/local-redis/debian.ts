/**
 * The distribution's own server package on Debian and Ubuntu, unpacked into a cache folder.
 *
 *   <cache>/redis/debian-12-x64/       one unpacked tree per distribution release and processor
 *   <cache>/redis/debian-12-x64.lock   the kernel's lock, held while that tree is looked at and rebuilt
 *   <cache>/redis/debian-12-x64.building-XXXXXX/   where a tree grows, until a rename gives it its name
 *
 * A tree counts only when its server runs and says its version. A good tree is used without taking the lock, without
 * apt and without the network. A missing or broken one is rebuilt under the lock, so of several processes that come
 * at once, one fetches and the others find the result.
 */
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import which from 'which'
import { fetchServerPackage } from './apt.ts'
import { cacheFolder } from './cache-folder.ts'
import type { Finding, SourceOption } from './choose.ts'
import { withFileLock } from './file-lock.ts'
import { launchProcess } from './process.ts'
import { startServer } from './server.ts'
import { serverNames, versionOf } from './server-binary.ts'

const tools = ['apt-get', 'dpkg-deb', 'flock'] as const

export function fromDistribution(env: NodeJS.ProcessEnv = process.env): SourceOption {
  return { name: 'distribution package', find: () => find(env) }
}

async function find(env: NodeJS.ProcessEnv): Promise<Finding> {
  const release = await distribution()
  if (!release) return { unavailable: 'this is not Debian or Ubuntu' }
  const { PATH = '' } = env
  for (const tool of tools) {
    if ((await which(tool, { path: PATH, nothrow: true })) === null)
      return { unavailable: `there is no ${tool} on the PATH` }
  }

  const folder = join(await cacheFolder(env), 'redis')
  const tree = join(folder, release.key)
  const server = (await serverIn(tree)) ?? (await rebuild(folder, tree))
  const launch = launchProcess(server.binary, server.env)
  const description = `${server.version} from the package of ${release.name} (${server.binary})`
  return { source: { kind: 'package', description, start: options => startServer(launch, options) } }
}

/** What /etc/os-release says, where it is Debian or derived from it. */
async function distribution(): Promise<{ name: string; key: string } | undefined> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const fields = new Map([...text.matchAll(/^(\w+)="?(.*?)"?$/gm)].map(([, key, value]) => [key, value ?? '']))
  const id = fields.get('ID') ?? ''
  const family = [id, ...(fields.get('ID_LIKE') ?? '').split(' ')]
  if (!family.includes('debian')) return undefined
  const version = fields.get('VERSION_ID') ?? fields.get('VERSION_CODENAME') ?? 'rolling'
  const key = `${id}-${version}-${process.arch}`.replaceAll(/[^\w.-]/g, '_')
  return { name: `${fields.get('NAME') ?? id} ${version}`, key }
}

interface UnpackedServer {
  readonly binary: string
  readonly version: string
  readonly env: NodeJS.ProcessEnv
}

async function rebuild(folder: string, tree: string): Promise<UnpackedServer> {
  await mkdir(folder, { recursive: true })
  return withFileLock(`${tree}.lock`, async () => {
    const theirs = await serverIn(tree)
    if (theirs) return theirs

    await removeAbandoned(folder, `${basename(tree)}.building-`)
    const workshop = await mkdtemp(`${tree}.building-`)
    try {
      const grown = join(workshop, 'tree')
      await fetchServerPackage(workshop, grown, async () => (await serverIn(grown)) !== undefined)
      await rm(tree, { recursive: true, force: true })
      await rename(grown, tree)
    } finally {
      await rm(workshop, { recursive: true, force: true })
    }
    const ours = await serverIn(tree)
    if (!ours) throw new Error(`the server in ${tree} runs no longer`)
    return ours
  })
}

/** Workshops whose process was killed; the lock says that nobody works in them now. */
async function removeAbandoned(folder: string, prefix: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.startsWith(prefix)) await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 })
  }
}

/** The server of an unpacked tree, where there is one and it runs. */
async function serverIn(tree: string): Promise<UnpackedServer | undefined> {
  const env = { LD_LIBRARY_PATH: await libraryPath(tree) }
  for (const name of serverNames) {
    const binary = join(tree, 'usr', 'bin', name)
    const version = await versionOf(binary, env).catch(() => undefined)
    if (version !== undefined) return { binary, version, env }
  }
  return undefined
}

/** Each folder of the tree that holds shared libraries: the loader does not look into folders below these. */
async function libraryPath(tree: string): Promise<string> {
  const folders = new Set<string>()
  for (const top of ['lib', join('usr', 'lib')]) {
    const files = await readdir(join(tree, top), { recursive: true }).catch(() => [])
    for (const file of files) if (/\.so(\.|$)/.test(file)) folders.add(dirname(join(tree, top, file)))
  }
  const { LD_LIBRARY_PATH } = process.env
  return [...folders, ...(LD_LIBRARY_PATH ? [LD_LIBRARY_PATH] : [])].join(':')
}

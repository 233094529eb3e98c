/**
 * Unpacks the distribution's own packages on Debian and Ubuntu into a cache folder. Nothing is installed.
 *
 *  <cache>/redis/debian-12-x64/       one unpacked tree per distribution release (or suite of Debian) and processor
 *  <cache>/redis/debian-12-x64.lock   the kernel's lock, held while that tree is checked and rebuilt
 *  <cache>/redis/debian-12-x64.building-XXXXXX/   where a tree is built, until a rename gives it its name
 *
 * A tree is good if the wanted program in it runs. A good tree is used without the lock, without apt and without the
 * network. A missing or broken tree is rebuilt under the lock. If several processes need the same tree at once, one of
 * them fetches the packages, and the others find the finished tree.
 */
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import which from 'which'
import { fetchPackages, type Order } from './apt.ts'
import { cacheFolder } from './cache-folder.ts'
import { withFileLock } from './file-lock.ts'

const tools = ['apt-get', 'dpkg-deb', 'flock'] as const

export interface Wanted<T> extends Order {
  /** The name of the tree's folder in the cache. */
  readonly name: string
  /** Returns the wanted program of an unpacked tree, if it is there and runs. */
  find(tree: string): Promise<T | undefined>
}

export type Unpacked<T> = { readonly found: T; readonly distribution: string } | { readonly unavailable: string }

export async function unpackPackages<T>(wanted: Wanted<T>, env: NodeJS.ProcessEnv): Promise<Unpacked<T>> {
  const release = await distribution()
  if (!release) return { unavailable: 'this machine does not run Debian or Ubuntu' }
  const { PATH = '' } = env
  for (const tool of tools) {
    if ((await which(tool, { path: PATH, nothrow: true })) === null)
      return { unavailable: `there is no ${tool} on the PATH` }
  }

  const folder = join(await cacheFolder(env), wanted.name)
  const tree = join(folder, wanted.suite === undefined ? release.key : `${wanted.suite}-${process.arch}`)
  const found = (await wanted.find(tree)) ?? (await rebuild(wanted, folder, tree))
  return { found, distribution: wanted.suite === undefined ? release.name : `Debian ${wanted.suite}` }
}

/**
 * Returns a value for LD_LIBRARY_PATH: every folder of the tree with shared libraries, because the loader does not
 * search subfolders.
 */
export async function libraryPath(tree: string): Promise<string> {
  const folders = new Set<string>()
  for (const top of ['lib', join('usr', 'lib')]) {
    const files = await readdir(join(tree, top), { recursive: true }).catch(() => [])
    for (const file of files) if (/\.so(\.|$)/.test(file)) folders.add(dirname(join(tree, top, file)))
  }
  const { LD_LIBRARY_PATH } = process.env
  return [...folders, ...(LD_LIBRARY_PATH ? [LD_LIBRARY_PATH] : [])].join(':')
}

/**
 * Returns the name of the distribution, and a key for it that is used in file names. If the distribution is neither
 * Debian nor derived from it, returns undefined.
 */
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

async function rebuild<T>(wanted: Wanted<T>, folder: string, tree: string): Promise<T> {
  await mkdir(folder, { recursive: true })
  return withFileLock(`${tree}.lock`, async () => {
    const theirs = await wanted.find(tree)
    if (theirs !== undefined) return theirs

    await removeAbandoned(folder, `${basename(tree)}.building-`)
    const workshop = await mkdtemp(`${tree}.building-`)
    try {
      const grown = join(workshop, 'tree')
      await fetchPackages(wanted, workshop, grown, async () => (await wanted.find(grown)) !== undefined)
      await rm(tree, { recursive: true, force: true })
      await rename(grown, tree)
    } finally {
      await rm(workshop, { recursive: true, force: true })
    }
    const ours = await wanted.find(tree)
    if (ours === undefined)
      throw new Error(`the server that was unpacked into ${tree} no longer runs; delete that folder, and try again`)
    return ours
  })
}

/**
 * Removes the build folders that killed processes have left. This process holds the lock, so no other process works in
 * these folders now.
 */
async function removeAbandoned(folder: string, prefix: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.startsWith(prefix)) await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 })
  }
}

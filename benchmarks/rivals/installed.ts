/**
 * The rivals' packages are not dependencies of redis-baton. To measure a rival, a user installs its package in the
 * current folder or beside redis-baton. So a rival's package is imported only when needed, and a missing package is
 * reported by name.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { constants, runInThisContext } from 'node:vm'

/**
 * The versions for which the adapters were written. Another version may have a different API. redlock 4, for example,
 * would only produce errors.
 */
const known: Readonly<Record<string, string>> = {
  '@sesamecare-oss/redlock': '1.4.0',
  bottleneck: '2.19.5',
  bullmq: '6.7.0',
  etcd3: '1.1.2',
  ioredfour: '1.4.3',
  'live-mutex': '0.2.25',
  'node-redisson': '1.0.4',
  'node-zookeeper-client': '1.1.3',
  pg: '8.23.1',
  redis: '6.3.1',
  redlock: '5.0.0-beta.2',
  'redlock-universal': '0.8.5',
  'redis-semaphore': '5.8.0',
  'simple-redis-mutex': '3.0.0',
}

interface Found {
  readonly version: string
  /** A file from which the package can be imported. */
  readonly from: string
}

/**
 * Returns a text that names the packages that are missing or have an unsupported version. Returns undefined if there
 * are none. No code of the packages runs.
 */
export async function notInstalled(...packages: string[]): Promise<string | undefined> {
  const absent = packages.filter(name => !installed(name))
  const unknown = packages.filter(name => !absent.includes(name) && !isKnown(name))
  if (absent.length + unknown.length === 0) return undefined
  const why = [
    ...(absent.length > 0 ? ['not installed'] : []),
    ...unknown.map(name => `${name} ${versionOf(name)} is not a version that this benchmark supports`),
  ]
  const wanted = [...absent, ...unknown].map(name => (known[name] ? `${name}@${known[name]}` : name))
  return `${why.join(', ')}: npm install ${wanted.join(' ')}`
}

/** Returns the installed version of a package; undefined if the package is not installed. */
export function versionOf(name: string): string | undefined {
  return installed(name)?.version
}

/** Imports a package or one of its modules. `T` is the type that the caller expects. */
export async function load<T>(name: string): Promise<T> {
  const [, owner = name] = /^((?:@[^/]+\/)?[^/]+)/.exec(name) ?? []
  const from = installed(owner)?.from ?? here
  return (await (from === here ? import(name) : importFrom(from, name))) as T
}

/** Returns whether an adapter for version `known` works with `version`, by the rules of semantic versioning. */
export function suits(version: string, known: string): boolean {
  const plain = version.replace(/^v/, '')
  if (plain === known || /-/.test(plain + known)) return plain === known
  const [found, wanted] = [plain, known].map(text => text.split('.').map(Number)) as [number[], number[]]
  const differs = wanted.findIndex((number, i) => number !== found[i])
  const leading = wanted.findIndex(number => number > 0)
  return differs > leading && found[differs]! > wanted[differs]!
}

function isKnown(name: string): boolean {
  const [version, wanted] = [versionOf(name), known[name]]
  return version === undefined || wanted === undefined || suits(version, wanted)
}

const here = import.meta.filename

/**
 * Finds an installed package. Searches from the current folder first, and from this file afterwards. Reads package.json
 * files directly, because many packages do not export their package.json.
 */
function installed(name: string): Found | undefined {
  const own = foldersFor(name, here)
  for (const folder of new Set([...foldersFor(name, join(process.cwd(), 'any.js')), ...own])) {
    const version = versionIn(join(folder, name, 'package.json'))
    if (version !== undefined) return { version, from: own.includes(folder) ? here : join(dirname(folder), 'any.js') }
  }
  return undefined
}

function foldersFor(name: string, from: string): string[] {
  return createRequire(from).resolve.paths(name) ?? []
}

export function versionIn(file: string | URL): string | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { version?: string }).version
  } catch {
    return undefined
  }
}

/**
 * Runs `import(name)` as if the call were in `file`. So it finds packages that are installed beside `file`, but not
 * here. Node has other ways to look for a package elsewhere, but they ignore the `exports` of the package.
 */
function importFrom(file: string, name: string): Promise<unknown> {
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER
  return runInThisContext('name => import(name)', { filename: file, importModuleDynamically })(name)
}

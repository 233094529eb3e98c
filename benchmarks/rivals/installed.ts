/**
 * The rivals' packages are not dependencies of this one. A user who wants to measure one installs it, in the current
 * folder or beside this package. So nothing here is imported before it is needed, and a missing package is reported by
 * name.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { constants, runInThisContext } from 'node:vm'

/**
 * The versions that the adapters were written for. Another version may be a different library: redlock 4 has no
 * `using`, takes its settings elsewhere, and only its errors could be measured.
 */
const known: Readonly<Record<string, string>> = {
  '@sesamecare-oss/redlock': '1.4.0',
  ioredfour: '1.4.3',
  'live-mutex': '0.2.25',
  'node-redisson': '1.0.4',
  redis: '6.3.1',
  redlock: '5.0.0-beta.2',
  'redlock-universal': '0.8.5',
  'redis-semaphore': '5.8.0',
  'simple-redis-mutex': '3.0.0',
}

interface Found {
  readonly version: string
  /** The file from which an import finds it. */
  readonly from: string
}

/**
 * Says which packages are missing, or have an unknown version; undefined if all are fine. Only looks, and runs nothing
 * of them.
 */
export async function notInstalled(...packages: string[]): Promise<string | undefined> {
  const absent = packages.filter(name => !installed(name))
  const unknown = packages.filter(name => !absent.includes(name) && !isKnown(name))
  if (absent.length + unknown.length === 0) return undefined
  const why = [
    ...(absent.length > 0 ? ['not installed'] : []),
    ...unknown.map(name => `${name} ${versionOf(name)} is not a version that is known here`),
  ]
  const wanted = [...absent, ...unknown].map(name => (known[name] ? `${name}@${known[name]}` : name))
  return `${why.join(', ')}: npm install ${wanted.join(' ')}`
}

/** The installed version; undefined if it is not installed. */
export function versionOf(name: string): string | undefined {
  return installed(name)?.version
}

/** Imports a package, or a module of one, with the type that the caller expects. */
export async function load<T>(name: string): Promise<T> {
  const [, owner = name] = /^((?:@[^/]+\/)?[^/]+)/.exec(name) ?? []
  const from = installed(owner)?.from ?? here
  return (await (from === here ? import(name) : importFrom(from, name))) as T
}

/** Whether a version has what the adapter for a known one relies on, by the rules of semantic versioning. */
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

/** The current folder has precedence. Searches the folders, because many packages do not export their package.json. */
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
 * Runs `import(name)` as a module in this place would: Node has no other way to resolve `exports` as an import does.
 */
function importFrom(file: string, name: string): Promise<unknown> {
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER
  return runInThisContext('name => import(name)', { filename: file, importModuleDynamically })(name)
}

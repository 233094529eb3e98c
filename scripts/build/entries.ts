/**
 * The parts of the package: its libraries, as `exports` in package.json names them, and the programs that the build
 * makes.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Readonly<Record<string, string | object>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

export const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Manifest

export interface Entry {
  /** The name to import: `redis-baton`, `redis-baton/…`. */
  readonly name: string
  /** The base of the names of its files: `dist/<file>.js`, `dist/<file>.d.cts` and so on. */
  readonly file: string
  /** The path of its source, relative to the root. */
  readonly source: string
}

/**
 * The libraries: `.` is `src/index.ts`, and `./name` is `src/name/index.ts`. A new entry needs only a new line in
 * `exports`.
 */
export const entries: readonly Entry[] = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target !== 'string')
  .map(([path]) => ({
    name: manifest.name + path.slice(1),
    file: path === '.' ? 'index' : path.slice(2),
    source: path === '.' ? 'src/index.ts' : `src/${path.slice(2)}/index.ts`,
  }))

/**
 * The programs, each of which runs in its own process: `baton`, and those that it starts. local-redis/package-root.ts
 * finds them in dist.
 */
export const programs = [
  'cli/main',
  'cli/demo/worker',
  'benchmarks/worker/main',
  'benchmarks/delay/main',
  'benchmarks/rivals/live-mutex-broker',
] as const

/**
 * Returns whether users have the package anyway: it is a dependency of this package, or a peer dependency, which users
 * install themselves if they need it. Such packages are imported, not bundled.
 */
export function isInstalled(specifier: string): boolean {
  const [name = specifier] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier) ?? []
  return name in manifest.dependencies || name in manifest.peerDependencies
}

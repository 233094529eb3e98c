/**
 * The locks of Redisson, the best-known Java library for Redis locks. Their workers are a Java program,
 * benchmarks/redisson. Maven builds it the first time it is needed:
 *
 *  <cache>/redisson/3f9a…/                 the build: classes and libraries. The name is a hash of the sources
 *  <cache>/redisson/3f9a….lock             a file lock, held while the program is built
 *  <cache>/redisson/3f9a….building-XXXXXX/ the folder of a running build, renamed when the build is complete
 *
 * So an existing build is complete and matches the sources, and using it needs neither Maven nor the network.
 */
import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import which from 'which'
import { cacheFolder } from '../../local-redis/cache-folder.ts'
import { run } from '../../local-redis/command.ts'
import { messageOf } from '../../local-redis/error-message.ts'
import { withFileLock } from '../../local-redis/file-lock.ts'
import { packageRoot } from '../../local-redis/package-root.ts'
import type { LockKind, Rival } from '../contract.ts'
import type { Command } from '../harness/crew.ts'

const sources = fileURLToPath(new URL('benchmarks/redisson/', packageRoot))
const pom = join(sources, 'pom.xml')

/** The Java version for which the code is compiled. */
const oldestJava = 17
const buildWithinMs = 120_000
const answersWithinMs = 10_000
const longestLine = 160

// Asynchronous calls were compared with a thread per waiter, in 2 processes with 8 and with 100 waiters each. For RLock
// and for RFairLock, asynchronous calls had the shorter hand-off, more acquisitions per second and less CPU time. But
// for RLock they also sent more commands, because each release then wakes two waiters, and both ask Redis.
const use =
  'Asynchronous calls, lockAsync(id) and unlockAsync(id), which are faster than a thread per waiter. One client per ' +
  'process, with the defaults. Above 250 waiters per process, more channels per connection and a longer subscription ' +
  'timeout, as its error message advises. Each process warms up for 3 s before it is measured.'

export const redissonLock = redisson(
  'redisson-lock',
  false,
  `RLock. ${use} With threads, it would send about a fifth fewer commands.`,
)
export const redissonFairLock = redisson('redisson-fair', true, `RFairLock. ${use}`)
export const redissonSemaphore = redisson(
  'redisson-semaphore',
  false,
  `RSemaphore: acquireAsync() and releaseAsync(), otherwise used as RLock. It has no lease: permits of a process that dies are lost.`,
  'semaphore',
)
export const redissonPermits = redisson(
  'redisson-permits',
  false,
  `RPermitExpirableSemaphore: acquireAsync() and releaseAsync(id), otherwise used as RLock. No lease is given, so permits do not expire.`,
  'semaphore',
)
export const redissonReadWrite = redisson(
  'redisson-read-write',
  false,
  `RReadWriteLock: readLock() and writeLock(), otherwise used as RLock.`,
  'readWrite',
)

function redisson(name: string, fair: boolean, note: string, lock: LockKind = 'mutex'): Rival {
  return { name, kind: 'rival', fair, locks: [lock], package: undefined, note, runtime: 'java', missing }
}

let prepared: Promise<Preparation> | undefined
let worker: Command | undefined

async function missing(): Promise<string | undefined> {
  prepared ??= prepare()
  const answer = await prepared
  if ('unavailable' in answer) return answer.unavailable
  worker = answer.worker
  return undefined
}

/**
 * Returns the command that starts a worker for any of Redisson's locks. Call this only after `missing` has resolved to
 * undefined.
 */
export function launch(): Command {
  if (!worker) throw new Error('launch() was called before missing() found Java and the built worker')
  return worker
}

/** Returns the version of Redisson with which its workers are built. */
export async function redissonVersion(): Promise<string | undefined> {
  const text = await readFile(pom, 'utf8').catch(() => '')
  return /<artifactId>redisson<\/artifactId>\s*<version>([^<]+)/.exec(text)?.[1]
}

export type Preparation = { readonly worker: Command } | { readonly unavailable: string }

/** Finds Java, and builds the workers if necessary. `withinMs` limits only the time of Maven. */
export async function prepare(
  env: NodeJS.ProcessEnv = process.env,
  withinMs: number = buildWithinMs,
): Promise<Preparation> {
  if (!(await isThere(pom)))
    return {
      unavailable:
        'needs a Java program that is not in the npm package: run the benchmark in a clone of the repository',
    }
  const java = await findJava(env)
  if (java === undefined) return { unavailable: `needs Java ${oldestJava} or later, and Maven` }
  try {
    const folder = join(await cacheFolder(env), 'redisson')
    const tree = join(folder, await fingerprint())
    if (!(await isThere(tree))) {
      const maven = await onPath('mvn', env)
      if (maven === undefined) return { unavailable: 'needs Maven' }
      await mkdir(folder, { recursive: true })
      await buildOnce(maven, tree, withinMs, env)
    }
    const classPath = [join(tree, 'classes'), join(tree, 'dependency', '*')].join(delimiter)
    return { worker: { command: java, args: ['-cp', classPath, 'baton.Worker'] } }
  } catch (error) {
    return { unavailable: messageOf(error) }
  }
}

/** Finds Java as Maven does: in JAVA_HOME if that is set, otherwise on the PATH. */
async function findJava(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { JAVA_HOME } = env
  const java = JAVA_HOME ? join(JAVA_HOME, 'bin', 'java') : await onPath('java', env)
  if (java === undefined) return undefined
  // This command fails with Java 8, because Java 8 does not know `--version`. It also fails on macOS without Java,
  // where `java` is only a stub.
  const said = await run(java, ['--version'], { timeoutMs: answersWithinMs }).catch(() => '')
  const [, version = 0] = /^\S+ (\d+)/.exec(said) ?? []
  return Number(version) >= oldestJava ? java : undefined
}

async function onPath(name: string, { PATH = '' }: NodeJS.ProcessEnv): Promise<string | undefined> {
  return (await which(name, { path: PATH, nothrow: true })) ?? undefined
}

/**
 * Builds under a file lock. Without `flock`, two processes may build at the same time. Each process builds in its own
 * folder, and the first rename wins.
 */
async function buildOnce(maven: string, tree: string, withinMs: number, env: NodeJS.ProcessEnv): Promise<void> {
  if ((await onPath('flock', env)) === undefined) return build(maven, tree, withinMs, env)
  return withFileLock(`${tree}.lock`, async () => {
    if (await isThere(tree)) return
    await removeAbandoned(dirname(tree), `${basename(tree)}.building-`)
    await build(maven, tree, withinMs, env)
  })
}

/** Removes the folders of builds that were killed. This process holds the file lock, so no other build is running. */
async function removeAbandoned(folder: string, prefix: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.startsWith(prefix)) await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 })
  }
}

async function build(maven: string, tree: string, withinMs: number, env: NodeJS.ProcessEnv): Promise<void> {
  const workshop = await mkdtemp(`${tree}.building-`)
  try {
    const grown = join(workshop, 'tree')
    const log = join(workshop, 'log')
    const args = ['--batch-mode', '--quiet', '--file', pom, '--log-file', log, `-Dbaton.target=${grown}`, 'compile']
    await run(maven, args, { timeoutMs: withinMs, env }).catch(async error => {
      throw new Error(complaint(await readFile(log, 'utf8').catch(() => ''), messageOf(error)))
    })
    await rename(grown, tree).catch(async error => {
      if (!(await isThere(tree))) throw error
    })
  } finally {
    await rm(workshop, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Returns Maven's first error line, which names the cause. The last lines only say how to learn more. */
function complaint(log: string, failure: string): string {
  const [line] = /(?<=^\[ERROR\] ).+/m.exec(log) ?? []
  if (line === undefined) return failure // Maven did not start, or took too long
  const isAboutRegistry = /could not (be )?(resolve|transfer|find artifact)|unresolveable/i.test(log)
  return `${isAboutRegistry ? 'Maven could not fetch what it needs' : 'Maven could not build it'}: ${shortened(line)}`
}

/** Shortens an error line of Maven. A line that lists all causes with their addresses would be too long. */
function shortened(line: string): string {
  return line.length <= longestLine ? line : `${line.slice(0, longestLine)}…`
}

/** Returns a hash of everything that determines a build. */
async function fingerprint(): Promise<string> {
  const hash = createHash('sha256')
  const folder = join(sources, 'src')
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter(entry => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  for (const file of [pom, ...files.sort()]) hash.update(await readFile(file))
  return hash.digest('hex').slice(0, 16)
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

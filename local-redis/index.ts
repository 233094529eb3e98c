/**
 * Provides a Redis for the demo, the tests and the benchmarks, without asking the user to prepare one.
 *
 * The options are tried in this order: first what the user asked for, then what is already there, then what has to be
 * fetched.
 *
 *  1. REDIS_URL       The user named a server. It is used as it is: never started, stopped or emptied here.
 *     BATON_REDIS_IMAGE  The user named an image. Only containers of this image are used, and no other option is tried.
 *  2. PATH            A redis-server or valkey-server is installed. It starts fastest, and the user knows its version.
 *  3. container       A container engine answers. Nothing has to be installed, but an image may have to be pulled.
 *  4. package         In a checkout, on Debian and Ubuntu: the distribution's own server, unpacked into a cache folder.
 *  5. NoRedisError    Says why each option was not possible, and what to install.
 *
 * An option that fails does not end the search. Its reason is kept for the error, and the next option is tried.
 *
 * After the choice, all options work alike:
 *
 *  obtainRedis ── REDIS_URL
 *       └─ findServerSource ── chooseSource     asks each option in turn, keeps the refusals
 *                                 ├─ path.ts       ┐ launch ── process.ts   a child that cannot outlive this process
 *                                 ├─ debian.ts     ┘
 *                                 └─ container.ts    launch ── testcontainers
 *                                        └─ server.ts      port, retry, readiness, kill, restart: the same for all
 *
 * Three promises hold for every server started here. The server listens on loopback only. Its port is never 6379, where
 * a developer's own server usually listens. And however this process ends, no server and no file is left behind.
 *
 * This folder is independent: the lock library does not import it, and it imports nothing from the library.
 */
import { isCheckout } from './cache-folder.ts'
import { chooseSource, type SourceOption } from './choose.ts'
import { inContainer } from './container.ts'
import { onPath } from './path.ts'
import { type LocalRedis, namedRedis } from './redis-url.ts'
import type { ServerSource } from './server.ts'

export { NoRedisError } from './choose.ts'
export type { LocalRedis } from './redis-url.ts'
export type { RunningServer, ServerSource, StartOptions } from './server.ts'

export interface ObtainOptions {
  /** Receives one line that says which server was chosen. It never contains a password. */
  readonly announce?: (line: string) => void
  /** Extra command line arguments for a server that this package starts. A server named by REDIS_URL ignores them. */
  readonly args?: readonly string[]
}

let found: Promise<ServerSource> | undefined

/** Chooses the source of servers on this machine, regardless of REDIS_URL. The choice is made once per process. */
export function findServerSource(): Promise<ServerSource> {
  const { BATON_REDIS_IMAGE } = process.env
  // A user who names an image wants to test with that server. A test with another server would mislead the user.
  found ??= BATON_REDIS_IMAGE ? chooseSource([inContainer()]) : anySource()
  return found
}

async function anySource(): Promise<ServerSource> {
  return chooseSource([onPath(), inContainer(), ...(await distributionPackage())])
}

/**
 * In a checkout, returns the option to unpack the distribution's package. The published package does not contain
 * debian.ts, because its users have not asked for system packages. So debian.ts is loaded only in a checkout.
 */
async function distributionPackage(): Promise<SourceOption[]> {
  if (!(await isCheckout())) return []
  const { fromDistribution } = await import('./debian.ts')
  return [fromDistribution()]
}

/** Returns a Redis to use: the one that REDIS_URL names, otherwise one that is started and runs until `stop`. */
export async function obtainRedis(options: ObtainOptions = {}): Promise<LocalRedis> {
  const { REDIS_URL } = process.env
  const redis = namedRedis(REDIS_URL) ?? (await startedRedis(options.args ?? []))
  options.announce?.(`Redis: ${redis.description}`)
  return redis
}

async function startedRedis(args: readonly string[]): Promise<LocalRedis> {
  const source = await findServerSource()
  const server = await source.start({ args })
  return {
    url: server.url,
    description: `${source.description}, started on ${server.url}`,
    stop: () => server.stop(),
  }
}

/**
 * What the commands that work on locks have in common: how Redis is named, reached, and complained about.
 *
 * What is heavy is imported where it is needed, here as in the commands: `baton run` is started often, by scripts, and
 * `--help` and the completion of a shell need nothing of Redis.
 */
import { type Command, Option } from 'commander'
import { messageOf } from '../local-redis/error-message.ts'
import type { ClientOptions, LockClient } from '../src/index.ts'
import { type Address, checkedAddress, checkedQuorum, type ServerAddress } from './address.ts'
import { exitCodes, Failure, warn } from './failure.ts'
import { CONNECT_WITHIN, oneLine, reach, reachMost } from './reach.ts'

export interface ConnectionOptions {
  /** Several: the servers of a quorum. */
  readonly url?: readonly string[]
  readonly prefix: string
}

export interface Connected {
  readonly locks: LockClient
  /** Which Redis it is, as it may be shown: host and port, or the address without secrets. */
  readonly where: string
  /** Whether these are the locks of a quorum, which has mutexes only. */
  readonly quorum?: boolean
}

const local = 'redis://127.0.0.1:6379'
/** Of a client that only takes one look: who asks for it sits there and waits. */
export const oneLook = { outageTimeout: CONNECT_WITHIN } as const
/** In ms. */
const A_MOMENT = 1_000

export function withConnection(command: Command): Command {
  return command
    .addOption(urlOption(`address of Redis, in a form that baton --help lists (default: $REDIS_URL, else ${local})`))
    .option('--prefix <text>', 'first part of every key in Redis', 'lock')
}

/** `--url`, as often as it is given. Those behind the name of a command count instead of those before it, which it is handed first. */
export function urlOption(description: string): Option {
  const own: string[] = []
  return new Option('--url <url>', description).argParser(url => {
    own.push(url)
    return own
  })
}

/** Connects, works, and disconnects. A Redis that is not there is told at once, not after the patience of a lock client. */
export async function connected<T>(
  options: ConnectionOptions,
  ofClient: Pick<ClientOptions, 'label' | 'outageTimeout'>,
  work: (at: Connected) => Promise<T>,
): Promise<T> {
  const { prefix } = options
  const named = addressesOf(options.url)
  const warnings = new Warnings()
  const [{ LockClient, LockConnectionError }, redis] = await Promise.all([
    import('../src/index.ts'),
    named.quorum ? reachQuorum(named.addresses, warnings) : reachOne(named.addresses[0]),
  ])
  try {
    await using locks = new LockClient(redis, { prefix, ...ofClient })
    locks.on('error', ({ error }) => warnings.add(messageOf(error)))
    const where = named.addresses.map(({ place }) => place).join(', ')
    const result = await work({ locks, where, quorum: named.quorum })
    warnings.tell()
    return result
  } catch (error) {
    if (error instanceof LockConnectionError) throw new Failure(inFull(error), exitCodes.unavailable)
    throw error
  }
}

/** Of a quorum with the reason of each server, which the message does not have. */
function inFull({ message, cause }: Error): string {
  const reasons = cause instanceof AggregateError ? cause.errors.map(messageOf) : []
  return [message, ...reasons].map(oneLine).join('; ')
}

type Named =
  | { readonly quorum: false; readonly addresses: readonly [Address] }
  | { readonly quorum: true; readonly addresses: readonly ServerAddress[] }

function addressesOf(urls: readonly string[] | undefined): Named {
  if (!urls) return { quorum: false, addresses: [checkedAddress(process.env['REDIS_URL'] || local, '$REDIS_URL')] }
  const quorum = urls.length > 1
  const named: Named = quorum
    ? { quorum, addresses: checkedQuorum(urls) }
    : { quorum, addresses: [checkedAddress(urls[0] ?? '', '--url')] }
  hideFromOthers(urls, named.addresses)
  return named
}

/** The arguments of a program are seen by everybody on the machine, for instance by ps. */
function hideFromOthers(urls: readonly string[], addresses: readonly Address[]): void {
  if (!addresses.some(({ hasSecrets }) => hasSecrets)) return
  const line = ['baton', ...process.argv.slice(2)].join(' ')
  process.title = addresses.reduce((shown, address, i) => shown.replaceAll(urls[i]!, address.shown), line)
}

/** What the lock client makes its own connections after: one that has shown that Redis can be used. */
async function reachOne(address: Address): Promise<Awaited<ReturnType<typeof reach>>> {
  const redis = await reach(address)
  redis.disconnect()
  return redis
}

/** The same of a quorum, of which more than half can be used. */
async function reachQuorum(servers: readonly ServerAddress[], warnings: Warnings): Promise<string[]> {
  await reachMost(servers, failure =>
    warnings.add(`${failure.message}; continuing with the other servers of the quorum`),
  )
  return servers.map(({ url }) => url)
}

/**
 * What no call has failed of, for instance that a right is missing, or one server of a quorum. Where a call does fail of it,
 * that follows at once and is the better word for the same thing; so they are told a moment later, or behind the work.
 */
class Warnings {
  readonly #held: string[] = []

  add(text: string): void {
    this.#held.push(text)
    setTimeout(() => this.tell(), A_MOMENT).unref()
  }

  tell(): void {
    for (const text of this.#held.splice(0)) warn(text)
  }
}

/**
 * All commands that work on locks use this module. It finds Redis, connects to it, and reports failures.
 *
 * This module and the commands import heavy modules only where they are needed. The reason: scripts start `baton run`
 * often, and neither `--help` nor most shell completions need Redis.
 */
import { type Command, Option } from 'commander'
import { messageOf } from '../local-redis/error-message.ts'
import type { ClientOptions, LockClient } from '../src/index.ts'
import { defaults } from '../src/settings.ts'
import { type Address, checkedAddress, checkedQuorum, type ServerAddress } from './address.ts'
import { exitCodes, Failure, warn } from './failure.ts'
import { CONNECT_WITHIN, oneLine, reach, reachMost } from './reach.ts'

export interface ConnectionOptions {
  /** Several URLs name the servers of a quorum. */
  readonly url?: readonly string[]
  readonly prefix: string
}

export interface Connected {
  readonly locks: LockClient
  /** How messages name the server or servers: by host and port, or by the address without secrets. */
  readonly where: string
  /** Whether the locks are those of a quorum, which has mutexes only. */
  readonly quorum?: boolean
}

const local = 'redis://127.0.0.1:6379'
/**
 * Options for a client that reads the state of locks once. The client gives up early, because a person waits for the
 * answer.
 */
export const oneLook = { outageTimeout: CONNECT_WITHIN } as const
/** How long a warning is held back, in ms. See `Warnings`. */
const A_MOMENT = 1_000

export function withConnection(command: Command): Command {
  return command
    .addOption(urlOption(`address of Redis, in a form that baton --help lists (default: $REDIS_URL, else ${local})`))
    .option('--prefix <text>', 'first part of every key that locks have in Redis', defaults.prefix)
}

/**
 * Makes the option `--url`, which may be repeated. If there are URLs after the command's name, URLs before the name do
 * not count. So the option collects its own list and does not append to the value that commander passes, which contains
 * the URLs before the name.
 */
export function urlOption(description: string): Option {
  const own: string[] = []
  return new Option('--url <url>', description).argParser(url => {
    own.push(url)
    return own
  })
}

/**
 * Connects, does the work, and disconnects. If Redis cannot be reached, the user learns that within seconds. A lock
 * client alone would keep trying for longer.
 */
export async function connected<T>(
  options: ConnectionOptions,
  ofClient: Pick<ClientOptions, 'label' | 'lease' | 'outageTimeout'>,
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

/**
 * Returns the error's message on one line. For a quorum, appends the reason of each server, because the message does
 * not contain these reasons.
 */
function inFull({ message, cause }: Error): string {
  const reasons = cause instanceof AggregateError ? cause.errors.map(messageOf) : []
  return [message, ...reasons.filter(reason => !message.includes(reason))].map(oneLine).join('; ')
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

/** Hides passwords, because every user of the machine can read a program's arguments, for instance with ps. */
function hideFromOthers(urls: readonly string[], addresses: readonly Address[]): void {
  if (!addresses.some(({ hasSecrets }) => hasSecrets)) return
  const line = ['baton', ...process.argv.slice(2)].join(' ')
  process.title = addresses.reduce((shown, address, i) => shown.replaceAll(urls[i]!, address.shown), line)
}

/**
 * Checks that Redis can be used at this address. Then disconnects, because the lock client makes its own connections.
 */
async function reachOne(address: Address): Promise<Awaited<ReturnType<typeof reach>>> {
  const redis = await reach(address)
  redis.disconnect()
  return redis
}

/** Checks that more than half of the servers of a quorum can be used. */
async function reachQuorum(servers: readonly ServerAddress[], warnings: Warnings): Promise<string[]> {
  await reachMost(servers, failure =>
    warnings.add(`${failure.message}; continuing with the other servers of the quorum`),
  )
  return servers.map(({ url }) => url)
}

/**
 * Holds back warnings about trouble that has not made a call fail, such as a missing permission or one missing server
 * of a quorum. If the trouble then makes a call fail, the call's error describes it better. So a warning is printed
 * only after `A_MOMENT`, or when the work is done.
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

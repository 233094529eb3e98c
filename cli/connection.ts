/**
 * What the commands that work on locks have in common: how Redis is named, reached, and complained about.
 *
 * What is heavy is imported where it is needed, here as in the commands: `baton run` is started often, by scripts, and
 * `--help` and the completion of a shell need nothing of Redis.
 */
import type { Command } from 'commander'
import { messageOf } from '../local-redis/error-message.ts'
import type { ClientOptions, LockClient } from '../src/index.ts'
import { type Address, checkedAddress } from './address.ts'
import { exitCodes, Failure, warn } from './failure.ts'
import { CONNECT_WITHIN, oneLine, reach } from './reach.ts'

export interface ConnectionOptions {
  readonly url?: string
  readonly prefix: string
}

export interface Connected {
  readonly locks: LockClient
  /** Which Redis it is, as it may be shown: host and port, or the address without secrets. */
  readonly where: string
}

const local = 'redis://127.0.0.1:6379'
/** Of a client that only takes one look: who asks for it sits there and waits. */
export const oneLook = { outageTimeout: CONNECT_WITHIN } as const
/** In ms. */
const A_MOMENT = 1_000

export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', `Redis to use; its forms: baton --help (default: $REDIS_URL, else ${local})`)
    .option('--prefix <text>', 'first part of every key in Redis', 'lock')
}

/** Connects, works, and disconnects. A Redis that is not there is told at once, not after the patience of a lock client. */
export async function connected<T>(
  options: ConnectionOptions,
  ofClient: Pick<ClientOptions, 'label' | 'outageTimeout'>,
  work: (at: Connected) => Promise<T>,
): Promise<T> {
  const { prefix } = options
  const address = named(options.url)
  const [{ LockClient, LockConnectionError }, redis] = await Promise.all([import('../src/index.ts'), reach(address)])
  // It has shown that Redis can be used. The lock client makes its own connections after its pattern.
  redis.disconnect()
  const warnings = new Warnings()
  try {
    await using locks = new LockClient(redis, { prefix, ...ofClient })
    locks.on('error', ({ error }) => warnings.add(messageOf(error)))
    const result = await work({ locks, where: address.place })
    warnings.tell()
    return result
  } catch (error) {
    if (error instanceof LockConnectionError) throw new Failure(oneLine(error.message), exitCodes.unavailable)
    throw error
  }
}

function named(url: string | undefined): Address {
  if (url !== undefined) {
    const address = checkedAddress(url, '--url')
    hideFromOthers(url, address)
    return address
  }
  return checkedAddress(process.env['REDIS_URL'] || local, '$REDIS_URL')
}

/** The arguments of a program are seen by everybody on the machine, for instance by ps. */
function hideFromOthers(url: string, address: Address): void {
  if (!address.hasSecrets) return
  process.title = ['baton', ...process.argv.slice(2)].join(' ').replaceAll(url, address.shown)
}

/**
 * What the lock client says that no call has failed of, for instance that a right is missing. Where a call does fail of it,
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

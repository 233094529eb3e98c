/** Decides from the options which lock `baton run` takes. Without options, it is a mutex. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Lease, Lock, LockClient, LockOptions, LockState, SemaphoreOptions } from '../../src/index.ts'
import { exitCodes, Failure } from '../failure.ts'

export interface Asked {
  readonly permits?: number
  readonly take?: number
  readonly read?: boolean
  readonly write?: boolean
  /** Keys of further mutexes to take. */
  readonly and?: readonly string[]
}

/** What `baton run` holds while the command runs. */
export interface Hold {
  /** Aborts when the lock is lost. */
  readonly signal: AbortSignal
  /** Variables for the command's environment. */
  readonly environment: Readonly<Record<string, string>>
  release(): Promise<unknown>
}

export interface AskedLock {
  take(options: LockOptions): Promise<Hold>
  /** Inspects one of the locks that `baton run` takes, by its key. */
  inspect(key: string): Promise<LockState>
}

export function withAsked(command: Command): Command {
  const permits = new Option('--permits <n>', 'take a semaphore with this many permits, instead of a mutex').argParser(
    parseCount,
  )
  const take = new Option('--take <n>', 'how many permits of the semaphore to take (default: 1)').argParser(parseCount)
  const read = new Option('--read', 'take a read-write lock as a reader, together with other readers')
  const write = new Option('--write', 'take a read-write lock as its only writer, without readers')
  const and = new Option(
    '--and <key>',
    'key of another mutex to take as well; may be repeated; baton takes all of them or none',
  ).argParser(collect)
  return command
    .addOption(permits.conflicts(['read', 'write', 'and']))
    .addOption(take)
    .addOption(read.conflicts(['write', 'and']))
    .addOption(write.conflicts('and'))
    .addOption(and)
}

/** Checks the options, and throws Failure if they cannot be combined. `urls` are the addresses of Redis. */
export function checkAsked({ permits, take, read, write }: Asked, urls: readonly string[] = []): void {
  if (urls.length > 1 && (permits !== undefined || read || write)) {
    throw new Failure(
      'a quorum (several --url) has only mutexes, so --permits, --read and --write cannot be used with it',
      exitCodes.usage,
    )
  }
  if (take === undefined) return
  if (permits === undefined)
    throw new Failure('--take needs --permits, the number of permits of the semaphore', exitCodes.usage)
  if (take > permits)
    throw new Failure(
      `--take ${take} is more than --permits ${permits}; a caller cannot take more permits than the semaphore has`,
      exitCodes.usage,
    )
}

export function askedLock(locks: LockClient, key: string, asked: Asked): AskedLock {
  const { permits, take = 1, and } = asked
  if (and) {
    const all = locks.all([key, ...and])
    return {
      take: async options => {
        const lease = await all.lock(options)
        return { signal: lease.signal, environment: environmentOf(key, lease.leases), release: () => lease.release() }
      },
      inspect: part => locks.inspect(part),
    }
  }
  const one = oneLock(locks, key, asked)
  return {
    take: async options => {
      const lease = await one.lock(permits === undefined ? options : { ...options, permits: take })
      return { signal: lease.signal, environment: environmentOf(key, [lease]), release: () => lease.release() }
    },
    inspect: () => one.inspect(),
  }
}

function oneLock(locks: LockClient, key: string, { permits, read, write }: Asked): Lock<SemaphoreOptions> {
  if (permits !== undefined) return locks.semaphore(key, permits)
  if (read) return locks.readWrite(key).read
  return write ? locks.readWrite(key).write : locks.mutex(key)
}

/** Returns the variables for the command's environment. `key` is the first key on the command line. */
function environmentOf(key: string, leases: readonly Lease[]): Readonly<Record<string, string>> {
  const tokens = new Map(leases.map(lease => [lease.key, lease.fencingToken]))
  return {
    BATON_KEY: key,
    BATON_FENCING_TOKEN: String(tokens.get(key)),
    BATON_FENCING_TOKENS: JSON.stringify(Object.fromEntries(tokens)),
  }
}

function parseCount(text: string): number {
  const number = Number(text)
  if (/^\d+$/.test(text) && number >= 1 && Number.isSafeInteger(number)) return number
  throw new InvalidArgumentError('It must be a whole number, at least 1.')
}

function collect(key: string, before: readonly string[] = []): readonly string[] {
  return [...before, key]
}

/** Decides from the options which lock `baton run` takes. Without options, it is a mutex. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Lease, Lock, LockClient, LockOptions, LockState, SemaphoreOptions } from '../../src/index.ts'
import { exitCodes, Failure } from '../failure.ts'
import { parseCount } from '../parse-count.ts'

export interface Asked {
  readonly permits?: number
  readonly take?: number
  readonly read?: boolean
  readonly write?: boolean
  /** Keys of further mutexes to take. */
  readonly and?: readonly string[]
  readonly slots?: boolean
  readonly group?: string
  readonly groupLimit?: number
  readonly groupWeight?: number
}

/** What `baton run` holds while the command runs. */
export interface Hold {
  /** Aborts when the lock is lost. */
  readonly signal: AbortSignal
  /** Variables for the command's environment. */
  readonly environment: Readonly<Record<string, string | undefined>>
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
  const slots = new Option('--slots', 'give the permits of the semaphore numbers, in $BATON_SLOT: 0, or 0,3')
  const group = new Option('--group <name>', 'take turns with the other groups of callers of the semaphore')
  const limit = new Option('--group-limit <n>', 'how many permits the group may have at a time').argParser(parseCount)
  const weight = new Option(
    '--group-weight <n>',
    'share of the group in the turns (default: the share that it has, at first 1)',
  ).argParser(parseWeight)
  const exclusive = ['read', 'write', 'and']
  return command
    .addOption(permits.conflicts(['read', 'write', 'and']))
    .addOption(take)
    .addOption(read.conflicts(['write', 'and']))
    .addOption(write.conflicts('and'))
    .addOption(and)
    .addOption(slots.conflicts(exclusive))
    .addOption(group.conflicts([...exclusive, 'fairAfter']))
    .addOption(limit.conflicts(exclusive))
    .addOption(weight.conflicts(exclusive))
}

/** Options that would have no effect without another one, which is named, and what that other one is. */
const needs = [
  ['take', '--take', 'permits', 'the number of permits of the semaphore'],
  ['slots', '--slots', 'permits', 'the number of permits of the semaphore'],
  ['group', '--group', 'permits', 'the number of permits of the semaphore'],
  ['groupLimit', '--group-limit', 'group', 'the name of the group'],
  ['groupWeight', '--group-weight', 'group', 'the name of the group'],
] as const

/** Checks the options, and throws Failure if they cannot be combined. `urls` are the addresses of Redis. */
export function checkAsked(asked: Asked, urls: readonly string[] = []): void {
  const { permits, take, read, write } = asked
  for (const [option, name, needed, what] of needs) {
    if (asked[option] !== undefined && asked[needed] === undefined) {
      throw new Failure(`${name} needs --${needed}, ${what}`, exitCodes.usage)
    }
  }
  if (urls.length > 1 && (permits !== undefined || read || write)) {
    throw new Failure(
      'a quorum (several --url) has only mutexes, so --permits, --read and --write cannot be used with it',
      exitCodes.usage,
    )
  }
  if (permits !== undefined && take !== undefined && take > permits)
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
      const lease = await one.lock(permits === undefined ? options : { ...options, ...permitsOf(asked, take) })
      return { signal: lease.signal, environment: environmentOf(key, [lease]), release: () => lease.release() }
    },
    inspect: () => one.inspect(),
  }
}

/** Returns the options of a call on a semaphore. An option that was not given is absent. */
function permitsOf({ slots, group, groupLimit, groupWeight }: Asked, permits: number): SemaphoreOptions {
  const given = Object.entries({ slots, group, groupLimit, groupWeight }).filter(([, value]) => value !== undefined)
  return { permits, ...Object.fromEntries(given) }
}

function oneLock(locks: LockClient, key: string, { permits, read, write }: Asked): Lock<SemaphoreOptions> {
  if (permits !== undefined) return locks.semaphore(key, permits)
  if (read) return locks.readWrite(key).read
  return write ? locks.readWrite(key).write : locks.mutex(key)
}

/** Returns the variables for the command's environment. `key` is the first key on the command line. */
function environmentOf(key: string, leases: readonly Lease[]): Hold['environment'] {
  const tokens = new Map(leases.map(lease => [lease.key, lease.fencingToken]))
  return {
    BATON_KEY: key,
    BATON_FENCING_TOKEN: String(tokens.get(key)),
    BATON_FENCING_TOKENS: JSON.stringify(Object.fromEntries(tokens)),
    // The environment of baton itself may have a slot.
    BATON_SLOT: leases[0]?.slots?.join(','),
  }
}

function parseWeight(text: string): number {
  const weight = Number(text)
  if (text.trim() !== '' && weight > 0 && Number.isFinite(weight)) return weight
  throw new InvalidArgumentError('It must be a number above 0.')
}

function collect(key: string, before: readonly string[] = []): readonly string[] {
  return [...before, key]
}

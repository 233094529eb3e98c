/** `baton release --force`: takes a lock away from its holders, or from one of them, and wakes the next waiters. */
import { isatty } from 'node:tty'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { LockState } from '../src/index.ts'
import { type Connected, type ConnectionOptions, connected, oneLook, withConnection } from './connection.ts'
import { heldBy, kindNames, nameOf } from './description.ts'
import { exitCodes, Failure } from './failure.ts'
import { type Kind, kindOption, lockOf, statesOf } from './kinds.ts'
import { printable } from './printable.ts'
import { showTime } from './times.ts'

const holder = new Option(
  '--holder <id>',
  'take the lock only from the holder with this id, which baton inspect shows (default: from all holders)',
).argParser(parseId)

interface ReleaseOptions extends ConnectionOptions {
  readonly force?: boolean
  readonly yes?: boolean
  readonly kind?: Kind
  readonly holder?: string
}

export function addRelease(program: Command): void {
  withConnection(program.command('release'))
    .description('takes a lock away from its holders, and wakes the next waiter')
    .argument('<key>', 'name of the lock')
    .option('--force', 'required, because this command takes the lock from a process that may still need it')
    .addOption(kindOption('kind of the lock to release (default: mutex)'))
    .addOption(holder)
    .option('--yes', 'do not ask for confirmation')
    .addHelpText(
      'after',
      `
Examples:
  baton release --force nightly-report
  baton release --force nightly-report --yes
  baton release --force api-quota --kind semaphore          # from all its holders
  baton release --force api-quota --holder k2VfQ0hTnP8wJb6LxYcR4gAzM1sE

A mutex, a read-write lock and a semaphore of the same key are three different
locks; baton inspect shows which are held. Each holder is notified: "baton run"
ends its command with SIGTERM. A holder may still finish what it has started;
only a fencing token, checked where the holder writes, prevents that.`,
    )
    .action(async (key: string, options: ReleaseOptions) => {
      // This check is not left to commander, which would ask for --force before it reports a misspelled option.
      if (!options.force) {
        throw new Failure(
          "required option '--force' not specified; give it if you want to take the lock from a process that may still need it",
          exitCodes.usage,
        )
      }
      await connected(options, oneLook, async at => {
        const release = options.holder === undefined ? releaseAll : releaseOne
        console.log(printable(await release(at, key, options)))
      })
    })
}

/** Takes the lock away from all its holders. Returns a sentence that says what happened. */
async function releaseAll(at: Connected, key: string, { kind, yes = false }: ReleaseOptions): Promise<string> {
  const { locks } = at
  const states = await statesOf(at, key, kind)
  const [state] = states as [LockState, ...LockState[]]
  if (!state.locked) {
    const other = states.find(({ locked }) => locked)
    return `${key} is free already${other ? `; the ${kindNames[other.kind]} of the same key is held: to release that lock, give --kind ${other.kind}` : ''}`
  }
  const who = `${key} is ${heldBy(state)}`
  if (!yes) await agree(who, state.holders.length > 1 ? 'Take the lock from all its holders?' : 'Take the lock?')
  return (await locks.forceRelease(lockOf(locks, key, state.kind))) ? `${key} is released` : `${key} is free already`
}

/** Like `releaseAll`, but ends only the hold with the given id. The id also determines the kind of lock. */
async function releaseOne(
  at: Connected,
  key: string,
  { kind, yes = false, holder: id = '' }: ReleaseOptions,
): Promise<string> {
  const { locks } = at
  const states = await statesOf(at, key, kind)
  for (const state of states) {
    const holder = state.holders.find(each => each.id === id)
    if (!holder) continue
    const who = `${nameOf(holder)}, for ${showTime(holder.heldFor)}`
    if (!yes) await agree(`${key} is held by ${who}`, 'Take the lock?')
    if (await locks.forceRelease(lockOf(locks, key, state.kind), id)) return `${key} was taken from ${nameOf(holder)}`
  }
  return `no holder of ${key} has that id; baton inspect shows the ids of the holders`
}

async function agree(what: string, question: string): Promise<void> {
  const said = printable(what)
  // `process.stdin` would make a pipe non-blocking, which other programs may share.
  if (!isatty(0))
    throw new Failure(`${said}; nothing was released; to confirm without a terminal, give --yes`, exitCodes.usage)
  const { default: confirm } = await import('@inquirer/confirm')
  // Ctrl-C makes `confirm` reject. This counts as no.
  const yes = await confirm({ message: `${said}. ${question}`, default: false }, { output: process.stderr }).catch(
    () => false,
  )
  if (!yes) throw new Failure('you did not confirm, so nothing was released', exitCodes.no)
}

function parseId(text: string): string {
  if (/^[\w-]{28}$/.test(text)) return text
  throw new InvalidArgumentError('It must be the id of a holder, as baton inspect shows it.')
}

/** `baton release --force`: takes a lock from its holder, and wakes the next. */
import type { Command } from 'commander'
import { type ConnectionOptions, connected, oneLook, withConnection } from './connection.ts'
import { holderOf } from './description.ts'
import { exitCodes, Failure } from './failure.ts'
import { printable } from './printable.ts'

interface ReleaseOptions extends ConnectionOptions {
  readonly force?: boolean
  readonly yes?: boolean
}

export function addRelease(program: Command): void {
  withConnection(program.command('release'))
    .description('takes a lock from its holder, and wakes the next')
    .argument('<key>', 'name of the lock')
    .option('--force', 'required: that it is somebody else’s lock is understood')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      `
Examples:
  baton release --force nightly-report
  baton release --force nightly-report --yes

Its holder is told, and a command under "baton run" is ended by SIGTERM. What the holder has under way it may still finish:
only a fencing token stops that.`,
    )
    .action(async (key: string, options: ReleaseOptions) => {
      // Not by commander, which would ask for it before it has told of an option that is spelled wrongly.
      if (!options.force) {
        throw new Failure("required option '--force' not specified: it is somebody else's lock", exitCodes.usage)
      }
      await connected(options, oneLook, async ({ locks }) => {
        const state = await locks.inspect(key)
        if (state.locked && !options.yes) await agree(key, holderOf(state))
        const released = state.locked && (await locks.forceRelease(key))
        console.log(released ? `${printable(key)} is released` : `${printable(key)} is free already`)
      })
    })
}

async function agree(key: string, holder: string): Promise<void> {
  const who = printable(`${key} is held by ${holder}`)
  if (!process.stdin.isTTY) throw new Failure(`${who}; give --yes to take it without being asked`, exitCodes.usage)
  const { default: confirm } = await import('@inquirer/confirm')
  const message = `${who}. Take it?`
  // Ctrl-C is a way to say no.
  const yes = await confirm({ message, default: false }, { output: process.stderr }).catch(() => false)
  if (!yes) throw new Failure('nothing was released', exitCodes.no)
}

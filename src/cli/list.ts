/** `baton list`: all locks that are held or waited for. */
import type { Command } from 'commander'
import { LockArgumentError, type LockState } from '../index.ts'
import { type ConnectionOptions, connected, withConnection } from './connection.ts'
import { heldFor } from './description.ts'
import { exitCodes, Failure } from './failure.ts'
import { plainTable } from './table.ts'
import { showTime } from './times.ts'

export function addList(program: Command): void {
  withConnection(program.command('list'))
    .description('all locks that are held, or have somebody in their queue')
    .argument('[pattern]', 'only keys like this: *, ?, [abc], \\ to escape', '*')
    .option('--json', 'print an array for a script')
    .addHelpText(
      'after',
      `
Examples:
  baton list
  baton list 'order:*'
  baton list --json | jq -r '.[].key'`,
    )
    .action((pattern: string, options: ConnectionOptions & { json?: boolean }) =>
      connected(options, undefined, async ({ locks, serverTime }) => {
        const states: LockState[] = []
        try {
          for await (const state of locks.list(pattern)) states.push(state)
        } catch (error) {
          throw error instanceof LockArgumentError ? new Failure(error.message, exitCodes.usage) : error
        }
        states.sort((a, b) => (a.key < b.key ? -1 : 1))
        console.log(options.json ? JSON.stringify(states) : tableOf(states, await serverTime()))
      }),
    )
}

function tableOf(states: readonly LockState[], serverTime: number): string {
  if (states.length === 0) return 'no lock is held'
  const rows = states.map(state => {
    const held = heldFor(state, serverTime)
    return [
      state.key,
      state.locked ? state.label || state.owner || '' : '–',
      held === undefined ? '' : showTime(held),
      state.ttl === undefined ? '' : showTime(state.ttl),
      String(state.waiters.length),
    ]
  })
  return plainTable(['lock', 'holder', 'held for', 'lease ends in', 'queued'], rows)
}

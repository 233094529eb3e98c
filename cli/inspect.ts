/** `baton inspect`: who holds a lock, and who waits for it in its queue. */
import type { Command } from 'commander'
import type { LockState } from '../src/index.ts'
import { type ConnectionOptions, connected, oneLook, withConnection } from './connection.ts'
import { heldFor, recordHelp, recordOf } from './description.ts'
import { printable, printableJson } from './printable.ts'
import { plainTable } from './table.ts'
import { showTime } from './times.ts'

export function addInspect(program: Command): void {
  withConnection(program.command('inspect'))
    .description('who holds a lock, and who waits for it in its queue')
    .argument('<key>', 'name of the lock')
    .option('--json', 'print it for a script')
    .addHelpText(
      'after',
      `
Examples:
  baton inspect nightly-report
  baton inspect nightly-report --json | jq -r .label

Unfair waiters are known to their own processes only: the queue has those that were asked for with --fair.
With --json it prints${recordHelp}`,
    )
    .action((key: string, options: ConnectionOptions & { json?: boolean }) =>
      connected(options, oneLook, async ({ locks }) => {
        const state = await locks.inspect(key)
        console.log(options.json ? printableJson(recordOf(state)) : describe(state))
      }),
    )
}

function describe(state: LockState): string {
  const { key, locked, label, owner, holds, fencingToken, ttl = 0, waiters } = state
  const lines = locked
    ? [
        `${key} is held by ${label || owner}`,
        `  owner          ${owner}${holds > 1 ? `, ${holds} holds` : ''}`,
        `  held for       ${showTime(heldFor(state) ?? 0)}`,
        `  lease ends in  ${showTime(ttl)}`,
        `  fencing token  ${fencingToken}`,
      ]
    : [`${key} is free`]
  const text = lines.map(printable).join('\n')
  if (waiters.length === 0) return text
  const rows = waiters.map(({ position, label, owner, waited, expiresIn }) => [
    String(position),
    label || owner,
    showTime(waited),
    showTime(expiresIn),
  ])
  return [text, '', plainTable(['', 'waits', 'for', 'expires in'], rows)].join('\n')
}

/** `baton list`: lists all locks that are held or have a queue. */
import type { Command } from 'commander'
import type { LockState } from '../src/index.ts'
import { type ConnectionOptions, connected, oneLook, withConnection } from './connection.ts'
import { byKey, count, heldFor, holderCell, kindNames, recordHelp, recordOf, timeLeft } from './description.ts'
import { printableJson } from './printable.ts'
import { plainTable } from './table.ts'
import { showTime } from './times.ts'

export function addList(program: Command): void {
  withConnection(program.command('list'))
    .description('lists all locks that are held or have a queue')
    .argument(
      '[pattern]',
      'only keys that match this glob pattern, which may contain *, ? and [abc]; \\ escapes them',
      '*',
    )
    .option('--json', 'print a JSON array, for scripts')
    .addHelpText(
      'after',
      `
Examples:
  baton list
  baton list 'order:*'
  baton list --json | jq -r '.[].key'
  baton list --json | jq -r '.[] | select(.heldFor > 600000) | .key + " " + .label'    # held for more than ten minutes

The column groups is the number of groups of a semaphore; baton inspect shows
each of them. --json prints an array, sorted by key. Each lock in it is an
object:${recordHelp}`,
    )
    .action((pattern: string, options: ConnectionOptions & { json?: boolean }) =>
      connected(options, oneLook, async ({ locks }) => {
        const states: LockState[] = []
        for await (const state of locks.list(pattern)) states.push(state)
        states.sort(byKey)
        console.log(options.json ? printableJson(states.map(recordOf)) : tableOf(states))
      }),
    )
}

function tableOf(states: readonly LockState[]): string {
  if (states.length === 0) return 'no lock is held'
  const kinds = states.some(({ kind }) => kind !== 'mutex')
  const rows = states.map(state => [
    ...(kinds ? [state.key, kindNames[state.kind]] : [state.key]),
    holderCell(state).join(''),
    timeOf(heldFor(state)),
    timeOf(timeLeft(state)),
    String(state.waiters.length),
    state.groups ? count(state.groups.length) : '',
  ])
  const titles = ['lock', ...(kinds ? ['kind'] : []), 'holder', 'held for', 'lease ends in', 'queued', 'groups']
  return plainTable(titles, rows, ['groups'])
}

function timeOf(ms: number | undefined): string {
  return ms === undefined ? '' : showTime(ms)
}

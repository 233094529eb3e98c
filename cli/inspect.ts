/** `baton inspect`: who holds a lock, and who waits for it in its queue. */
import type { Command } from 'commander'
import type { LockState } from '../src/index.ts'
import { type ConnectionOptions, connected, oneLook, withConnection } from './connection.ts'
import {
  fullestFirst,
  groupCells,
  groupTitles,
  heldFor,
  nameOf,
  recordHelp,
  recordOf,
  sharedBy,
  shareOf,
  shareTitles,
  sumOf,
} from './description.ts'
import { type Kind, kindOption, statesOf } from './kinds.ts'
import { parseCount } from './parse-count.ts'
import { printable, printableJson } from './printable.ts'
import { plainTable } from './table.ts'
import { showTime } from './times.ts'

interface InspectOptions extends ConnectionOptions {
  readonly kind?: Kind
  readonly group?: string
  readonly limit?: number
  readonly json?: boolean
}

export function addInspect(program: Command): void {
  withConnection(program.command('inspect'))
    .description('shows who holds a lock, and who waits in its queue')
    .argument('<key>', 'name of the lock')
    .addOption(kindOption('only the lock of this kind (default: all locks of this key that are held or have a queue)'))
    .option(
      '--group <name>',
      'only this group of a semaphore: its permits, holders and waiters; "" for calls without one',
    )
    .option('--limit <n>', 'at most this many groups, holders and waiters (default: all)', parseCount)
    .option('--json', 'print JSON, for scripts')
    .addHelpText(
      'after',
      `
Examples:
  baton inspect nightly-report
  baton inspect nightly-report --json | jq -r .label
  baton inspect api-quota --kind semaphore --json | jq '.permits - .taken'
  baton inspect jobs --group acme --limit 10

A mutex, a read-write lock and a semaphore of the same key are three different
locks. This command shows each of the three that is held or has a queue. Only
fair waiters (--fair, or after --fair-after) are in the queue; Redis does not
know of unfair waiters. If calls of a semaphore gave a group, the groups are a
table of their own, those with most waiters first, and the column why says what
a waiter waits for: permits (too few are free), group (its group is full) or
turn (another waiter is before it). With --json, each lock that is shown is one
object on one line. If no lock of the key is held or has a queue, --json prints
one object, which describes the free mutex. An object has these
names:${recordHelp}`,
    )
    .action((key: string, { kind, group, limit, json, ...options }: InspectOptions) =>
      connected(options, oneLook, async at => {
        const all = await statesOf(at, key, kind)
        const used = all.filter(({ locked, waiters }) => locked || waiters.length > 0)
        const states = used.length > 0 ? used : all.slice(0, 1)
        const parts = states.map(state => partOf(state, group, limit))
        if (json) for (const part of parts) console.log(printableJson(recordOf(part)))
        else console.log(states.map((state, i) => describe(state, parts[i]!)).join('\n\n'))
      }),
    )
}

/** Keeps the group with this name, its holders and its waiters, and of each at most `limit`. */
function partOf(state: LockState, group: string | undefined, limit: number | undefined): LockState {
  const part = <T extends { readonly group?: string }>(all: readonly T[]) =>
    all.filter(each => group === undefined || (each.group ?? '') === group).slice(0, limit)
  return {
    ...state,
    ...(state.groups && { groups: part(fullestFirst(state.groups)) }),
    holders: part(state.holders),
    waiters: part(state.waiters),
  }
}

/** Describes the lock in a sentence, and `part` of it in tables. */
function describe(state: LockState, part: LockState): string {
  const parts = state.kind === 'mutex' ? [describeMutex(state)] : describeShared(state, part)
  if (part.waiters.length > 0) parts.push(queueOf(part))
  return parts.join('\n\n')
}

function describeMutex(state: LockState): string {
  const { key, locked, label, owner, holds, fencingToken, ttl = 0 } = state
  const lines = locked
    ? [
        `${key} is held by ${label || owner}`,
        `  owner          ${owner}${holds > 1 ? `, with ${holds} holds (re-entries)` : ''}`,
        `  held for       ${showTime(heldFor(state) ?? 0)}`,
        `  lease ends in  ${showTime(ttl)}`,
        `  fencing token  ${fencingToken}`,
      ]
    : [`${key} is free`]
  return lines.map(printable).join('\n')
}

/** Describes a lock that may have several holders: in a sentence, and by tables of its groups and holders. */
function describeShared(state: LockState, { holders, groups }: LockState): string[] {
  const { key, kind } = state
  if (state.holders.length + state.waiters.length === 0) return [printable(`${key} is free`)]
  const sum = state.groups ? `; ${sumOf(state.groups)}` : ''
  const parts = [printable(`${key} is a ${sharedBy(state)}${sum}`)]
  if (groups && groups.length > 0) parts.push(plainTable(groupTitles, groups.map(groupCells)))
  const rows = holders.map(holder => [
    nameOf(holder),
    shareOf(holder),
    holder.group ?? '',
    showTime(holder.heldFor),
    showTime(holder.ttl),
    String(holder.fencingToken),
    holder.id,
  ])
  const titles = ['holder', shareTitles[kind], 'group', 'held for', 'lease ends in', 'fencing token', 'id']
  if (holders.length > 0) parts.push(plainTable(titles, rows, ['group']))
  return parts
}

function queueOf({ kind, waiters }: LockState): string {
  const rows = waiters.map(waiter => [
    String(waiter.position),
    nameOf(waiter),
    shareOf(waiter),
    waiter.group ?? '',
    showTime(waiter.waited),
    showTime(waiter.expiresIn),
    waiter.expected === undefined ? '' : showTime(waiter.expected),
    waiter.why ?? '',
  ])
  const share = shareTitles[kind]
  const titles = ['', 'waits', share, 'group', 'for', 'expires in', 'expected in', 'why']
  return plainTable(titles, rows, [share, 'group', 'expected in', 'why'])
}

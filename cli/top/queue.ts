/** Draws the opened lock: who holds it, and who waits for it in its queue. */
import type { Colors } from 'picocolors/types.js'
import type { HolderState, WaiterState } from '../../src/index.ts'
import { groupCells, groupTitles, sharedBy, shareTitles, sumOf } from '../description.ts'
import { type LockName, narrowed, type SeenLock } from '../live/picture.ts'
import { showTimeBriefly as time } from '../times.ts'
import { holderCells, waiterCells } from './cells.ts'
import { type Column, cut, lay, row } from './columns.ts'

/** `only`: the column is shown only if the lock has groups, or if it has estimates of when its waiters will get it. */
type QueueColumn = Column & { readonly only?: 'grouped' | 'estimated' }

const expected: QueueColumn = { title: 'EXPECTED', width: 8, right: true, only: 'estimated' }
const queueColumns: readonly QueueColumn[] = [
  { title: '#', width: 6, right: true },
  { title: 'WAITER', width: 10, share: 3 },
  { title: 'OWNER', width: 10, share: 2 },
  { title: 'WAITED', width: 7, right: true },
  { title: 'EXPIRES', width: 7, right: true },
  expected,
]
/**
 * The columns for a lock that may have several holders. The table's first rows are the holders, and the queue follows.
 */
const sharedColumns = (kind: SeenLock['kind']): readonly QueueColumn[] => [
  { title: '#', width: 6, right: true },
  { title: 'HOLDER, WAITER', width: 14, share: 3 },
  { title: shareTitles[kind].toUpperCase(), width: 7, right: true },
  { title: 'GROUP', width: 8, share: 1, only: 'grouped' },
  { title: 'FOR', width: 7, right: true },
  { title: 'ENDS', width: 7, right: true },
  expected,
  { title: 'WHY', width: 7, only: 'grouped' },
  { title: 'OWNER', width: 10, share: 2 },
]
const groupColumns: readonly Column[] = groupTitles.map((title, i) => ({
  ...{ title: title.toUpperCase(), width: i === 0 ? 14 : 7 },
  ...(i === 0 ? { share: 1 } : { right: true }),
}))
/** The number of lines above the table's titles. */
export const aroundQueue = 4

/**
 * Returns the number of rows below the titles. The groups come first, and a line of titles separates them from the
 * rest.
 */
export function rowsOf(lock: SeenLock | undefined): number {
  return aboveOf(lock) + entriesOf(lock).length
}

function aboveOf(lock: SeenLock | undefined): number {
  return lock?.groups?.length ? lock.groups.length + 1 : 0
}

function entriesOf(lock: SeenLock | undefined): readonly (HolderState | WaiterState)[] {
  if (!lock) return []
  return lock.kind === 'mutex' ? lock.waiters : [...lock.holders, ...lock.waiters]
}

/**
 * Returns the lines of the opened lock. `lock` is undefined if nobody holds it or waits for it any longer. The table shows
 * what matches `within`; `place` is its first visible row, from 0.
 */
export function queue(
  name: LockName,
  lock: SeenLock | undefined,
  { within, place }: { readonly within: string; readonly place: number },
  page: number,
  width: number,
  colours: Colors,
): string[] {
  const { key, kind } = name
  const part = lock && narrowed(lock, within)
  const first = Math.min(place, Math.max(0, rowsOf(part) - page))
  const lines = tableOf(name, part, first, page, width, colours)
  return [
    colours.bold(cut(key, width, 'middle')),
    ...factsOf(name, lock).map(line => cut(line, width, kind === 'mutex' ? 'middle' : 'end')),
    ...(lines.length > 1
      ? lines
      : [within === '' ? '  the queue is empty' : `  nothing matches “${within}”; esc shows all`]),
  ]
}

/** Returns the titles of the first visible row, and the visible rows. */
function tableOf(
  { kind }: LockName,
  lock: SeenLock | undefined,
  first: number,
  page: number,
  width: number,
  colours: Colors,
): string[] {
  const { groups = [], waiters = [] } = lock ?? {}
  const has = { grouped: lock?.groups !== undefined, estimated: waiters.some(waiter => waiter.expected !== undefined) }
  const all = kind === 'mutex' ? queueColumns : sharedColumns(kind)
  const shown = ({ only }: QueueColumn) => only === undefined || has[only]
  const columns = lay(all.filter(shown), width)
  const rowOf = (cells: readonly string[]) =>
    row(
      columns,
      cells.filter((_, i) => shown(all[i]!)),
    )
  const grouping = lay(groupColumns, width)
  const titles = colours.bold(rowOf(all.map(({ title }) => title)))
  const groupHead = colours.bold(
    row(
      grouping,
      groupColumns.map(({ title }) => title),
    ),
  )
  const above = aboveOf(lock)
  const separator = first === groups.length ? '' : titles
  const last = first + page
  return [
    first < groups.length ? groupHead : titles,
    ...groups.slice(first, last).map(group => row(grouping, groupCells(group))),
    ...(first < above && above <= last ? [separator] : []),
    ...entriesOf(lock)
      .slice(Math.max(0, first - above), Math.max(0, last - above))
      .map(entry => rowOf(cellsOf(kind, entry))),
  ]
}

function cellsOf(kind: SeenLock['kind'], entry: HolderState | WaiterState): readonly string[] {
  if (!('position' in entry)) return ['holds', ...holderCells(entry, time), '', '', entry.owner]
  const cells = waiterCells(entry, time)
  if (kind !== 'mutex') return [...cells, entry.owner]
  const [position = '', name = '', , , waited = '', expires = '', estimate = ''] = cells
  return [position, name, entry.owner, waited, expires, estimate]
}

/** Returns the same number of lines for every lock, so that the table below does not move. */
function factsOf({ kind }: LockName, lock: SeenLock | undefined): string[] {
  if (!lock) return ['  the lock is free', '', '']
  const { label, owner = '', locked, holds, holders, heldFor = 0, timeLeft = 0, fencingToken } = lock
  if (kind !== 'mutex') {
    const [most, least] = holders.length > 1 ? ['up to ', 'at least '] : ['', '']
    const times = `  held for ${most}${time(heldFor)}, ${least}${time(timeLeft)} left`
    const groups = lock.groups ? `  ${sumOf(lock.groups)}` : ''
    const token = groups || `  latest fencing token ${holders.at(-1)?.fencingToken}`
    return [`  ${sharedBy(lock)}`, ...(locked ? [times, token] : [groups, ''])]
  }
  if (!locked) return ['  nobody holds it', '', '']
  const times = `held for ${time(heldFor)}, ${time(timeLeft)} left, fencing token ${fencingToken}`
  return [
    `  holder ${label || owner}`,
    `  owner  ${owner}`,
    `  ${times}${holds > 1 ? `, ${holds} holds of one owner` : ''}`,
  ]
}

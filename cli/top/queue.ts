/** Draws the opened lock: who holds it, and who waits for it in its queue. */
import type { Colors } from 'picocolors/types.js'
import { sharedBy, shareTitles } from '../description.ts'
import type { LockName, SeenLock } from '../live/picture.ts'
import { showTimeBriefly as time } from '../times.ts'
import { holderCells, waiterCells } from './cells.ts'
import { type Column, cut, lay, row } from './columns.ts'

const queueColumns: readonly Column[] = [
  { title: '#', width: 6, right: true },
  { title: 'WAITER', width: 10, share: 3 },
  { title: 'OWNER', width: 10, share: 2 },
  { title: 'WAITED', width: 7, right: true },
  { title: 'EXPIRES', width: 7, right: true },
]
/**
 * The columns for a lock that may have several holders. The table's first rows are the holders, and the queue follows.
 */
const sharedColumns = (kind: SeenLock['kind']): readonly Column[] => [
  { title: '#', width: 6, right: true },
  { title: 'HOLDER, WAITER', width: 14, share: 3 },
  { title: shareTitles[kind].toUpperCase(), width: 7, right: true },
  { title: 'FOR', width: 7, right: true },
  { title: 'ENDS', width: 7, right: true },
  { title: 'OWNER', width: 10, share: 2 },
]
/** The number of lines above the table's titles. */
export const aroundQueue = 4

export function rowsOf(lock: SeenLock | undefined): number {
  if (!lock) return 0
  return lock.kind === 'mutex' ? lock.waiters.length : lock.holders.length + lock.waiters.length
}

/**
 * Returns the lines of the opened lock. `lock` is undefined if nobody holds it or waits for it any longer. `place` is
 * the first visible row, from 0.
 */
export function queue(
  name: LockName,
  lock: SeenLock | undefined,
  place: number,
  page: number,
  width: number,
  colours: Colors,
): string[] {
  const { key, kind } = name
  const columns = kind === 'mutex' ? queueColumns : sharedColumns(kind)
  const laid = lay(columns, width)
  const first = Math.min(place, Math.max(0, rowsOf(lock) - page))
  const lines = rowsFrom(lock, first, first + page).map(cells => row(laid, cells))
  const titles = columns.map(({ title }) => title)
  const table = lines.length > 0 ? [colours.bold(row(laid, titles)), ...lines] : ['  the queue is empty']
  return [
    colours.bold(cut(key, width, 'middle')),
    ...factsOf(name, lock).map(line => cut(line, width, kind === 'mutex' ? 'middle' : 'end')),
    ...table,
  ]
}

function rowsFrom(lock: SeenLock | undefined, from: number, to: number): string[][] {
  if (!lock) return []
  const { kind, holders, waiters } = lock
  if (kind === 'mutex') {
    return waiters.slice(from, to).map(waiter => {
      const [position, name, , waited, expires] = waiterCells(waiter, time)
      return [position, name, waiter.owner, waited, expires]
    })
  }
  return [...holders, ...waiters]
    .slice(from, to)
    .map(each => [
      ...('position' in each ? waiterCells(each, time) : ['holds', ...holderCells(each, time)]),
      each.owner,
    ])
}

/** Returns the same number of lines for every lock, so that the table below does not move. */
function factsOf({ kind }: LockName, lock: SeenLock | undefined): string[] {
  if (!lock) return ['  the lock is free', '', '']
  const { label, owner = '', locked, holds, holders, heldFor = 0, timeLeft = 0, fencingToken } = lock
  if (kind !== 'mutex') {
    const [most, least] = holders.length > 1 ? ['up to ', 'at least '] : ['', '']
    const times = `  held for ${most}${time(heldFor)}, ${least}${time(timeLeft)} left`
    const token = `  latest fencing token ${holders.at(-1)?.fencingToken}`
    return [`  ${sharedBy(lock)}`, ...(locked ? [times, token] : ['', ''])]
  }
  if (!locked) return ['  nobody holds it', '', '']
  const times = `held for ${time(heldFor)}, ${time(timeLeft)} left, fencing token ${fencingToken}`
  return [
    `  holder ${label || owner}`,
    `  owner  ${owner}`,
    `  ${times}${holds > 1 ? `, ${holds} holds of one owner` : ''}`,
  ]
}

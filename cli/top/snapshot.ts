/** Prints the state of all locks once, as plain text or as JSON. No name is shortened, and there are no colours. */
import type { Connected } from '../connection.ts'
import { count, groupCells, groupTitles, kindNames } from '../description.ts'
import { type Order, type Picture, type SeenLock, sorted } from '../live/picture.ts'
import { survey } from '../live/watch.ts'
import { printableJson } from '../printable.ts'
import { plainTable } from '../table.ts'
import { showTime } from '../times.ts'
import { holderCells, lockCells, waiterCells } from './cells.ts'

const lockTitles = ['holder', 'held for', 'lease ends in', 'queued', 'longest wait', 'groups']
const holderTitles = ['holds', 'permits or mode', 'group', 'for', 'lease ends in']
const queueTitles = ['place', 'waits', 'permits or mode', 'group', 'for', 'expires in', 'expected in', 'why']
/** Columns that are left out if they have only empty cells. */
const optional = ['groups', 'permits or mode', 'group', 'expected in', 'why']

export async function snapshot(at: Connected, pattern: string, order: Order, json = false): Promise<string> {
  const picture = await survey(at, pattern)
  const locks = sorted(picture.locks, order)
  if (json) return printableJson({ ...picture, locks })
  if (locks.length === 0) return 'no lock is held'
  const shared = locks.filter(({ kind }) => kind !== 'mutex')
  const mixed = shared.length > 0
  const table = (titles: readonly string[], some: readonly SeenLock[], rowsOf: (lock: SeenLock) => string[][]) => {
    const named = ({ key, kind }: SeenLock) => (mixed ? [key, kindNames[kind]] : [key])
    const rows = some.flatMap(lock => rowsOf(lock).map(cells => [...named(lock), ...cells]))
    return rows.length === 0 ? [] : [plainTable(['lock', ...(mixed ? ['kind'] : []), ...titles], rows, optional)]
  }
  const cellsOf = (lock: SeenLock) => {
    const [, holder, ...cells] = lockCells(lock, showTime)
    return [holder.join(''), ...cells]
  }
  return [
    summary(picture),
    ...table(lockTitles, locks, lock => [cellsOf(lock)]),
    ...table(groupTitles, shared, ({ groups = [] }) => groups.map(groupCells)),
    ...table(holderTitles, shared, ({ holders }) => holders.map(holder => holderCells(holder, showTime))),
    ...table(queueTitles, locks, ({ waiters }) => waiters.map(waiter => waiterCells(waiter, showTime))),
  ].join('\n\n')
}

/** Returns one line: how many locks are held, how many have a queue, how many callers wait, and the longest wait. */
export function summary({ held, queued, waiters, longestWait }: Picture, time = showTime): string {
  const longest = waiters > 0 ? `, longest ${time(longestWait)}` : ''
  return `${count(held)} held  ${count(queued)} with a queue  ${count(waiters)} waiting${longest}`
}

/** One picture as plain text, or as JSON: nothing in it is cut, coloured or drawn. */
import type { Connected } from '../connection.ts'
import { count } from '../description.ts'
import { type Order, type Picture, sorted } from '../live/picture.ts'
import { survey } from '../live/watch.ts'
import { printableJson } from '../printable.ts'
import { plainTable } from '../table.ts'
import { showTime } from '../times.ts'
import { lockCells, waiterCells } from './cells.ts'

const lockTitles = ['lock', 'holder', 'held for', 'lease ends in', 'queued', 'longest wait']
const queueTitles = ['lock', 'place', 'waits', 'for', 'expires in']

export async function snapshot(at: Connected, pattern: string, order: Order, json = false): Promise<string> {
  const picture = await survey(at, pattern)
  const locks = sorted(picture.locks, order)
  if (json) return printableJson({ ...picture, locks })
  if (locks.length === 0) return 'no lock is held'
  const rows = locks.map(lock => lockCells(lock, showTime))
  const queues = locks.flatMap(({ key, waiters }) => waiters.map(waiter => [key, ...waiterCells(waiter, showTime)]))
  const parts = [summary(picture), plainTable(lockTitles, rows)]
  if (queues.length > 0) parts.push(plainTable(queueTitles, queues))
  return parts.join('\n\n')
}

/** The figures in one line. */
export function summary({ held, queued, waiters, longestWait }: Picture, time = showTime): string {
  const longest = waiters > 0 ? `, longest ${time(longestWait)}` : ''
  return `${count(held)} held  ${count(queued)} with a queue  ${count(waiters)} waiting${longest}`
}

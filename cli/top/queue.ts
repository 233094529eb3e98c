/** One lock that is open: who has it, and who waits for it in its queue. */
import type { Colors } from 'picocolors/types.js'
import type { SeenLock } from '../live/picture.ts'
import { showTimeBriefly as time } from '../times.ts'
import { waiterCells } from './cells.ts'
import { type Column, cut, lay, row } from './columns.ts'

const columns: readonly Column[] = [
  { title: '#', width: 6, right: true },
  { title: 'WAITER', width: 10, share: 3 },
  { title: 'OWNER', width: 10, share: 2 },
  { title: 'WAITED', width: 7, right: true },
  { title: 'EXPIRES', width: 7, right: true },
]
/** Lines above the titles of its table. */
export const aroundQueue = 4

/** `lock`: undefined where nobody holds it or waits for it any more. `place`: the first waiter in sight, from 0. */
export function queue(
  key: string,
  lock: SeenLock | undefined,
  place: number,
  page: number,
  width: number,
  colours: Colors,
): string[] {
  const waiters = lock?.waiters ?? []
  const laid = lay(columns, width)
  const first = Math.min(place, Math.max(0, waiters.length - page))
  const lines = waiters.slice(first, first + page).map(waiter => {
    const [position, name, waited, expires] = waiterCells(waiter, time)
    return row(laid, [position, name, waiter.owner, waited, expires])
  })
  const titles = columns.map(({ title }) => title)
  const table = lines.length > 0 ? [colours.bold(row(laid, titles)), ...lines] : ['  nobody is in its queue']
  return [colours.bold(cut(key, width, 'middle')), ...holderOf(lock).map(line => cut(line, width, 'middle')), ...table]
}

function holderOf(lock: SeenLock | undefined): string[] {
  if (!lock?.locked) return [lock ? '  nobody holds it' : '  it is free', '', '']
  const { label, owner = '', holds, heldFor = 0, ttl = 0, fencingToken } = lock
  const times = `held for ${time(heldFor)}, ${time(ttl)} left, fencing token ${fencingToken}`
  return [`  holder ${label || owner}`, `  owner  ${owner}`, `  ${times}${holds > 1 ? `, ${holds} holds` : ''}`]
}

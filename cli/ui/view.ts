/** What one viewer sees of the picture. */
import { count } from '../description.ts'
import { lockNamed, matching, type Order, orders, type Picture, type SeenLock, sorted } from '../live/picture.ts'
import { printable } from '../printable.ts'
import { showTimeBriefly } from '../times.ts'
import type { Memory } from './memory.ts'
import type { OpenLock, QueueRow, Row, Table, Totals, View } from './page/messages.ts'

/** The most rows that one viewer is sent each time. */
const ROWS = 2_000
/** Longer names are cut where they stand in a table; the lock that is open shows its own in full. */
const NAME = 160
const nothing = '–'

export interface CheckedView extends View {
  readonly sort: Order
}

/** From the query of an address: what is missing or makes no sense is as a page has it that was just opened. */
export function viewOf(query: Readonly<Record<string, string>>): CheckedView {
  const { sort = '', filter = '', open = '' } = query
  return {
    sort: Object.hasOwn(orders, sort) ? (sort as Order) : 'key',
    reversed: query['reversed'] === 'true',
    filter,
    rows: wanted(query['rows']),
    queue: wanted(query['queue']),
    open: open === '' ? null : open,
  }
}

function wanted(text: string | undefined): number {
  const number = Number(text)
  return Number.isInteger(number) && number > 0 ? Math.min(number, ROWS) : 100
}

export function totalsOf({ held, queued, waiters }: Picture): Totals {
  return { held: count(held), queued: count(queued), waiters: count(waiters) }
}

export function tableOf({ locks }: Picture, view: CheckedView, memory: Memory): Table {
  const found = sorted(matching(locks, view.filter), view.sort, view.reversed)
  const rows = found.slice(0, view.rows).map(lock => rowOf(lock, memory))
  return { locks: locks.length, matching: found.length, rows }
}

/** The lock that the viewer has opened. It may be free, and so have no place in the picture. */
export function openOf(picture: Picture, { open, queue }: View, memory: Memory): OpenLock | null {
  if (open === null) return null
  const lock = lockNamed(picture, open) ?? free(open)
  return {
    ...rowOf(lock, memory),
    name: shown(open, Number.POSITIVE_INFINITY),
    owner: shown(lock.owner ?? nothing),
    holds: lock.holds,
    token: lock.fencingToken ?? null,
    trend: memory.trendOf(open),
    queue: lock.waiters.slice(0, queue).map(queueRow),
    more: Math.max(0, lock.waiters.length - queue),
  }
}

function free(key: string): SeenLock {
  return { key, kind: 'mutex', locked: false, holds: 0, holders: [], waiters: [], heldFor: undefined, longestWait: 0 }
}

function rowOf(lock: SeenLock, memory: Memory): Row {
  const { key, locked, label, owner = '', heldFor, ttl, waiters, longestWait } = lock
  const name = shown(key)
  return {
    key,
    ...(name !== key && { name }),
    holder: locked ? shown(label || owner) : nothing,
    heldFor: heldFor === undefined ? '' : showTimeBriefly(heldFor),
    left: ttl === undefined ? '' : showTimeBriefly(ttl),
    share: memory.shareLeft(lock) ?? null,
    waiters: waiters.length === 0 ? '' : count(waiters.length),
    longestWait: waiters.length === 0 ? '' : showTimeBriefly(longestWait),
  }
}

function queueRow({ id, label, owner, position, waited, expiresIn }: SeenLock['waiters'][number]): QueueRow {
  return {
    id,
    position,
    waiter: shown(label || owner),
    waited: showTimeBriefly(waited),
    left: showTimeBriefly(expiresIn),
  }
}

/** A name of somebody else's: what it does to a line of text is shown, not obeyed. */
function shown(name: string, length = NAME): string {
  const cut = name.length > length ? `${[...name].slice(0, length).join('')}…` : name
  return printable(cut)
}

/** From the latest reading of all locks, selects and formats what one viewer sees. */
import {
  count,
  groupCells,
  holderCell,
  kindNames,
  nameOf,
  sharedBy,
  shareOf,
  shareTitles,
  sumOf,
} from '../description.ts'
import {
  lockNamed,
  matching,
  narrowed,
  type Order,
  orders,
  type Picture,
  type SeenLock,
  seen,
  sorted,
} from '../live/picture.ts'
import { printable } from '../printable.ts'
import { showTimeBriefly } from '../times.ts'
import type { Memory } from './memory.ts'
import type { Groups, HolderRow, OpenLock, QueueRow, Row, Shared, Table, Totals, View } from './page/messages.ts'
import { lockName } from './page/name.ts'

/** The most table rows that one message to the page contains. */
const ROWS = 2_000
/** In tables, names are cut to this many characters. The panel of an opened lock shows the whole name. */
const NAME = 160
const nothing = '–'

export interface CheckedView extends View {
  readonly sort: Order
}

/**
 * Reads the view from the query of a URL. A missing or invalid value is replaced by the value that a newly opened page
 * has.
 */
export function viewOf(query: Readonly<Record<string, string>>): CheckedView {
  const { sort = '', filter = '', open = '' } = query
  return {
    sort: Object.hasOwn(orders, sort) ? (sort as Order) : 'waiters',
    reversed: query['reversed'] === 'true',
    filter,
    rows: wanted(query['rows']),
    within: query['within'] ?? '',
    groups: wanted(query['groups']),
    holders: wanted(query['holders']),
    queue: wanted(query['queue']),
    open: open === '' ? null : lockName(open, query['kind']),
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

/** Returns the lock that the viewer has opened. A lock that is not in `picture` is free. */
export function openOf(picture: Picture, view: View, memory: Memory): OpenLock | null {
  if (view.open === null) return null
  const { key, kind = 'mutex' } = view.open
  const lock =
    lockNamed(picture, { key, kind }) ?? seen({ key, kind, locked: false, holds: 0, holders: [], waiters: [] })
  const { groups, holders, waiters } = narrowed(lock, view.within)
  return {
    ...rowOf(lock, memory),
    name: shown(key, Number.POSITIVE_INFINITY),
    owner: shown(lock.owner ?? nothing),
    holds: lock.holds,
    token: lock.fencingToken ?? null,
    id: lock.holders[0]?.id ?? null,
    ...(kind !== 'mutex' && { shared: sharedOf(lock, holders, view.holders) }),
    ...(groups && { groups: groupsOf(groups, view.groups) }),
    trend: memory.trendOf(lock),
    queue: waiters.slice(0, view.queue).map(queueRow),
    more: Math.max(0, waiters.length - view.queue),
  }
}

function rowOf(lock: SeenLock, memory: Memory): Row {
  const { key, kind, heldFor, timeLeft, waiters, longestWait } = lock
  const name = shown(key)
  const [before, holder, behind] = holderCell(lock)
  return {
    key,
    ...(kind !== 'mutex' && { kind, kindName: kindNames[kind] }),
    ...(name !== key && { name }),
    holder: shown(before + holder),
    ...(behind !== '' && { behind }),
    heldFor: heldFor === undefined ? '' : showTimeBriefly(heldFor),
    left: timeLeft === undefined ? '' : showTimeBriefly(timeLeft),
    share: memory.shareLeft(lock) ?? null,
    waiters: waiters.length === 0 ? '' : count(waiters.length),
    longestWait: waiters.length === 0 ? '' : showTimeBriefly(longestWait),
  }
}

function sharedOf(lock: SeenLock, holders: SeenLock['holders'], most: number): Shared {
  return {
    said: lock.groups ? `${sharedBy(lock)}; ${sumOf(lock.groups)}` : sharedBy(lock),
    title: shareTitles[lock.kind],
    holders: holders.slice(0, most).map(holderRow),
    more: Math.max(0, holders.length - most),
  }
}

function groupsOf(groups: NonNullable<SeenLock['groups']>, most: number): Groups {
  return {
    rows: groups.slice(0, most).map(each => ({ id: each.group, cells: groupCells(each).map(cell => shown(cell)) })),
    more: Math.max(0, groups.length - most),
  }
}

function holderRow(holder: SeenLock['holders'][number]): HolderRow {
  const { id, group, heldFor, ttl } = holder
  return {
    id,
    holder: shown(nameOf(holder)),
    part: shareOf(holder),
    ...(group !== undefined && { group: shown(group) }),
    heldFor: showTimeBriefly(heldFor),
    left: showTimeBriefly(ttl),
  }
}

function queueRow(waiter: SeenLock['waiters'][number]): QueueRow {
  const { id, position, group, why, waited, expiresIn, expected } = waiter
  const part = shareOf(waiter)
  return {
    id,
    position,
    waiter: shown(nameOf(waiter)),
    ...(part !== '' && { part }),
    ...(group !== undefined && { group: shown(group) }),
    ...(why && { why }),
    waited: showTimeBriefly(waited),
    left: showTimeBriefly(expiresIn),
    ...(expected !== undefined && { expected: showTimeBriefly(expected) }),
  }
}

/** Returns an untrusted name, cut to `length`, with its control characters made visible. */
function shown(name: string, length = NAME): string {
  const cut = name.length > length ? `${[...name].slice(0, length).join('')}…` : name
  return printable(cut)
}

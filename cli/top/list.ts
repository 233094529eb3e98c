/** Draws the list of all locks, one per row. */
import type { Colors } from 'picocolors/types.js'
import type { Order } from '../live/picture.ts'
import { showTimeBriefly as time } from '../times.ts'
import { lockCells } from './cells.ts'
import { type Column, cut, lay, row } from './columns.ts'
import type { View, Visible } from './view.ts'

const columns: readonly (Column & { readonly order?: Order })[] = [
  { title: '', width: 1 },
  { title: 'LOCK', width: 10, share: 3, order: 'key' },
  { title: 'HOLDER', width: 8, share: 2 },
  { title: 'HELD', width: 7, right: true, order: 'heldFor' },
  { title: 'LEFT', width: 7, right: true, order: 'timeLeft' },
  { title: 'QUEUE', width: 6, right: true, order: 'waiters' },
  { title: 'LONGEST', width: 8, right: true, order: 'longestWait' },
]

/** The last column, if a lock in the list has groups. A narrow screen has no room for it. */
const groupsColumn = { title: 'GROUPS', width: 6, right: true, order: undefined }

/** Returns the lines of the list, or the line `none` if the list has no rows. */
export function list(
  view: View,
  { rows, cursor }: Visible,
  page: number,
  width: number,
  colours: Colors,
  none: string | undefined,
): string[] {
  const all = rows.some(({ groups }) => groups) ? [...columns, groupsColumn] : columns
  const laid = lay(all, width)
  const arrow = view.reversed ? '▴' : '▾'
  const titles = all.map(({ title, order }) => (order === view.order ? title + arrow : title))
  // Keeps the cursor in the middle if possible, so that the rows around it are visible.
  const first = Math.max(0, Math.min(cursor - Math.floor(page / 2), rows.length - page))
  const lines = rows.slice(first, first + page).map((lock, i) => {
    const here = first + i === cursor
    const line = row(laid, [here ? '>' : '', ...lockCells(lock, time)])
    return here ? colours.inverse(line) : line
  })
  const saying = none === undefined || rows.length > 0 ? [] : ['', `  ${cut(none, width - 2)}`]
  return [colours.bold(row(laid, titles)), ...lines, ...saying]
}

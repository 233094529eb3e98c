/**
 * The screen of `baton top`, line by line:
 *
 *      127.0.0.1:6379  12 held  …      which Redis, and its figures
 *      reading every 1s                how fresh the figures are
 *      …                               the list, or one opened lock, or the help
 *      ↑↓ move  enter open  …          keys, or the filter that is being typed
 */
import type { Colors } from 'picocolors/types.js'
import { messageOf } from '../../local-redis/error-message.ts'
import { count } from '../description.ts'
import { lockNamed, type Picture } from '../live/picture.ts'
import type { Watch } from '../live/watch.ts'
import { showTimeBriefly as time } from '../times.ts'
import { cut } from './columns.ts'
import { list } from './list.ts'
import { aroundQueue, queue } from './queue.ts'
import { summary } from './snapshot.ts'
import { type View, type Visible, visible } from './view.ts'

export interface Seen {
  readonly view: View
  readonly watch: Watch
  readonly paused: boolean
  /** How often all locks are read from Redis, in ms. */
  readonly interval: number
  /** The address of Redis, for display. */
  readonly where: string
}

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** After this many ms without an answer, the status says that Redis does not answer. */
const LATE = 2_000
/** The widest table in which the eye can still follow a row, in columns of the screen. */
const WIDEST = 130
/**
 * The number of lines besides the table's rows: two above the table, one for its titles, and the last line of the
 * screen.
 */
const aroundList = 4

/** Returns the number of rows on one page of the current view. */
export function pageOf({ opened }: View, { rows }: Size): number {
  return Math.max(1, rows - aroundList - (opened === undefined ? 0 : aroundQueue))
}

/** Returns as many lines as the screen has rows, none longer than the screen is wide. */
export function frame({ view, watch, paused, interval, where }: Seen, size: Size, colours: Colors): string[] {
  const { picture } = watch
  const shown = visible(view, picture)
  const width = Math.min(size.columns, WIDEST)
  const page = pageOf(view, size)
  const line = (text: string) => cut(text, size.columns)
  const body = () => {
    if (view.help) return help.map(line)
    if (view.opened === undefined) return list(view, shown, page, width, colours, picture && nothing(view, picture))
    return queue(view.opened, lockNamed(picture, view.opened), view, page, width, colours)
  }
  const [tone, belief] = status(watch, paused, interval)
  const part = view.filter && picture ? `  ${ofAll(shown, picture)} match “${view.filter}”` : ''
  const head = [
    colours.bold(line(picture ? `${where}  ${summary(picture, time)}` : where)),
    colours[tone](line(belief + part)),
  ]
  const lines = [...head, ...body()].slice(0, size.rows - 1)
  const filled = Array.from({ length: size.rows - 1 }, (_, i) => lines[i] ?? '')
  return [...filled, foot(view, size.columns, colours)]
}

/** Says how old the data on the screen are. If something is wrong, also says why there are no newer data. */
function status(watch: Watch, paused: boolean, interval: number): ['red' | 'yellow' | 'dim', string] {
  const { picture, age, took, trouble, surveying = 0 } = watch
  const asOf = picture ? `data as of ${time(age)} ago` : 'no data yet'
  if (trouble) return ['red', `${asOf}: ${messageOf(trouble)}`]
  if (surveying > Math.max(LATE, 3 * took)) return ['yellow', `${asOf}: no answer from Redis for ${time(surveying)}`]
  if (paused) return ['yellow', `paused, ${asOf}`]
  if (!picture) return ['dim', 'reading …']
  const pace = watch.pace > interval ? `${time(watch.pace)}, because one reading takes ${time(took)}` : time(interval)
  return ['dim', `reading every ${pace}`]
}

function nothing({ filter }: View, { locks }: Picture): string {
  return locks.length === 0 ? 'no lock is held' : `no lock matches “${filter}”; esc shows all ${count(locks.length)}`
}

function ofAll({ rows }: Visible, { locks }: Picture): string {
  return `${count(rows.length)} of ${count(locks.length)}`
}

function foot({ help, typing, filter, within, opened }: View, width: number, colours: Colors): string {
  const typed = opened === undefined ? filter : within
  if (typing) return `${cut(`filter: ${typed}`, width - 1)}${colours.inverse(' ')}`
  const keys = help ? anyKey : opened === undefined ? listKeys : lockKeys
  return colours.dim(cut(keys, width))
}

const listKeys = '↑↓ move  enter open  s sort  r reverse  / filter  space pause  ? help  q quit'
const lockKeys = '↑↓ scroll  esc back  / filter  space pause  ? help  q quit'
const anyKey = 'press any key to go back'

const help = `
  up down j k       move; page up, page down, home, end, g and G go farther
  enter, right      open a lock: its holders, fencing token and queue
  esc, left         back to the list; in the list: show all locks again
  /                 filter: locks with this text in their name, or in the label
                    of their holder or of a waiter; in an opened lock, groups,
                    holders and waiters; enter keeps it, esc drops it
  s                 sort by the next column; r turns the order around
  1 2 3 4 5         sort by name, time held, waiters, longest wait, time left
  space, p          pause and resume
  ctrl-l            redraw the screen
  q, ctrl-c         quit

  LEFT is the time until the lease ends. Most holders renew their lease when
  a third of it is over.
  A waiter whose process has died is removed when EXPIRES has run out.
  HOLDER begins with the permits taken, such as 4/5, if the lock is a
  semaphore, and with read or write if the lock is a read-write lock. +2 means
  2 more holders. QUEUE counts the waiters of the fair queue; Redis does not
  know of unfair waiters.
  GROUPS counts the groups of a semaphore; an opened lock shows them, those
  with most waiters first. WHY: permits are too few, its group is full, or it
  is the turn of another.`.split('\n')

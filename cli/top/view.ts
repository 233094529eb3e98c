/**
 * The choices of the user in `baton top`: which locks are shown, in which order, and which lock is opened. Defines how
 * each key press changes these choices. Does not depend on the terminal.
 */
import {
  isSame,
  type LockName,
  lockNamed,
  matching,
  narrowed,
  type Order,
  orders,
  type Picture,
  type SeenLock,
  sorted,
} from '../live/picture.ts'
import { rowsOf } from './queue.ts'

export interface View {
  readonly order: Order
  readonly reversed: boolean
  /**
   * Only locks whose key, holders or waiters match this text are shown. While `typing` is true, the user types this
   * text, or `within` if a lock is opened.
   */
  readonly filter: string
  readonly typing: boolean
  /**
   * The lock under the cursor. If the lock moves to another row, the cursor follows it. If no lock is selected, or the
   * selected lock is gone, the cursor stays in `row`.
   */
  readonly selected: LockName | undefined
  readonly row: number
  /** The lock whose holders and queue are shown, and the first visible row of its table (`place`). */
  readonly opened: LockName | undefined
  readonly place: number
  /** Of the opened lock, only groups, holders and waiters that match this text are shown. */
  readonly within: string
  readonly help: boolean
}

/** What a key press leads to: a changed view, or a command for the caller. */
export type Pressed = View | 'quit' | 'pause' | 'redraw' | 'suspend'

export interface Key {
  /** The key's name, as node:readline gives it: `up`, `return`, `escape`, `a`. */
  readonly name: string
  readonly ctrl: boolean
  /** The character that the key types; empty for a key such as an arrow. */
  readonly text: string
}

export const firstView: View = {
  order: 'waiters',
  reversed: false,
  filter: '',
  typing: false,
  selected: undefined,
  row: 0,
  opened: undefined,
  place: 0,
  within: '',
  help: false,
}

/** The visible locks in their order, and the row of the cursor, which is -1 if there are no locks. */
export interface Visible {
  readonly rows: readonly SeenLock[]
  readonly cursor: number
}

export function visible(view: View, picture: Picture | undefined): Visible {
  const rows = sorted(matching(picture?.locks ?? [], view.filter), view.order, view.reversed)
  const at = rows.findIndex(lock => isSame(lock, view.selected))
  return { rows, cursor: at >= 0 ? at : Math.min(view.row, rows.length - 1) }
}

/** Returns what happens when the user presses a key. `page` is the number of rows on a page. */
export function press(view: View, key: Key, picture: Picture | undefined, page: number): Pressed {
  if (key.ctrl) return controls[key.name] ?? view
  if (view.help) return key.name === 'q' ? 'quit' : { ...view, help: false }
  if (view.typing) return type(view, key)
  switch (key.text || key.name) {
    case 'q':
      return 'quit'
    case '?':
    case 'h':
      return { ...view, help: true }
    case ' ':
    case 'p':
      return 'pause'
  }
  return view.opened === undefined ? pressInList(view, key, picture, page) : pressInLock(view, key, picture, page)
}

const controls: Readonly<Record<string, Pressed>> = { c: 'quit', l: 'redraw', z: 'suspend' }

function type(view: View, { name, text }: Key): View {
  const which = view.opened === undefined ? 'filter' : 'within'
  if (name === 'return' || name === 'enter') return { ...view, typing: false }
  if (name === 'escape') return { ...view, typing: false, [which]: '' }
  // Removes one whole character, not half of a surrogate pair.
  if (name === 'backspace') return { ...view, [which]: [...view[which]].slice(0, -1).join('') }
  return { ...view, [which]: view[which] + text }
}

function pressInList(view: View, { name, text }: Key, picture: Picture | undefined, page: number): View {
  const { rows, cursor } = visible(view, picture)
  const names = Object.keys(orders) as Order[]
  const chosen = names[Number(text) - 1]
  if (chosen) return { ...view, order: chosen, reversed: chosen === view.order && !view.reversed }
  switch (text || name) {
    case 's':
      return { ...view, order: names[(names.indexOf(view.order) + 1) % names.length]!, reversed: false }
    case 'r':
      return { ...view, reversed: !view.reversed }
    case '/':
      return { ...view, typing: true }
    case 'escape':
      return { ...view, filter: '' }
    case 'return':
    case 'enter':
    case 'right':
      return { ...view, opened: nameAt(rows, cursor), place: 0, within: '' }
  }
  const row = moved(cursor, { name, text }, rows.length, page)
  if (row === undefined) return view
  // In the first row, the cursor is not bound to a lock. So it stays in the first row even if another lock moves there.
  return { ...view, row, selected: row === 0 ? undefined : nameAt(rows, row) }
}

function pressInLock(view: View, key: Pick<Key, 'name' | 'text'>, picture: Picture | undefined, page: number): View {
  if (key.text === '/') return { ...view, typing: true, place: 0 }
  if (key.name === 'escape' && view.within !== '') return { ...view, within: '' }
  if (['escape', 'left', 'backspace', 'return', 'enter'].includes(key.name)) {
    return { ...view, opened: undefined, selected: view.opened }
  }
  const lock = lockNamed(picture, view.opened)
  const last = Math.max(0, rowsOf(lock && narrowed(lock, view.within)) - page)
  const place = moved(Math.min(view.place, last), key, last + 1, page)
  return place === undefined ? view : { ...view, place }
}

function nameAt(rows: readonly SeenLock[], row: number): LockName | undefined {
  const lock = rows[row]
  return lock && { key: lock.key, kind: lock.kind }
}

/** Returns the row to which a key moves the cursor; undefined if the key does not move it. */
function moved(from: number, { name, text }: Pick<Key, 'name' | 'text'>, count: number, page: number) {
  const to = {
    up: from - 1,
    k: from - 1,
    down: from + 1,
    j: from + 1,
    pageup: from - page,
    pagedown: from + page,
    home: 0,
    g: 0,
    end: count - 1,
    G: count - 1,
  }[text.length === 1 ? text : name]
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to))
}

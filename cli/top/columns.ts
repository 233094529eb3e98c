/**
 * Rows of a table whose columns stand still: a cell is cut or filled to its width, and begins at its own column of the
 * screen. Terminals disagree about how wide some characters are, and such a one then spoils its own cell only.
 */
import ansiEscapes from 'ansi-escapes'
import cliTruncate from 'cli-truncate'
import stringWidth from 'string-width'
import type { NamedCell } from '../description.ts'
import { printable } from '../printable.ts'

export interface Column {
  readonly title: string
  /** Least width; of what is left over, columns with a share get so many parts. */
  readonly width: number
  readonly share?: number
  readonly right?: boolean
}

export interface Laid extends Column {
  /** Where it begins, from 0. */
  readonly at: number
}

const GAP = 1

/** Columns side by side in a screen of `width`: as many of the first as it has room for. */
export function lay(columns: readonly Column[], width: number): Laid[] {
  const least = (some: readonly Column[]) => some.reduce((sum, column) => sum + column.width + GAP, -GAP)
  const fitting = columns.filter((_, i) => least(columns.slice(0, i + 1)) <= width)
  let rest = width - least(fitting)
  let parts = fitting.reduce((sum, { share = 0 }) => sum + share, 0)
  let at = 0
  return fitting.map(column => {
    const { share = 0 } = column
    const more = share === 0 ? 0 : Math.floor((rest * share) / parts)
    rest -= more
    parts -= share
    const laid = { ...column, width: column.width + more, at }
    at += laid.width + GAP
    return laid
  })
}

/** One row of cells, which may be anybody's text. */
export function row(columns: readonly Laid[], cells: readonly (string | NamedCell)[]): string {
  return columns
    .map((column, i) => ansiEscapes.cursorTo(column.at) + filled(cells[i] ?? '', column.width, column.right))
    .join(' '.repeat(GAP))
}

/** In exactly so many columns. What is long is cut in its middle: names often differ at their end. */
function filled(cell: string | NamedCell, width: number, right = false): string {
  const fitting = cut(typeof cell === 'string' ? cell : shortened(cell, width), width, 'middle')
  const blank = ' '.repeat(Math.max(0, width - stringWidth(fitting)))
  return right ? blank + fitting : fitting + blank
}

/** As wide as it may be, unless what is around the name is wider. */
function shortened([before, name, behind]: NamedCell, width: number): string {
  const room = width - stringWidth(before + behind)
  return before + cut(name, Math.max(1, room), 'middle') + behind
}

/** Somebody's text in at most so many columns. */
export function cut(text: string, width: number, position: 'middle' | 'end' = 'end'): string {
  // Of a text that is much too long only the ends are looked at.
  const near = text.length > 4 * width ? `${text.slice(0, 2 * width)}…${text.slice(-2 * width)}` : text
  const whole = printable(near)
  // A wide character at the edge may be one column too much.
  let room = Math.max(0, width)
  let fitting = cliTruncate(whole, room, { position })
  while (stringWidth(fitting) > width && room > 0) fitting = cliTruncate(whole, --room, { position })
  return fitting
}

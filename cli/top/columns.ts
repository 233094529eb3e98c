/**
 * Table rows with fixed columns: each cell is cut or padded to its width, and begins at a fixed column of the screen.
 * Terminals disagree about the width of some characters. With fixed columns, such a character spoils only its own cell.
 */
import ansiEscapes from 'ansi-escapes'
import cliTruncate from 'cli-truncate'
import stringWidth from 'string-width'
import type { NamedCell } from '../description.ts'
import { printable } from '../printable.ts'

export interface Column {
  readonly title: string
  /** The least width. Columns with a `share` divide the remaining width in proportion to their shares. */
  readonly width: number
  readonly share?: number
  readonly right?: boolean
}

export interface Laid extends Column {
  /** The screen column where the cell begins, counted from 0. */
  readonly at: number
}

const GAP = 1

/** Places columns side by side, starting with the first. Leaves out columns that do not fit in `width`. */
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

/** Renders one row of cells, which may contain untrusted text. */
export function row(columns: readonly Laid[], cells: readonly (string | NamedCell)[]): string {
  return columns
    .map((column, i) => ansiEscapes.cursorTo(column.at) + filled(cells[i] ?? '', column.width, column.right))
    .join(' '.repeat(GAP))
}

/**
 * Cuts or pads the cell to exactly `width` columns. Long text is cut in its middle, because names often differ at their
 * ends.
 */
function filled(cell: string | NamedCell, width: number, right = false): string {
  const fitting = cut(typeof cell === 'string' ? cell : shortened(cell, width), width, 'middle')
  const blank = ' '.repeat(Math.max(0, width - stringWidth(fitting)))
  return right ? blank + fitting : fitting + blank
}

/**
 * Shortens the name until the cell fits. The text around the name is never shortened, even if it is too wide on its
 * own.
 */
function shortened([before, name, behind]: NamedCell, width: number): string {
  const room = width - stringWidth(before + behind)
  return before + cut(name, Math.max(1, room), 'middle') + behind
}

/** Makes untrusted text printable, and cuts it to at most `width` columns. */
export function cut(text: string, width: number, position: 'middle' | 'end' = 'end'): string {
  // If a text is much too long, only its two ends are processed.
  const near = text.length > 4 * width ? `${text.slice(0, 2 * width)}…${text.slice(-2 * width)}` : text
  const whole = printable(near)
  // Truncation may leave one column too many if a wide character is at the edge.
  let room = Math.max(0, width)
  let fitting = cliTruncate(whole, room, { position })
  while (stringWidth(fitting) > width && room > 0) fitting = cliTruncate(whole, --room, { position })
  return fitting
}

/** Prints a table in columns, without ruled lines, like the output of `ps` and `ls`. */
import stringWidth from 'string-width'
import { printable } from './printable.ts'

/**
 * Makes each column as wide as its widest cell. The width is measured on the screen, where some characters are twice as
 * wide as others. A column whose title is in `optional` is left out if it has only empty cells.
 */
export function plainTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  optional: readonly string[] = [],
): string {
  const kept = head.map((title, i) => !optional.includes(title) || rows.some(row => row[i] !== ''))
  const lines = [head, ...rows].map(row => row.filter((_, i) => kept[i]).map(printable))
  const widths = lines[0]!.map((_, i) =>
    lines.reduce((widest, line) => Math.max(widest, stringWidth(line[i] ?? '')), 0),
  )
  const filled = (cell: string, i: number) => cell + ' '.repeat(widths[i]! - stringWidth(cell))
  return lines.map(line => line.map(filled).join('  ').trimEnd()).join('\n')
}

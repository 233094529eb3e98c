/** Prints a table in columns, without ruled lines, like the output of `ps` and `ls`. */
import stringWidth from 'string-width'
import { printable } from './printable.ts'

/**
 * Makes each column as wide as its widest cell. The width is measured on the screen, where some characters are twice as
 * wide as others.
 */
export function plainTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map(row => row.map(printable))
  const widths = head.map((_, i) => lines.reduce((widest, line) => Math.max(widest, stringWidth(line[i] ?? '')), 0))
  const filled = (cell: string, i: number) => cell + ' '.repeat(widths[i]! - stringWidth(cell))
  return lines.map(line => line.map(filled).join('  ').trimEnd()).join('\n')
}

/** Columns without lines: what `ps` and `ls` look like. */
import Table from 'cli-table3'

const nothing = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '', 'bottom-left': '' },
  ...{ 'bottom-right': '', left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' },
}

export function plainTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: [...head],
    chars: nothing,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  })
  // A key or a label is somebody else's text: what would move the cursor or hide a line is shown as what it is.
  table.push(...rows.map(row => row.map(printable)))
  return table
    .toString()
    .split('\n')
    .map(line => line.trimEnd())
    .join('\n')
}

/** The same text without control characters. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, character => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}

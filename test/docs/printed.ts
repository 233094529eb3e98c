/**
 * Compares the output that a page shows with the real output. What differs from run to run, such as a time, is ignored.
 */

/**
 * Returns whether the lines of `shown` appear one after another in `printed`. A number or time matches any other number
 * or time. A run of blanks matches a run of any length. `…` matches any text on its line; alone on a line, it matches
 * any number of lines.
 */
export function matches(shown: string, printed: string): boolean {
  const lines = shown.trimEnd().split('\n')
  const pattern = lines.map(line => (line.trim() === '…' ? '(?:.*\\n)*?' : `${patternOf(line)}\\n`)).join('')
  return new RegExp(`^${pattern}`, 'm').test(`${alike(printed)}\n`)
}

function patternOf(line: string): string {
  return line
    .split('…')
    .map(part => alike(part).replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .join('.*')
}

/** A number, or a time, which may have several parts, as in 1m 5s. */
const number = /\d+(?:[.,]\d+)*(?: ?(?:ns|µs|ms|[smhd])\b(?: \d+(?:\.\d+)?(?:ms|[smhd])\b)*)?/g

function alike(text: string): string {
  return text
    .split('\n')
    .map(line => line.replace(number, '#').replace(/[ ─]+/g, ' ').trimEnd())
    .join('\n')
}

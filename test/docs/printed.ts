/** Compares the output that a page shows with the real output, ignoring what differs from run to run. */

/**
 * Whether `shown` is a part of `printed`, in whole lines. Any number or time matches any other, and so does any run of
 * blanks. `…` matches anything on its line; alone on a line, it matches any lines.
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

/** A number, or a time, which may have several parts: 1m 5s. */
const number = /\d+(?:[.,]\d+)*(?: ?(?:ns|µs|ms|[smhd])\b(?: \d+(?:\.\d+)?(?:ms|[smhd])\b)*)?/g

function alike(text: string): string {
  return text
    .split('\n')
    .map(line => line.replace(number, '#').replace(/[ ─]+/g, ' ').trimEnd())
    .join('\n')
}

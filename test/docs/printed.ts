/** Compares the output that a page shows with the real output. Differences between runs are ignored. */

/**
 * Whether `shown` is a part of `printed`, in whole lines. Numbers and times match any others, and so do runs of blanks.
 * `…` matches any text on its line; alone on a line, it matches any number of lines.
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

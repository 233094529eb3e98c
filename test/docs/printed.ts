/** Compares what a page shows as printed with what was printed, but for what differs from run to run. */

/**
 * Whether `shown` is a part of `printed`, in whole lines. A number or a time is as good as any other, and so is a run of
 * blanks; `…` stands for anything on its line, and alone on a line for any lines.
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

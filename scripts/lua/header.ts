/** Parses the header of a file in lua/. */

/** A key or an argument. */
export interface Declared {
  readonly name: string
  /** Whether the value may be absent, which is nil in Lua. */
  readonly optional: boolean
  /** Whether the name stands for all remaining values of the list. */
  readonly rest: boolean
}

export interface Header {
  readonly keys: readonly Declared[]
  readonly args: readonly Declared[]
  /** The first word of each reply. */
  readonly replies: readonly string[]
  /** The value of each constant, by its name. */
  readonly constants: ReadonlyMap<string, string>
}

export function headerOf(source: string): Header {
  const lines = source
    .split('\n')
    .filter(line => line.startsWith('--'))
    .map(line => line.slice('-- '.length))
  return {
    keys: section(lines, 'KEYS').map(declared),
    args: section(lines, 'ARGV').map(declared),
    replies: section(lines, 'Replies').map(line => line.split(/\s/, 1)[0]!),
    constants: new Map(section(lines, 'Constants').map(constant)),
  }
}

function section(header: readonly string[], title: string): string[] {
  const start = header.indexOf(title) + 1
  if (start === 0) return []
  const end = header.findIndex((line, i) => i >= start && !line.startsWith('  '))
  return header.slice(start, end < 0 ? undefined : end).map(line => line.trim())
}

function declared(line: string): Declared {
  const [, name, mark] = /^(\w+)(\?|\.\.\.)?\s+\S/.exec(line) ?? []
  if (name === undefined) throw new Error(`cannot read "${line}"`)
  return { name, optional: mark === '?', rest: mark === '...' }
}

function constant(line: string): [name: string, value: string] {
  const [, name, value] = /^([A-Z][A-Z_]*) = ('[^']*'|-?\d+)\s+\S/.exec(line) ?? []
  if (name === undefined || value === undefined) throw new Error(`cannot read the constant "${line}"`)
  return [name, value]
}

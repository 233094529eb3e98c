/** Parses the header of a file in lua/. */

/** A key, an argument, or a name that an include takes, changes or gives. */
export interface Declared {
  readonly name: string
  /** Whether the value may be absent, which is nil in Lua. */
  readonly optional: boolean
  /** Whether the name stands for all remaining values of the list. */
  readonly rest: boolean
  /** The type of the value in Redis or in Lua, or its unit. */
  readonly type: string
}

export interface Header {
  readonly keys: readonly Declared[]
  readonly args: readonly Declared[]
  /** The first word of each reply. */
  readonly replies: readonly string[]
  takes: readonly Declared[]
  changes: readonly Declared[]
  readonly gives: readonly Declared[]
  /** The value of each constant, by its name. */
  readonly constants: ReadonlyMap<string, string>
}

/** Types of what an include takes, changes or gives. */
const types = new Set(['HASH', 'ZSET', 'ZSETs', 'string', 'number', 'boolean', 'list', 'ms', 'µs'])

/** Parses the header of a script, or of an include, which has no KEYS, ARGV or Replies. */
export function headerOf(source: string): Header {
  const lines = source
    .split('\n')
    .filter(line => line.startsWith('--'))
    .map(line => line.slice('-- '.length))
  const typed = (title: string) => section(lines, title).map(typedName)
  return {
    keys: section(lines, 'KEYS').map(declared),
    args: section(lines, 'ARGV').map(declared),
    replies: section(lines, 'Replies').map(line => line.split(/\s/, 1)[0]!),
    takes: typed('Takes'),
    changes: typed('Changes'),
    gives: typed('Gives'),
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
  const [, name, mark, type] = /^(\w+)(\?|\.\.\.)?\s+(\S+)/.exec(line) ?? []
  if (name === undefined || type === undefined) throw new Error(`cannot read "${line}"`)
  return { name, optional: mark === '?', rest: mark === '...', type }
}

function typedName(line: string): Declared {
  const known = declared(line)
  if (!types.has(known.type)) throw new Error(`"${known.name}" has no type or unit, but "${known.type}"`)
  if (!/^\S+\s+\S+\s+\S/.test(line)) throw new Error(`"${known.name}" is not explained`)
  return known
}

function constant(line: string): [name: string, value: string] {
  const [, name, value] = /^([A-Z][A-Z_]*) = ('[^']*'|-?\d+)\s+\S/.exec(line) ?? []
  if (name === undefined || value === undefined) throw new Error(`cannot read the constant "${line}"`)
  return [name, value]
}

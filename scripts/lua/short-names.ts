/**
 * Shortens the names in the files of lua/ for the texts that Redis receives. The names that are used most get one
 * letter.
 *
 * A name has the same short name in all texts, and no two names share one. So an include fits into every script that
 * includes it, and one table of names explains every error message.
 */
import luaparse from 'luaparse'
import type { Declared } from './header.ts'
import { type Identifier, offered, parsed, walk } from './names.ts'
import type { Inclusion, Source } from './source.ts'

const LETTERS = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_']
/** Lua's keywords with two letters. No short name has more letters, so the other keywords do not matter. */
const KEYWORDS = ['do', 'if', 'in', 'or']

/** Returns a short name for each name in the files. The names that are used most often come first. */
export function shortNames(sources: readonly Source[]): Map<string, string> {
  const uses = new Map<string, number>()
  for (const source of sources) {
    const { keys, args, gives } = source.header
    const bound = source.lines.flatMap(line => (typeof line === 'string' ? [] : [...line.bound.keys()]))
    const declared = [...[...keys, ...args, ...gives].map(({ name }) => name), ...bound]
    const locals = declared.map(name => ({ name, isLocal: true }))
    for (const { name, isLocal } of [...locals, ...variablesIn(source)]) {
      if (!offered.has(name)) uses.set(name, (uses.get(name) ?? 0) + 1)
      else if (isLocal) throw new Error(`${source.file}: "${name}" is a name that Redis offers`)
    }
  }
  const two = LETTERS.flatMap(first => LETTERS.map(second => first + second))
  const short = [...LETTERS, ...two].filter(name => !KEYWORDS.includes(name))
  const names = [...uses].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([name]) => name)
  if (names.length > short.length)
    throw new Error(`there are short names for ${short.length} names, not for ${names.length}`)
  return new Map(names.map((name, i) => [name, short[i]!]))
}

/** Returns the file as if it had been written with these names. */
export function renamed(source: Source, names: ReadonlyMap<string, string>): Source {
  const { header, lines } = source
  const declared = (list: readonly Declared[]) => list.map(each => ({ ...each, name: nameIn(names, each.name) }))
  const variables = variablesIn(source)
  return {
    ...source,
    header: {
      ...header,
      keys: declared(header.keys),
      args: declared(header.args),
      takes: declared(header.takes),
      changes: declared(header.changes),
      gives: declared(header.gives),
    },
    lines: lines.map((line, i) => {
      if (typeof line !== 'string') return renamedInclusion(line, names)
      const here = variables.filter(({ loc }) => loc.start.line === i + 1)
      return replaced(line, here, names)
    }),
  }
}

function renamedInclusion({ source, bound }: Inclusion, names: ReadonlyMap<string, string>): Inclusion {
  const given = [...bound].map(([name, value]): [string, string] => {
    const before = 'return '
    const tree = luaparse.parse(before + value, { luaVersion: '5.1', scope: true, locations: true })
    return [nameIn(names, name), replaced(before + value, variables(tree), names).slice(before.length)]
  })
  return { source: renamed(source, names), bound: new Map(given) }
}

/** Returns the line with these variables replaced by their short names. */
function replaced(line: string, variables: readonly Identifier[], names: ReadonlyMap<string, string>): string {
  let [text, end] = ['', 0]
  for (const { name, loc } of [...variables].sort((a, b) => a.loc.start.column - b.loc.start.column)) {
    text += line.slice(end, loc.start.column) + nameIn(names, name)
    end = loc.start.column + name.length
  }
  return text + line.slice(end)
}

function nameIn(names: ReadonlyMap<string, string>, name: string): string {
  return names.get(name) ?? name
}

/** Returns the variables in the file's own lines, including lines for a cluster, but not those of its includes. */
function variablesIn(source: Source): Identifier[] {
  return variables(parsed(source, true)).filter(({ loc }) => typeof source.lines[loc.start.line - 1] === 'string')
}

/** Returns the identifiers that are not fields. */
function variables(tree: luaparse.Chunk): Identifier[] {
  const found: Identifier[] = []
  walk(tree.body, identifier => {
    if (identifier.isLocal !== undefined) found.push(identifier)
  })
  return found
}

/**
 * Refuses a file of lua/ in two cases: the file reads or writes a name that it has neither made nor declared, or it
 * declares a name that it does not use. Each file is checked alone. For its includes, only their headers are read.
 */
import luaparse from 'luaparse'
import type { Declared } from './header.ts'
import { codeOf, type Inclusion, type Source } from './source.ts'

/**
 * The globals that Redis offers to every script, and the client's settings, which src/redis/scripts.ts inserts as
 * values.
 */
export const offered = new Set([
  ...['redis', 'math', 'string', 'tonumber', 'unpack', 'ipairs', 'error', 'table'],
  ...['INBOX', 'MEMORY'],
])

/** A use of a name that is not a local of the file. */
interface Use {
  readonly name: string
  readonly written: boolean
  /** The include that takes or changes the name; undefined if the file itself uses the name. */
  readonly by: Source | undefined
}

export function checkNames(source: Source): void {
  const { takes, changes, gives, keys, args } = source.header
  const fail = (problem: string) => {
    throw new Error(`${source.file}: ${problem}`)
  }
  for (const line of source.lines) if (typeof line !== 'string') checkBound(line, source, fail)

  const readable = names([...takes, ...changes, ...gives, ...keys, ...args])
  const writable = names([...changes, ...gives])
  const uses = [true, false].flatMap(cluster => usesIn(source, cluster))
  for (const { name, written, by } of uses) {
    if ((written ? writable : readable).has(name) || (!written && offered.has(name))) continue
    if (name === 'KEYS' || name === 'ARGV') fail('KEYS and ARGV are read through the names of the header')
    const does = written ? 'changes' : 'takes'
    if (by) fail(`its include "${by.name}" ${does} "${name}", which is neither made here nor declared`)
    if (!source.isInclude && !readable.has(name)) fail(`"${name}" is a global`)
    if (written) fail(`writes "${name}", which it neither changes nor gives`)
    fail(`reads "${name}", which it does not take`)
  }

  const [read, written] = [false, true].map(w => names(uses.filter(use => use.written === w)))
  for (const { name, optional } of [...keys, ...args])
    if (!read!.has(name) && !(optional && keys.some(key => key.name === name)))
      fail(`the header's "${name}" is not used`)
  for (const { name } of takes) if (!read!.has(name)) fail(`takes "${name}" and does not read it`)
  for (const { name } of changes) if (!written!.has(name)) fail(`changes "${name}" and does not write it`)
  for (const { name } of gives) if (!written!.has(name)) fail(`gives "${name}" and does not write it`)
}

/** Checks that a name has the same type everywhere. */
export function checkAgreement(sources: readonly Source[]): void {
  const types = new Map<string, Declared>()
  for (const { file, header } of sources) {
    for (const each of [...header.takes, ...header.changes, ...header.gives]) {
      const known = types.get(each.name)
      if (known && known.type !== each.type) {
        throw new Error(`${file}: "${each.name}" is ${each.type} here and ${known.type} elsewhere`)
      }
      types.set(each.name, each)
    }
  }
}

/**
 * Complains about names that the include gives, but that none of its includers among `sources` reads. The caller ignores
 * these complaints if another kind's includers read the names.
 */
export function unreadOf({ file, name, header }: Source, sources: readonly Source[]): string[] {
  const includers = sources.filter(({ lines }) => lines.some(it => typeof it !== 'string' && it.source.name === name))
  return header.gives
    .filter(given => !includers.some(by => readsAnywhere(by).has(given.name) || names(by.header.gives).has(given.name)))
    .map(given => `${file}: nobody reads "${given.name}", which it gives`)
}

/**
 * Returns the names that the include gives and that are not yet variables of the includer. Names that the includer
 * itself gives or changes are its variables already.
 */
export function newNames({ source }: Inclusion, includer: Source): string[] {
  const known = names([...includer.header.changes, ...includer.header.gives])
  return source.header.gives.map(({ name }) => name).filter(name => !known.has(name))
}

export function hasLocals(source: Source): boolean {
  return parsed(source, true).body.some(({ type }) => type === 'LocalStatement' || type === 'FunctionDeclaration')
}

/** Returns the names that the first statement of the file assigns. */
export function firstAssigned(source: Source): string[] {
  const [first] = parsed(source, false).body
  if (first?.type !== 'AssignmentStatement') return []
  return first.variables.map(variable => (variable.type === 'Identifier' ? variable.name : ''))
}

function checkBound({ source, bound }: Inclusion, includer: Source, fail: (problem: string) => void): void {
  const { header } = includer
  for (const [name, value] of bound) {
    const taken = source.header.takes.find(each => each.name === name)
    if (!taken) fail(`binds "${name}" for its include "${source.name}", which does not take it`)
    else if (value === 'nil' && !taken.optional) fail(`its include "${source.name}" has to have "${name}"`)
  }
  for (const { name } of source.header.gives) {
    // The names that the include gives are declared before the bound expressions are evaluated. So an expression with
    // such a name would read the new variable, and not the includer's variable of the same name.
    if ([...bound.values()].some(value => new RegExp(`\\b${name}\\b`).test(value)))
      fail(`its include "${source.name}" is given "${name}", which it gives itself`)
  }
  for (const taken of source.header.takes) {
    const own = [...header.keys, ...header.args].find(each => each.name === taken.name)
    if (!own || bound.has(taken.name) || own.type === taken.type) continue
    fail(`its include "${source.name}" takes ${taken.type} as "${taken.name}", which is ${own.type} here`)
  }
}

/**
 * Parses the code of a file without the code of its includes. Each line of code stays one line, and one line stands for
 * each include.
 */
export function parsed(source: Source, cluster: boolean): luaparse.Chunk {
  const text = codeOf(source.lines, cluster, inclusion => interfaceOf(inclusion, source))
  return luaparse.parse(text, { luaVersion: '5.1', scope: true, locations: true })
}

/**
 * Returns one line of Lua that stands for an include. The line reads and assigns the same variables of the includer as
 * the include does.
 */
function interfaceOf(inclusion: Inclusion, includer: Source): string {
  const { bound } = inclusion
  const { takes, changes, gives } = inclusion.source.header
  const read = [...bound.values(), ...takes.flatMap(({ name }) => (bound.has(name) ? [] : [name]))]
  const made = newNames(inclusion, includer)
  const written = [...changes, ...gives].map(({ name }) => name).filter(name => !made.includes(name))
  return [
    ...(read.length > 0 ? [`do local _ = ${read.join(', ')} end`] : []),
    ...written.map(name => `${name} = ${name}`),
    ...(made.length > 0 ? [`local ${made.join(', ')}`] : []),
  ].join(' ')
}

function usesIn(source: Source, cluster: boolean): Use[] {
  const includes = linesOf(source, cluster)
  const uses: Use[] = []
  walk(parsed(source, cluster), (identifier, written) => {
    if (identifier.isLocal !== false) return
    const by = includes.get(identifier.loc.start.line)?.source
    uses.push({ name: identifier.name, written, by })
  })
  return uses
}

/** Returns the names that the file reads, including locals. */
export function readsAnywhere(source: Source): Set<string> {
  const read = new Set<string>()
  walk(parsed(source, true), (identifier, written) => {
    if (!written && identifier.isLocal !== undefined) read.add(identifier.name)
  })
  return read
}

/** Returns the names that the file reads, and those that it writes, without its own locals. */
export function usedNames(source: Source): { readonly read: Set<string>; readonly written: Set<string> } {
  const uses = [true, false].flatMap(cluster => usesIn(source, cluster))
  return { read: names(uses.filter(use => !use.written)), written: names(uses.filter(use => use.written)) }
}

/** Finds the lines that stand for includes in the text that `parsed` makes. Returns the include of each line number. */
function linesOf(source: Source, cluster: boolean): Map<number, Inclusion> {
  const found: Inclusion[] = []
  const text = codeOf(source.lines, cluster, inclusion => `include ${found.push(inclusion)}`)
  const lines = text.split('\n').flatMap((line, i): [number, Inclusion][] => {
    const [, number] = /^include (\d+)$/.exec(line) ?? []
    return number === undefined ? [] : [[i + 1, found[Number(number) - 1]!]]
  })
  return new Map(lines)
}

export interface Identifier {
  readonly name: string
  /** Whether the identifier is a local variable; undefined if it is a field. */
  readonly isLocal?: boolean
  readonly loc: { readonly start: { readonly line: number; readonly column: number } }
}

export function walk(node: unknown, visit: (identifier: Identifier, written: boolean) => void, written = false): void {
  if (Array.isArray(node)) {
    for (const item of node) walk(item, visit, written)
  } else if (node && typeof node === 'object') {
    const it = node as Record<string, unknown>
    if (it['type'] === 'Identifier') visit(it as unknown as Identifier, written)
    const assigns = it['type'] === 'AssignmentStatement' || it['type'] === 'LocalStatement'
    for (const [part, value] of Object.entries(it)) walk(value, visit, assigns && part === 'variables')
  }
}

function names(list: readonly { readonly name: string }[]): Set<string> {
  return new Set(list.map(({ name }) => name))
}

/** Joins the scripts of lua/ with the functions that they use: scripts/build-lua.ts describes how. */
import { checkScript } from './check.ts'
import type { Declared, Header } from './header.ts'
import { renamed, shortNames } from './short-names.ts'
import {
  codeOf,
  type File,
  filesIn,
  functionsOf,
  marker,
  outsideStrings,
  reading,
  refuseHidden,
  refuseUnused,
  told,
  type Unit,
} from './source.ts'

export interface Script extends Unit {
  readonly header: Header
}

/** One compiled script of one kind of lock. The first part of its text gives values to the names of the header. */
export interface Compiled {
  readonly name: string
  readonly keys: readonly Declared[]
  readonly args: readonly Declared[]
  readonly replies: readonly string[]
  readonly head: string
  readonly body: readonly Piece[]
}

/** A line of code, or a function that stands there, which may contain others. */
export type Piece = string | { readonly name: string; readonly body: readonly Piece[] }

/** Kinds of lock that share a folder of scripts may lack some of the keys in the headers. */
export type Kinds = Readonly<Record<string, { readonly folder: string; readonly lacks: readonly string[] }>>

export const KINDS: Kinds = {
  mutex: { folder: 'mutex', lacks: [] },
  semaphore: { folder: 'permits', lacks: ['readers'] },
  readWrite: { folder: 'permits', lacks: ['waiting', 'turns', 'shares'] },
}

type Names = ReadonlyMap<string, string>
type NamesFor = (units: readonly Unit[]) => Names

/** Compiles the scripts of each kind. `namesFor` returns what the names in the files become. */
export function compiledFrom(root: URL, namesFor: NamesFor = shortNames, kinds = KINDS) {
  const folders = [...new Set(Object.values(kinds).map(({ folder }) => folder))]
  const [shared, ...own] = ['', ...folders].map(folder => filesIn(root, folder)) as [File[], ...File[][]]
  const constants = new Map([...shared, ...own.flat()].flatMap(({ header }) => [...header.constants]))
  const functions = shared.flatMap(file => functionsOf(file, constants))
  const scripts = own.map(files => files.map((file): Script => ({ ...file, lines: codeOf(file, constants) })))
  const every = [...functions, ...scripts.flat()]
  for (const unit of every) refuseHidden(unit, functions)
  refuseUnused(every, functions, constants, [...shared, ...own.flat()])
  const telling = Object.values(kinds).flatMap(({ lacks }) => lacks)
  const names = namesFor(every)
  const versions = [new Map<string, string>(), names].map(names => {
    const library = new Map(functions.map(each => renamedUnit(each, names)).map(each => [each.name, each]))
    return (script: Script, lacks: readonly string[]) =>
      compile({ ...renamedUnit(script, names), name: script.name }, library, names, lacks, telling)
  })
  const compiled = new Map(
    Object.entries(kinds).map(([kind, { folder, lacks }]) => [
      kind,
      scripts[folders.indexOf(folder)]!.map(script => {
        const [named, short] = versions.map(version => version(script, lacks))
        checkScript(script.file, named!.head, textOf(named!), script.header, lacks)
        return short!
      }),
    ]),
  )
  return { compiled, names }
}

function renamedUnit<T extends Unit>(unit: T, names: Names): T {
  const lines = told(unit.file, () => renamed(unit.lines, names))
  return { ...unit, name: names.get(unit.name) ?? unit.name, lines }
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

/** Returns the line behind the block in which this line is. Line -1 is before all code. */
function endOfBlock(lines: readonly string[], at: number): number {
  const end = at < 0 ? -1 : lines.findIndex((line, i) => i > at && indentOf(line) < indentOf(lines[at]!))
  return end < 0 ? lines.length : end
}

type Library = ReadonlyMap<string, Unit>

/**
 * `lacks`: the keys that this kind does not have. `telling`: those that some kind does not have, so scripts tell the kinds
 * apart by them. In a cluster, such a key is left out while its slot moves, and then it is '' instead of nil.
 */
function compile(
  script: Script,
  library: Library,
  names: Names,
  lacks: readonly string[],
  telling: readonly string[],
): Compiled {
  const { keys: every, args, replies } = script.header
  const keys = every.filter(key => !lacks.includes(key.name))
  const short = (list: readonly Declared[]) => list.map(each => ({ ...each, name: names.get(each.name) ?? each.name }))
  const absent = short(every.filter(key => lacks.includes(key.name))).map(key => key.name)
  const tells = short(keys.filter(key => telling.includes(key.name))).map(key => key.name)
  const head = [
    ...preamble('KEYS', short(keys)),
    ...(tells.length > 0 ? ['--[[cluster', ...tells.map(name => `${name} = ${name} or ''`), '--]]'] : []),
    ...(absent.length > 0 ? [`local ${absent.join(', ')}`] : []),
    ...preamble('ARGV', short(args)),
  ]
  const { name, lines } = script
  return { name, keys, args, replies, head: head.join('\n'), body: withFunctions(lines, library, new Set()) }
}

/**
 * Replaces each marker by the functions that are used behind it, up to the end of its block. A block with a marker of
 * its own has those that only it uses. `above`: those that are there already.
 */
function withFunctions(lines: readonly string[], library: Library, above: ReadonlySet<string>): Piece[] {
  const visible: { readonly indent: number; readonly names: readonly string[] }[] = []
  return lines.flatMap((line, i): Piece[] => {
    while (visible.length > 0 && indentOf(line) < visible.at(-1)!.indent) visible.pop()
    if (!marker.test(line)) return [line]
    const seen = new Set([...above, ...visible.flatMap(({ names }) => names)])
    const units = [...wanted(lines, i, library, seen)]
    visible.push({ indent: indentOf(line), names: units.map(({ name }) => name) })
    return units.map(({ name, lines }) => {
      const used = [...wanted(lines, -1, library, new Set([name]))].map(each => each.name)
      return { name, body: withFunctions(lines, library, new Set([name, ...used])) }
    })
  })
}

/** Returns the functions that a block uses from this line on, each behind those that it uses itself. */
function wanted(lines: readonly string[], from: number, library: Library, seen: Set<string>): Set<Unit> {
  const found = new Set<Unit>()
  const end = endOfBlock(lines, from)
  for (let i = from + 1; i < end; i++) {
    if (marker.test(lines[i]!)) {
      i = endOfBlock(lines, i) - 1
      continue
    }
    outsideStrings(lines[i]!, part => {
      for (const [name] of part.matchAll(reading)) {
        const unit = library.get(name)
        if (!unit || seen.has(name)) continue
        seen.add(name)
        for (const each of wanted(unit.lines, -1, library, seen)) found.add(each)
        found.add(unit)
      }
      return part
    })
  }
  return found
}

function preamble(table: 'KEYS' | 'ARGV', list: readonly Declared[]): string[] {
  const fixed = list.filter(each => !each.rest)
  const lines = fixed.length
    ? [`local ${fixed.map(each => each.name).join(', ')} = ${fixed.map((_, i) => `${table}[${i + 1}]`).join(', ')}`]
    : []
  const rest = list.find(each => each.rest)
  if (!rest) return lines
  if (fixed.length === 0) return [`local ${rest.name} = ${table}`]
  return [
    ...lines,
    `local ${rest.name} = {}`,
    `for i = ${fixed.length + 1}, #${table} do ${rest.name}[i - ${fixed.length}] = ${table}[i] end`,
  ]
}

/** Returns the whole text of a script. */
export function textOf({ head, body }: Pick<Compiled, 'head' | 'body'>): string {
  return [head, ...body.map(whole)].filter(Boolean).join('\n')
}

function whole(piece: Piece): string {
  return typeof piece === 'string' ? piece : piece.body.map(whole).join('\n')
}

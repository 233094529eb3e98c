/** Joins the scripts of lua/ with the functions that they use: scripts/build-lua.ts describes how. */
import { check } from './check.ts'
import { type Names, renamed, shortNames } from './short-names.ts'
import { type Declared, marker, outsideStrings, unitsOf } from './source.ts'

/** Kinds of lock that share a folder of scripts may lack some of the keys in the headers. */
export type Kinds = Readonly<Record<string, { readonly folder: string; readonly lacks: readonly string[] }>>

export const KINDS: Kinds = {
  mutex: { folder: 'mutex', lacks: [] },
  semaphore: { folder: 'permits', lacks: ['readers'] },
  readWrite: { folder: 'permits', lacks: ['waiting', 'turns', 'shares'] },
}

/**
 * The parts of the texts. In them, a line `--@a b` stands for the functions of these names, and `--@KEYS` for the head of the
 * kind, which gives values to the names of its keys.
 */
export interface Parts {
  /** What the names in the files have become. */
  readonly names: Names
  readonly heads: Record<string, string>
  readonly functions: Record<string, string>
  /** By folder and script. */
  readonly bodies: Record<string, Record<string, string>>
}

/** `namesFor` returns what the names in the files become. */
export function partsOf(root: URL, namesFor = shortNames, kinds = KINDS): Parts {
  const folders = [...new Set(Object.values(kinds).map(({ folder }) => folder))]
  const { functions, scripts } = unitsOf(root, folders)
  const every = [...functions, ...scripts.flat()]
  const known = new Set(functions.map(({ name }) => name))
  for (const unit of every) check(unit, known)
  const names = namesFor(every)
  const short = (name: string) => names.get(name) ?? name
  const library: Library = new Map(functions.map(({ name, lines }) => [short(name), renamed(lines, names)]))
  const used = new Set<string>()
  const textOf = (lines: readonly string[], above: readonly string[]) =>
    placed(lines, library, above, used).map(compact).join('\n')
  const texts = [...library].map(([name, lines]): [string, string] => {
    return [name, textOf(lines, [name, ...wanted(lines, -1, library, new Set([name]))])]
  })
  const bodies = scripts.map(each =>
    each.map(({ name, keys, args, lines }): [string, string] => {
      const head = keys[0]?.mark === '...' ? valuesOf('KEYS', keys, short) : ['--@KEYS']
      return [camel(name), [...head, ...valuesOf('ARGV', args, short), textOf(renamed(lines, names), [])].join('\n')]
    }),
  )
  for (const { file, name } of functions) if (!used.has(short(name))) throw new Error(`${file}: nobody uses "${name}"`)
  const telling = Object.values(kinds).flatMap(({ lacks }) => lacks)
  const heads = Object.entries(kinds).map(([kind, { folder, lacks }]): [string, string] => {
    const { keys } = scripts[folders.indexOf(folder)]![0]!
    const absent = keys.filter(({ name }) => lacks.includes(name)).map(({ name }) => short(name))
    const given = keys.filter(({ name }) => !lacks.includes(name))
    const lines = valuesOf('KEYS', given, short, telling)
    return [kind, [...lines, ...(absent.length > 0 ? [`local ${absent}`] : [])].join('\n')]
  })
  return {
    names,
    heads: Object.fromEntries(heads),
    functions: Object.fromEntries(texts),
    bodies: Object.fromEntries(folders.map((folder, i) => [folder, Object.fromEntries(bodies[i]!)])),
  }
}

/** The lines of the functions by their names. */
type Library = ReadonlyMap<string, readonly string[]>

/**
 * Replaces each marker by the names of the functions that are used behind it, up to the end of its block. A block with a
 * marker of its own has those that only it uses. `above`: those that are there already. Adds the names to `used`.
 */
function placed(
  lines: readonly string[],
  library: Library,
  above: readonly string[],
  used: Set<string>,
): readonly string[] {
  const visible = [{ indent: -1, names: above }]
  return lines.flatMap((line, i) => {
    while (indentOf(line) < visible.at(-1)!.indent) visible.pop()
    if (!marker.test(line)) return [line]
    const names = wanted(lines, i, library, new Set(visible.flatMap(({ names }) => names)))
    for (const name of names) used.add(name)
    visible.push({ indent: indentOf(line), names })
    return names.length > 0 ? [`--@${names.join(' ')}`] : []
  })
}

/** Returns the functions that a block uses from this line on, each behind those that it uses itself. */
function wanted(lines: readonly string[], from: number, library: Library, seen: Set<string>): string[] {
  const found: string[] = []
  const end = endOfBlock(lines, from)
  for (let i = from + 1; i < end; i++) {
    if (marker.test(lines[i]!)) i = endOfBlock(lines, i) - 1
    else
      outsideStrings(lines[i]!, part => {
        for (const [name] of part.matchAll(/(?<![.:\w])[A-Za-z_]\w*/g)) {
          const code = library.get(name)
          if (!code || seen.has(name)) continue
          seen.add(name)
          found.push(...wanted(code, -1, library, seen), name)
        }
        return part
      })
  }
  return found
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

/** Returns the line behind the block in which this line is. Line -1 is before all code. */
function endOfBlock(lines: readonly string[], at: number): number {
  const end = at < 0 ? -1 : lines.findIndex((line, i) => i > at && indentOf(line) < indentOf(lines[at]!))
  return end < 0 ? lines.length : end
}

/**
 * Returns the lines that give the values of a table to these names. `telling`: the keys that some kind does not have, by
 * which scripts tell the kinds apart. While a slot moves, such a key is left out, and then it is '' instead of nil.
 */
function valuesOf(
  table: 'KEYS' | 'ARGV',
  list: readonly Declared[],
  short: (name: string) => string,
  telling: readonly string[] = [],
): string[] {
  const fixed = list.filter(({ mark }) => mark !== '...')
  const rest = list.slice(fixed.length).map(({ name }) => short(name))
  const read = fixed.map(({ name }, i) => `${table}[${i + 1}]${telling.includes(name) ? "or''" : ''}`)
  const count = fixed.length
  if (count === 0) return rest.map(name => `local ${name}=${table}`)
  return [
    `local ${fixed.map(({ name }) => short(name))}=${read}`,
    ...rest.map(name => `local ${name}={}for i=${count + 1},#${table} do ${name}[i-${count}]=${table}[i]end`),
  ]
}

/** Removes the indentation, and spaces that Lua does not need. */
function compact(line: string): string {
  const code = line.trim()
  if (code.startsWith('--')) return code
  return outsideStrings(code, part => part.replace(/ *([^\w\s]) */g, '$1').replace(/(\d)\.\./g, '$1 ..'))
}

export function camel(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** Returns the TypeScript module with the parts. */
export function moduleOf(root: URL): string {
  const { names, ...parts } = partsOf(root)
  return [
    '// Generated by scripts/build-lua.ts from lua/. Do not edit.',
    '',
    '// What the names in the texts stand for:',
    ...[...names].map(([name, short]) => `//   ${short}  ${name}`),
    '',
    ...Object.entries(parts).map(([name, part]) => `export const ${name} = ${JSON.stringify(part, null, 2)}`),
    '',
  ].join('\n')
}

/** Compiles the scripts: scripts/build-lua.ts describes how. */
import { readdirSync } from 'node:fs'
import luaparse from 'luaparse'
import type { Declared, Header } from './header.ts'
import { checkKeys } from './keys.ts'
import {
  checkAgreement,
  checkNames,
  firstAssigned,
  hasLocals,
  newNames,
  readsAnywhere,
  unreadOf,
  usedNames,
} from './names.ts'
import { renamed, shortNames } from './short-names.ts'
import { type Inclusion, outsideStrings, type Source, Sources } from './source.ts'

function preamble(table: 'KEYS' | 'ARGV', list: readonly Declared[]): string[] {
  const fixed = list.filter(p => !p.rest)
  const lines = fixed.length
    ? [`local ${fixed.map(p => p.name).join(', ')} = ${fixed.map((_, i) => `${table}[${i + 1}]`).join(', ')}`]
    : []
  const rest = list.find(p => p.rest)
  if (!rest) return lines
  if (fixed.length === 0) return [...lines, `local ${rest.name} = ${table}`]
  return [
    ...lines,
    `local ${rest.name} = {}`,
    `for i = ${fixed.length + 1}, #${table} do ${rest.name}[i - ${fixed.length}] = ${table}[i] end`,
  ]
}

type Piece = string | Source

function pieces(source: Source): Piece[] {
  return source.lines.flatMap(line => (typeof line === 'string' ? [line] : placed(line, source)))
}

/**
 * Returns the code that replaces the line of an include. The names that the include gives become locals of the
 * includer. The include's other names stay private.
 */
function placed(inclusion: Inclusion, includer: Source): Piece[] {
  const { source, bound } = inclusion
  const made = newNames(inclusion, includer)
  const scoped = bound.size > 0 || hasLocals(source)
  const first = new Set(firstAssigned(source))
  const atOnce = !scoped && made.length > 0 && made.length === first.size && made.every(name => first.has(name))
  if (atOnce) return ['local', source]
  return [
    ...(made.length > 0 ? [`local ${made.join(', ')}`] : []),
    ...(scoped ? ['do'] : []),
    ...(bound.size > 0 ? [`local ${[...bound.keys()].join(', ')} = ${[...bound.values()].join(', ')}`] : []),
    source,
    ...(scoped ? ['end'] : []),
  ]
}

function whole(list: readonly Piece[]): string {
  return list.map(piece => (typeof piece === 'string' ? piece : whole(pieces(piece)))).join('\n')
}

/** Returns the code as a TypeScript expression: string literals, and one constant for each include. */
function expression(list: readonly Piece[]): string {
  const parts: string[] = []
  let run: string[] = []
  for (const piece of [...list, undefined]) {
    if (typeof piece === 'string') {
      run.push(piece)
      continue
    }
    if (run.length > 0) parts.push(JSON.stringify(run.map(short).join('\n')))
    run = []
    if (piece) parts.push(constant(piece))
  }
  return parts.join(" + '\\n' + ") || "''"
}

/** Removes spaces that Lua does not need. */
function short(code: string): string {
  if (code.startsWith('--')) return code
  return outsideStrings(code, part => part.replace(/ *([^\w\s]) */g, '$1').replace(/(\d)\.\./g, '$1 ..'))
}

/**
 * Collects the first words of all texts that may begin a reply: each returned text, and the first text of each table.
 * Functions in the script are left out.
 */
function replyWords(node: unknown, words = new Set<string>()): Set<string> {
  if (Array.isArray(node)) {
    for (const item of node) replyWords(item, words)
  } else if (node && typeof node === 'object') {
    const it = node as Record<string, unknown> & { type?: string }
    if (it.type === 'FunctionDeclaration') return words
    if (it.type === 'TableConstructorExpression') {
      const first = (it['fields'] as { value?: Record<string, unknown> }[])[0]?.value
      for (const word of literals(first)) words.add(word)
    } else if (it.type === 'ReturnStatement') {
      for (const text of it['arguments'] as Record<string, unknown>[])
        for (const word of literals(text)) words.add(word)
    }
    for (const value of Object.values(it)) replyWords(value, words)
  }
  return words
}

/** The value of an expression may begin with one of several string literals. Returns the first word of each. */
function literals(node: Record<string, unknown> | undefined): string[] {
  if (node?.['type'] === 'StringLiteral') return [String(node['raw']).slice(1, -1).split(' ', 1)[0]!]
  if (node?.['type'] === 'BinaryExpression') return literals(node['left'] as Record<string, unknown>)
  if (node?.['type'] === 'LogicalExpression') {
    const sides = [node['left'], node['right']] as Record<string, unknown>[]
    return sides.flatMap(literals)
  }
  return []
}

/** Returns the keys of the header that this kind of lock has: kinds that share a script may have different keys. */
function keysOf(script: Source): Declared[] {
  const used = readsAnywhere(script)
  return script.header.keys.filter(({ name }) => used.has(name))
}

/** Returns the script's replies, and those of its includes. */
function repliesOf({ header, lines }: Source): string[] {
  const included = lines.flatMap(line => (typeof line === 'string' ? [] : repliesOf(line.source)))
  return [...new Set([...header.replies, ...included])]
}

function camel(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

function constant({ name }: Source): string {
  return `${camel(name)}Part`
}

/**
 * Compiles a script, in which names may have been shortened. The second parameter is the header with the original
 * names.
 */
function compile(script: Source, { keys: every, args }: Header) {
  const { file, name, header } = script
  const replies = repliesOf(script)
  const code = pieces(script)
  const own = keysOf(script)
  const keys = every.filter((_, i) => own.includes(header.keys[i]!))
  const list = [...preamble('KEYS', own), ...preamble('ARGV', header.args), ...code]
  const tree = luaparse.parse(whole(list), { luaVersion: '5.1' })
  const text = whole(code)

  const fail = (problem: string) => {
    throw new Error(`${file}: ${problem}`)
  }
  const known = new Set(replies)
  for (const word of replyWords(tree.body))
    if (!known.has(word)) fail(`replies "${word}", which the header does not list`)
  for (const word of replies)
    if (!text.includes(`'${word}'`) && !text.includes(`'${word} `)) fail(`the header's reply "${word}" is never given`)
  return { name, list, keys, args, replies }
}

/**
 * Returns the TypeScript modules of the scripts in this folder, by their kinds. Throws if a file contradicts its
 * header. `namesFor` maps the names in the files to the names in the texts that Redis receives.
 */
export function modulesOf(root: URL, namesFor = shortNames): Map<string, string> {
  const kinds = foldersIn(root).flatMap(folder => {
    if (folder === 'shared') return []
    const variants = variantsIn(folder, root)
    return variants.length > 0 ? variants : [folder]
  })
  const sources = kinds.map(kind => new Sources(root, kind))
  refuseCommon(sources.map(({ unused }) => unused))
  const untaken = new Map(
    sources.map(({ includes, scripts }) => {
      const all = [...includes, ...scripts]
      return [includes, includes.flatMap(include => leaveOut(include, all))]
    }),
  )
  const modules = new Map(kinds.map((kind, i) => [kind, moduleOf(sources[i]!, namesFor)]))
  for (const { file } of sources.flatMap(({ includes, scripts }) => [...includes, ...scripts])) {
    refuseCommon(
      sources.flatMap(({ scripts, includes }) => {
        const include = includes.find(each => each.file === file)
        const about = untaken.get(includes)!.filter(problem => problem.startsWith(`${file}:`))
        if (include) return [[...unreadOf(include, [...scripts, ...includes]), ...about]]
        const script = scripts.find(each => each.file === file)
        const unused = script?.header.keys.filter(key => !keysOf(script).includes(key))
        return unused ? [unused.map(({ name }) => `${file}: the header's "${name}" is not used`)] : []
      }),
    )
  }
  return modules
}

/** Returns the folders inside the folder of a kind's scripts, and the folders inside these. */
function variantsIn(folder: string, root: URL): string[] {
  const inside = foldersIn(new URL(`${folder}/`, root)).map(name => `${folder}/${name}`)
  return inside.flatMap(path => [path, ...variantsIn(path, root)])
}

/**
 * Leaves out the names that an include takes or changes only for another kind of lock, because the includes that use them
 * differ between the kinds. Such a name is optional. Returns a complaint for each of them. `include` comes after the
 * includes that it uses itself.
 */
function leaveOut(include: Source, all: readonly Source[]): string[] {
  const { header, file } = include
  const { read, written } = usedNames(include)
  const unread = header.takes.filter(({ name, optional }) => optional && !read.has(name))
  const unwritten = header.changes.filter(({ name, optional }) => optional && !read.has(name) && !written.has(name))
  header.takes = header.takes.filter(each => !unread.includes(each))
  header.changes = header.changes.filter(each => !unwritten.includes(each))
  for (const line of all.flatMap(({ lines }) => lines)) {
    if (typeof line !== 'string' && line.source === include) for (const { name } of unread) line.bound.delete(name)
  }
  return [
    ...unread.map(({ name }) => `${file}: takes "${name}" and does not read it`),
    ...unwritten.map(({ name }) => `${file}: changes "${name}" and does not write it`),
  ]
}

function foldersIn(root: URL): string[] {
  return readdirSync(root, { withFileTypes: true }).flatMap(entry => (entry.isDirectory() ? [entry.name] : []))
}

/** Refuses a declaration of a shared file if no kind uses the declaration. */
function refuseCommon(problems: readonly (readonly string[])[]): void {
  const common = problems[0]?.find(problem => problems.every(each => each.includes(problem)))
  if (common !== undefined) throw new Error(common)
}

function moduleOf({ scripts, includes }: Sources, namesFor: typeof shortNames): string {
  // Includes come first, so that a wrong declaration is reported for the include and not for its includers.
  for (const source of [...includes, ...scripts]) {
    checkNames(source)
    checkKeys(source)
  }
  checkAgreement([...scripts, ...includes])
  const names = namesFor([...scripts, ...includes])
  const compiled = scripts.map(script => compile(renamed(script, names), script.header))
  return [
    '// Generated by scripts/build-lua.ts from lua/. Do not edit.',
    '',
    '// What the names in the texts stand for:',
    ...[...names].map(([name, short]) => `//   ${short}  ${name}`),
    '',
    ...includes.map(each => `const ${constant(each)} = ${expression(pieces(renamed(each, names)))}`),
    '',
    '/** The first words of their replies. The library needs but their types. */',
    'export const replies = {',
    ...compiled.map(({ name, replies }) => `  ${camel(name)}: ${quoted(replies)},`),
    '} as const',
    '',
    'const texts = {',
    ...compiled.map(entry),
    '} as const',
    '',
    'type Texts = typeof texts',
    'export const scripts: { readonly [N in keyof Texts]: Texts[N] & { readonly replies?: (typeof replies)[N] } } = texts',
    '',
  ].join('\n')
}

function entry({ name, keys, args, list }: ReturnType<typeof compile>): string {
  return [
    `  ${camel(name)}: {`,
    `    keys: ${quoted(keys.map(key => key.name))},`,
    `    least: ${keys.filter(key => !key.optional && !key.rest).length},`,
    `    args: ${quoted(args.map(arg => arg.name))},`,
    `    lua: ${expression(list)},`,
    '  },',
  ].join('\n')
}

function quoted(words: readonly string[]): string {
  return `[${words.map(word => `'${word}'`).join(', ')}]`
}

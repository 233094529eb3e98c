/**
 * Turns lua/*.lua into src/redis/scripts.generated.ts.
 *
 * The header of a script is its interface and the only place where the order of KEYS and ARGV is written: the names in
 * it become the locals of the body (a preamble is generated) and the parameters of the TypeScript caller. So header,
 * body and caller cannot disagree about positions; what could still be wrong is checked here, on the syntax tree:
 *   - every name of the header is used, and nothing is a global that Redis does not offer;
 *   - KEYS and ARGV are not touched by hand;
 *   - the first words of the replies, arrays or texts, are those that the header lists.
 *
 * What stands between `--[[cluster` and `--]]` is a comment to a single server; src/redis/scripts.ts opens it for a cluster.
 * `-- include: name` inserts lua/include/name.lua in place; it is written once, and joined when it is loaded. A trailing `?` marks an argument that may be absent, a
 * trailing `...` the rest of the list. Comments and indentation are left out of what Redis is sent.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import luaparse from 'luaparse'

const root = new URL('../lua/', import.meta.url)
const target = new URL('../src/redis/scripts.generated.ts', import.meta.url)
const offered = new Set(['redis', 'math', 'string', 'tonumber', 'unpack', 'ipairs', 'error', 'KEYS', 'ARGV'])

interface Parameter {
  name: string
  optional: boolean
  rest: boolean
}

function section(header: string[], title: string): string[] {
  const start = header.indexOf(title)
  if (start < 0) return []
  const lines: string[] = []
  for (const line of header.slice(start + 1)) {
    if (!line.startsWith('  ')) break
    lines.push(line.trim())
  }
  return lines
}

function parameters(lines: string[]): Parameter[] {
  return lines.map(line => {
    const [, name, mark] = /^(\w+)(\?|\.\.\.)?\s/.exec(line) ?? []
    if (!name) throw new Error(`cannot read the parameter "${line}"`)
    return { name, optional: mark === '?', rest: mark === '...' }
  })
}

function preamble(table: 'KEYS' | 'ARGV', list: Parameter[]): string[] {
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

/** A line of code, or the part that stands in its place. */
type Line = string | Part

interface Part {
  readonly name: string
  readonly lines: readonly Line[]
}

/** Those that are included anywhere; each stands behind those that it includes itself. */
const parts = new Map<string, Part>()

function body(source: string): Line[] {
  return source.split('\n').flatMap((line): Line[] => {
    const include = /^\s*-- include: (\S+)$/.exec(line)?.[1]
    if (include) return [part(include)]
    const code = line.replace(/(^|\s)--(\s.*)?$/, '').trim()
    return code ? [code] : []
  })
}

function part(name: string): Part {
  const known = parts.get(name)
  if (known) return known
  const made = { name, lines: body(readFileSync(new URL(`include/${name}.lua`, root), 'utf8')) }
  parts.set(name, made)
  return made
}

function whole(lines: readonly Line[]): string {
  return lines.map(line => (typeof line === 'string' ? line : whole(line.lines))).join('\n')
}

/** As TypeScript: an expression of the text, in which parts are constants. */
function expression(lines: readonly Line[]): string {
  const pieces: string[] = []
  let run: string[] = []
  for (const line of [...lines, undefined]) {
    if (typeof line === 'string') {
      run.push(line)
      continue
    }
    if (run.length > 0) pieces.push(JSON.stringify(run.join('\n')))
    run = []
    if (line) pieces.push(constant(line))
  }
  return pieces.length === 1 ? pieces[0]! : `[${pieces.join(', ')}].join('\\n')`
}

/** Walks the syntax tree: the first words of tables, and of returned texts, at the top level of the script. */
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

/** The words that the texts which an expression may evaluate to begin with, as far as they are written there. */
function literals(node: Record<string, unknown> | undefined): string[] {
  if (node?.['type'] === 'StringLiteral') return [String(node['raw']).slice(1, -1).split(' ', 1)[0]!]
  if (node?.['type'] === 'BinaryExpression') return literals(node['left'] as Record<string, unknown>)
  if (node?.['type'] === 'LogicalExpression') {
    const sides = [node['left'], node['right']] as Record<string, unknown>[]
    return sides.flatMap(literals)
  }
  return []
}

function camel(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

function constant(part: Part): string {
  return `${camel(part.name)}Part`
}

function compile(name: string) {
  const source = readFileSync(new URL(`${name}.lua`, root), 'utf8')
  const header = source
    .split('\n')
    .filter(line => line.startsWith('--'))
    .map(line => line.slice(3))
  const keys = parameters(section(header, 'KEYS'))
  const args = parameters(section(header, 'ARGV'))
  const code = body(source)
  const lines = [...preamble('KEYS', keys), ...preamble('ARGV', args), ...code]
  const lua = whole(lines)

  const fail = (problem: string) => {
    throw new Error(`lua/${name}.lua: ${problem}`)
  }
  const tree = luaparse.parse(lua, { luaVersion: '5.1', scope: true }) as luaparse.Chunk & {
    globals: luaparse.Identifier[]
  }
  const text = whole(code)
  for (const { name: global } of tree.globals) {
    if (!offered.has(global)) fail(`"${global}" is a global`)
  }
  if (/\b(KEYS|ARGV)\b/.test(text)) fail('KEYS and ARGV are read through the names of the header')
  for (const parameter of [...keys, ...args]) {
    if (!new RegExp(`\\b${parameter.name}\\b`).test(text)) fail(`the header's "${parameter.name}" is not used`)
  }
  const promised = section(header, 'Replies').map(line => line.split(/\s/)[0]!)
  const given = replyWords(tree.body)
  const known = new Set(promised)
  for (const word of given) if (!known.has(word)) fail(`replies "${word}", which the header does not list`)
  for (const word of promised)
    if (!text.includes(`'${word}'`) && !text.includes(`'${word} `)) fail(`the header's reply "${word}" is never given`)

  const everywhere = text.replace(/^--\[\[cluster$[\s\S]*?^--\]\]$/gm, '')
  const commands = new Set([...everywhere.matchAll(/redis\.p?call\('(\w+)'/g)].map(match => match[1]!))
  return { name, lines, keys, args, replies: promised, commands: [...commands].sort() }
}

const names = readdirSync(root)
  .filter(file => file.endsWith('.lua'))
  .map(file => file.slice(0, -4))
  .sort()
const scripts = names.map(compile)

const quoted = (list: Parameter[]) => `[${list.map(p => `'${p.name}'`).join(', ')}]`
const entries = scripts.map(script =>
  [
    `  ${camel(script.name)}: {`,
    `    keys: ${quoted(script.keys)},`,
    `    args: ${quoted(script.args)},`,
    `    replies: [${script.replies.map(word => `'${word}'`).join(', ')}],`,
    `    commands: [${script.commands.map(command => `'${command}'`).join(', ')}],`,
    `    lua: ${expression(script.lines)},`,
    '  },',
  ].join('\n'),
)
const heading = '// Generated by scripts/build-lua.ts from lua/*.lua. Do not edit.'
const constants = [...parts.values()].map(each => `const ${constant(each)} = ${expression(each.lines)}`)
const text = [heading, '', ...constants, '', 'export const scripts = {', ...entries, '} as const', ''].join('\n')
// Left alone where nothing has changed: somebody may be reading it.
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text)

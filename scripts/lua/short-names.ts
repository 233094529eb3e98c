/**
 * Shortens the names in the files of lua/ for the texts that Redis receives: of locals, of functions, and of the fields of
 * tables. The names that are used most get one letter. A name has the same short name in all texts, and no two names
 * share one. So a function fits into every script that uses it, and one table of names explains every error message.
 */
import luaparse from 'luaparse'
import type { Script, Unit } from './source.ts'

/** The names that Redis and Lua offer to every script, and the client's settings, which src/redis/scripts.ts inserts. */
export const offered = new Set([
  ...['redis', 'math', 'string', 'tonumber', 'unpack', 'ipairs', 'error', 'table', 'INBOX', 'MEMORY'],
])
/** The fields and methods that they offer. */
const offeredFields = new Set([
  ...['call', 'pcall', 'error_reply', 'err', 'sub', 'match', 'find', 'gsub', 'gmatch', 'format'],
  ...['floor', 'ceil', 'max', 'min', 'concat', 'unpack'],
])
const LETTERS = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_']
/** Lua's keywords with two letters. No short name has more letters, so the other keywords do not matter. */
const KEYWORDS = ['do', 'if', 'in', 'or']

export type Names = ReadonlyMap<string, string>

/** Returns a short name for each name in the files. The names that are used most often come first. */
export function shortNames(units: readonly (Unit & Partial<Script>)[]): Names {
  const uses = new Map<string, number>()
  for (const { lines, keys = [], args = [] } of units)
    for (const { name } of [...namesIn(lines), ...keys, ...args]) uses.set(name, (uses.get(name) ?? 0) + 1)
  const two = LETTERS.flatMap(first => LETTERS.map(second => first + second))
  const short = [...LETTERS, ...two].filter(name => !KEYWORDS.includes(name))
  const names = [...uses].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([name]) => name)
  return new Map(names.map((name, i) => [name, short[i]!]))
}

/** Returns the code as if it had been written with these names. */
export function renamed(lines: readonly string[], names: Names): string[] {
  const text = lines.join('\n')
  let [result, end] = ['', 0]
  for (const { name, at } of namesIn(lines)) {
    result += text.slice(end, at) + (names.get(name) ?? name)
    end = at + name.length
  }
  return (result + text.slice(end)).split('\n')
}

/** Parses code. The parts that only a cluster needs are opened, without moving anything. */
export function parsed(lines: readonly string[]): luaparse.Chunk & { readonly globals: luaparse.Identifier[] } {
  const text = lines.join('\n').replace(/--\[\[cluster$|--\]\]$/gm, mark => ' '.repeat(mark.length))
  const options = { luaVersion: '5.1', ranges: true, scope: true } as const
  return luaparse.parse(text, options) as ReturnType<typeof parsed>
}

/** Visits all nodes of a tree. `field`: whether the node is the name of a field. */
export function visit(node: unknown, each: (node: luaparse.Node, field: boolean) => void, field = false): void {
  if (Array.isArray(node)) for (const item of node) visit(item, each)
  if (!node || typeof node !== 'object' || !('type' in node)) return
  each(node as luaparse.Node, field)
  const { type } = node
  for (const [part, value] of Object.entries(node))
    visit(
      value,
      each,
      `${type}.${part}` === 'MemberExpression.identifier' || `${type}.${part}` === 'TableKeyString.key',
    )
}

/** Returns the names in the code that a short name may replace, in the order of the text. */
function namesIn(lines: readonly string[]): { readonly name: string; readonly at: number }[] {
  const found: { name: string; at: number }[] = []
  visit(parsed(lines).body, (node, field) => {
    if (node.type !== 'Identifier' || (field ? offeredFields : offered).has(node.name)) return
    found.push({ name: node.name, at: (node as unknown as { range: [number, number] }).range[0] })
  })
  return found.sort((a, b) => a.at - b.at)
}

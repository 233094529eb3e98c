/**
 * Shortens the names in the files of lua/ for the texts that Redis receives: of locals, of functions, and of the fields of
 * tables. The names that are used most get one letter. A name has the same short name in all texts, and no two names
 * share one. So a function fits into every script that uses it, and one table of names explains every error message.
 */
import luaparse from 'luaparse'
import type { Header } from './header.ts'
import type { Unit } from './source.ts'

/** The names that Redis and Lua offer to every script, and the client's settings, which src/redis/scripts.ts inserts. */
export const offered = new Set([
  ...['redis', 'math', 'string', 'tonumber', 'unpack', 'ipairs', 'error', 'table', 'KEYS', 'ARGV', 'INBOX', 'MEMORY'],
])
/** The fields and methods that they offer. */
const offeredFields = new Set([
  ...['call', 'pcall', 'error_reply', 'err', 'sub', 'match', 'find', 'gsub', 'gmatch', 'format'],
  ...['floor', 'ceil', 'max', 'min', 'concat', 'unpack'],
])
const LETTERS = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_']
/** Lua's keywords with two letters. No short name has more letters, so the other keywords do not matter. */
const KEYWORDS = ['do', 'if', 'in', 'or']

/** Returns a short name for each name in the files. The names that are used most often come first. */
export function shortNames(units: readonly (Unit & { readonly header?: Header })[]): Map<string, string> {
  const uses = new Map<string, number>()
  const count = (name: string) => uses.set(name, (uses.get(name) ?? 0) + 1)
  for (const { lines, header } of units) {
    for (const { name } of namesIn(lines)) count(name)
    for (const { name } of header ? [...header.keys, ...header.args] : []) count(name)
  }
  const two = LETTERS.flatMap(first => LETTERS.map(second => first + second))
  const short = [...LETTERS, ...two].filter(name => !KEYWORDS.includes(name))
  const names = [...uses].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([name]) => name)
  return new Map(names.map((name, i) => [name, short[i]!]))
}

/** Returns the code as if it had been written with these names. */
export function renamed(lines: readonly string[], names: ReadonlyMap<string, string>): string[] {
  const text = lines.join('\n')
  let [result, end] = ['', 0]
  for (const { name, at } of namesIn(lines)) {
    result += text.slice(end, at) + (names.get(name) ?? name)
    end = at + name.length
  }
  return (result + text.slice(end)).split('\n')
}

/** Opens the parts that only a cluster needs, without moving anything. */
export function opened(text: string): string {
  return text.replace(/--\[\[cluster$|--\]\]$/gm, mark => ' '.repeat(mark.length))
}

interface Found {
  readonly name: string
  readonly at: number
}

/** Returns the names in the code that a short name may replace, in the order of the text. */
function namesIn(lines: readonly string[]): Found[] {
  const found: Found[] = []
  const walk = (node: unknown, field: boolean): void => {
    if (Array.isArray(node)) for (const item of node) walk(item, false)
    else if (node && typeof node === 'object') {
      const { type, name, range, ...parts } = node as Record<string, unknown> & { range: [number, number] }
      if (type === 'Identifier') {
        if (!(field ? offeredFields : offered).has(name as string)) found.push({ name: name as string, at: range[0] })
        return
      }
      for (const [part, value] of Object.entries(parts)) {
        walk(
          value,
          (type === 'MemberExpression' && part === 'identifier') || (type === 'TableKeyString' && part === 'key'),
        )
      }
    }
  }
  walk(luaparse.parse(opened(lines.join('\n')), { luaVersion: '5.1', ranges: true }).body, false)
  return found.sort((a, b) => a.at - b.at)
}

/** Refuses a script that contradicts its header, reads a global, or passes a key to a command that is not one of KEYS. */
import luaparse from 'luaparse'
import type { Header } from './header.ts'
import { offered, opened } from './short-names.ts'

/** Commands without keys. The names of channels are not keys. */
const KEYLESS = ['TIME', 'PUBLISH', 'PUBSUB', 'CLUSTER']
/** Commands whose arguments are all keys. Every other command has its only key first. */
const ONLY_KEYS = ['EXISTS', 'UNLINK', 'DEL']
/** The names that only keys have, in all files, as locals, parameters and fields; and those of lists of keys. */
const KEY = ['lock', 'queue', 'deadlines', 'readers', 'waiting', 'turns', 'shares', 'line', 'otherLine']
const LIST = ['keys']

type Node = luaparse.Node

/** `text`: the whole script, with the full names, which begins with `head`. `lacks`: keys of the header that it does not have. */
export function checkScript(file: string, head: string, text: string, header: Header, lacks: readonly string[]): void {
  const fail = (problem: string) => {
    throw new Error(`${file}: ${problem}`)
  }
  const single = text.replace(/--\[\[cluster$[\s\S]*?--\]\]$/gm, '')
  for (const variant of [opened(text), single]) {
    const tree = luaparse.parse(variant, { luaVersion: '5.1', scope: true })
    for (const { name } of (tree as unknown as { globals: luaparse.Identifier[] }).globals)
      if (!offered.has(name)) fail(`"${name}" is a global`)
    each(tree.body, node => {
      const problem = problemOf(node)
      if (problem) fail(problem)
    })
  }
  const code = text.slice(head.length)
  if (/\b(KEYS|ARGV)\b/.test(code)) fail('KEYS and ARGV are read through the names of the header')
  for (const { name } of [...header.keys.filter(key => !lacks.includes(key.name)), ...header.args])
    if (name !== 'none' && !new RegExp(`\\b${name}\\b`).test(code)) fail(`the header's "${name}" is not used`)
  const replies = replyWords(luaparse.parse(single, { luaVersion: '5.1' }).body)
  for (const word of replies)
    if (!header.replies.includes(word)) fail(`replies "${word}", which the header does not list`)
  for (const word of header.replies)
    if (!text.includes(`'${word}'`) && !text.includes(`'${word} `)) fail(`the header's reply "${word}" is never given`)
}

function problemOf(node: Node): string | undefined {
  if (node.type === 'LocalStatement' || node.type === 'AssignmentStatement') {
    const wrong = node.variables.find((variable, i) => {
      const [name, value] = [nameOf(variable), node.init[i]]
      return name !== undefined && value !== undefined && isOdd(name, value)
    })
    return wrong && `"${nameOf(wrong)}" does not come from KEYS`
  }
  if (node.type === 'TableKeyString' && isOdd(node.key.name, node.value))
    return `"${node.key.name}" does not come from KEYS`
  if (node.type !== 'CallExpression' || node.base.type !== 'MemberExpression' || nameOf(node.base.base) !== 'redis')
    return undefined
  const [first, ...args] = node.arguments
  const command = first?.type === 'StringLiteral' ? first.raw.slice(1, -1) : ''
  if (KEYLESS.includes(command) || !/^p?call$/.test(node.base.identifier.name)) return undefined
  const keys = ONLY_KEYS.includes(command) ? args : args.slice(0, 1)
  return keys.every(isKey) ? undefined : `a key of ${command} does not come from KEYS`
}

function nameOf(node: Node): string | undefined {
  if (node.type === 'Identifier') return node.name
  return node.type === 'MemberExpression' ? node.identifier.name : undefined
}

/** Whether something that is not a key, or not a list of keys, would get the name of one. */
function isOdd(name: string, value: luaparse.Expression): boolean {
  if (KEY.includes(name)) return !isKey(value)
  return LIST.includes(name) && !isList(value)
}

function isKey(value: luaparse.Expression): boolean {
  if (value.type === 'IndexExpression') return isList(value.base)
  // What a key is instead of nil while it is left out (bundle.ts).
  if (value.type === 'StringLiteral') return value.raw === "''"
  if (value.type === 'LogicalExpression') return isKey(value.right) && (value.operator === 'and' || isKey(value.left))
  // A function whose name says so returns one of its keys.
  if (value.type === 'CallExpression') return nameOf(value.base) === 'lineOf'
  return KEY.includes(nameOf(value) ?? '')
}

function isList(value: luaparse.Expression): boolean {
  if (value.type === 'LogicalExpression') return isList(value.right) && (value.operator === 'and' || isList(value.left))
  if (value.type === 'TableConstructorExpression') return value.fields.every(field => isKey(field.value))
  return LIST.includes(nameOf(value) ?? '') || nameOf(value) === 'KEYS'
}

function each(node: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(node)) for (const item of node) each(item, visit)
  else if (node && typeof node === 'object') {
    if ('type' in node) visit(node as Node)
    for (const value of Object.values(node)) each(value, visit)
  }
}

/** Collects the first words of all texts that may begin a reply: of each returned text, and the first of each table. */
function replyWords(node: unknown, words = new Set<string>()): Set<string> {
  if (Array.isArray(node)) for (const item of node) replyWords(item, words)
  else if (node && typeof node === 'object') {
    const it = node as Node
    if (it.type === 'FunctionDeclaration') return words
    if (it.type === 'TableConstructorExpression') for (const word of literals(it.fields[0]?.value)) words.add(word)
    if (it.type === 'ReturnStatement')
      for (const text of it.arguments) for (const word of literals(text)) words.add(word)
    for (const value of Object.values(it)) replyWords(value, words)
  }
  return words
}

/** The value of an expression may begin with one of several string literals. Returns the first word of each. */
function literals(node: luaparse.Expression | undefined): string[] {
  if (node?.type === 'StringLiteral') return [node.raw.slice(1, -1).split(' ', 1)[0]!]
  if (node?.type === 'BinaryExpression') return literals(node.left)
  return node?.type === 'LogicalExpression' ? [...literals(node.left), ...literals(node.right)] : []
}

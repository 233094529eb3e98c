/**
 * Refuses code that reads a name which it does not have, hides a function, or passes a key to a command that is not one of
 * KEYS. In lua/, only keys have the names of keys, be they locals, parameters or fields.
 */
import type luaparse from 'luaparse'
import { offered, parsed, visit } from './short-names.ts'
import type { Script, Unit } from './source.ts'

/** Commands without keys. The names of channels are not keys. */
const KEYLESS = ['TIME', 'PUBLISH', 'PUBSUB', 'CLUSTER']
/** Commands whose arguments are all keys. Every other command has its only key first. */
const ONLY_KEYS = ['EXISTS', 'UNLINK', 'DEL']
const KEY = ['lock', 'queue', 'deadlines', 'readers', 'waiting', 'turns', 'shares', 'line', 'otherLine']
const LIST = ['keys']

/** `functions`: the names of all functions. */
export function check(unit: Unit & Partial<Script>, functions: ReadonlySet<string>): void {
  const fail = (problem: string) => {
    throw new Error(`${unit.file}: ${problem}`)
  }
  const tree = parsed(unit.lines)
  const given = [...(unit.keys ?? []), ...(unit.args ?? [])].map(({ name }) => name)
  for (const { name } of tree.globals)
    if (!offered.has(name) && !functions.has(name) && !given.includes(name)) fail(`"${name}" is a global`)
  for (const { name } of unit.args ?? [])
    if (!tree.globals.some(read => read.name === name)) fail(`the header's "${name}" is not used`)
  visit(tree.body, (node, field) => {
    // The function would be taken for used, and could not be.
    const local = field || (node as { isLocal?: boolean }).isLocal
    if (node.type === 'Identifier' && local && functions.has(node.name) && node.name !== unit.name)
      fail(`"${node.name}" is a function`)
    const problem = problemOf(node)
    if (problem) fail(problem)
  })
}

function problemOf(node: luaparse.Node): string | undefined {
  if (node.type === 'LocalStatement' || node.type === 'AssignmentStatement') {
    const wrong = node.variables.find((variable, i) => node.init[i] && isOdd(nameOf(variable), node.init[i]))
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

function nameOf(node: luaparse.Node): string {
  if (node.type === 'Identifier') return node.name
  return node.type === 'MemberExpression' ? node.identifier.name : ''
}

/** Whether something that is not a key, or not a list of keys, would get the name of one. */
function isOdd(name: string, value: luaparse.Expression): boolean {
  return KEY.includes(name) ? !isKey(value) : LIST.includes(name) && !isList(value)
}

function isKey(value: luaparse.Expression): boolean {
  if (value.type === 'IndexExpression') return isList(value.base)
  if (value.type === 'LogicalExpression') return isKey(value.right) && (value.operator === 'and' || isKey(value.left))
  // A function whose name says so returns one of its keys.
  return nameOf(value.type === 'CallExpression' ? value.base : value) === 'lineOf' || KEY.includes(nameOf(value))
}

function isList(value: luaparse.Expression): boolean {
  if (value.type === 'LogicalExpression') return isList(value.right) && (value.operator === 'and' || isList(value.left))
  if (value.type === 'TableConstructorExpression') return value.fields.every(field => isKey(field.value))
  return LIST.includes(nameOf(value))
}

/**
 * Refuses a file of lua/ that passes a key to a command, unless the key comes from KEYS. Servers demand this: some refuse
 * a script that touches another key, and a cluster looks for the keys in KEYS only.
 *
 * A key is a name that a header declares as HASH or ZSET, an entry of a list that a header declares as HASHes or ZSETs,
 * or a local with such a value. An include may only give, and only be given, keys in the place of keys. So each key of a
 * command leads back to the header of a script, where it is one of KEYS.
 */
import type luaparse from 'luaparse'
import { parsed } from './names.ts'
import { type Inclusion, type Source, valueIn } from './source.ts'

/** Commands without keys. The names of channels are not keys. */
const KEYLESS = ['TIME', 'PUBLISH', 'PUBSUB', 'CLUSTER']
/** Commands whose arguments are all keys. Every other command has its only key first. */
const ONLY_KEYS = ['EXISTS', 'UNLINK', 'DEL']

type Node = luaparse.Expression | luaparse.Statement

/** Calls `visit` for each node, in the order of the text. */
function each(node: unknown, visit: (node: Node) => void): void {
  if (Array.isArray(node)) for (const item of node) each(item, visit)
  else if (node && typeof node === 'object') {
    if ('type' in node) visit(node as Node)
    for (const value of Object.values(node)) each(value, visit)
  }
}

export function checkKeys(source: Source): void {
  const { header, lines, file } = source
  const included = lines.filter((line): line is Inclusion => typeof line !== 'string')
  const given = [header, ...included.map(({ source }) => source.header)].flatMap(({ gives }) => gives)
  const declared = [...header.keys, ...header.takes, ...header.changes, ...given]
  const keys = new Set(declared.flatMap(({ name, type, rest }) => (isKeyType(type) && !rest ? [name] : [])))
  const lists = new Set(declared.flatMap(({ name, type, rest }) => (isListType(type) || rest ? [name] : [])))
  const mustBe = (right: boolean, what: string) => {
    if (!right) throw new Error(`${file}: ${what} does not come from KEYS`)
  }

  const isKey = (value: luaparse.Expression | undefined): boolean => {
    if (value?.type === 'Identifier') return keys.has(value.name)
    if (value?.type === 'IndexExpression') return isList(value.base)
    if (value?.type !== 'LogicalExpression') return false
    return isKey(value.right) && (value.operator === 'and' || isKey(value.left))
  }
  const isList = (value: luaparse.Expression | undefined): boolean => {
    if (value?.type === 'Identifier') return lists.has(value.name)
    return (
      value?.type === 'TableConstructorExpression' &&
      value.fields.length > 0 &&
      value.fields.every(field => isKey(field.value))
    )
  }
  /** A name is a key from now on, or is none any more. */
  const becomes = (name: string, value: luaparse.Expression) => {
    const type = [...header.changes, ...header.gives].find(each => each.name === name)?.type ?? ''
    if (isKeyType(type)) return mustBe(isKey(value), `"${name}"`)
    if (isListType(type)) return mustBe(isList(value), `"${name}"`)
    for (const [set, right] of [
      [keys, isKey(value)],
      [lists, isList(value)],
    ] as const) {
      if (right) set.add(name)
      else set.delete(name)
    }
  }

  const { body } = parsed(source, true)
  const calls = new Map<string, luaparse.Expression[][]>()
  each(body, node => {
    if (node.type !== 'CallExpression' || node.base.type !== 'Identifier') return
    calls.set(node.base.name, [...(calls.get(node.base.name) ?? []), node.arguments])
  })
  each(body, node => {
    if (node.type === 'LocalStatement' || node.type === 'AssignmentStatement') {
      for (const [i, variable] of node.variables.entries()) {
        const value = node.init[i]
        if (variable.type !== 'Identifier' || !value) continue
        // The line that stands for an include assigns each name to itself.
        if (value.type !== 'Identifier' || value.name !== variable.name) becomes(variable.name, value)
      }
    } else if (node.type === 'ForGenericStatement') {
      const [call] = node.iterators
      const entry = node.variables[1]
      if (entry && call?.type === 'CallExpression' && isList(call.arguments[0])) keys.add(entry.name)
    } else if (node.type === 'FunctionDeclaration' && node.identifier?.type === 'Identifier') {
      const uses = calls.get(node.identifier.name) ?? []
      for (const [i, parameter] of node.parameters.entries()) {
        if (parameter.type === 'Identifier' && uses.every(args => isKey(args[i]))) keys.add(parameter.name)
      }
    } else if (node.type === 'CallExpression' && isRedis(node.base)) {
      const [name, ...args] = node.arguments
      const command = name?.type === 'StringLiteral' ? name.raw.slice(1, -1) : ''
      if (KEYLESS.includes(command)) return
      for (const key of ONLY_KEYS.includes(command) ? args : args.slice(0, 1)) mustBe(isKey(key), `a key of ${command}`)
    }
  })
  for (const { source: part, bound } of included) {
    for (const { name, type, optional } of part.header.takes) {
      if (!isKeyType(type) && !isListType(type)) continue
      const value = bound.get(name)
      if (optional && (value === 'nil' || (value === undefined && !keys.has(name)))) continue
      const right = value === undefined ? keys.has(name) || lists.has(name) : isKey(valueIn(value))
      mustBe(right, `"${name}" of the include "${part.name}"`)
    }
  }
}

function isRedis(base: luaparse.Expression): boolean {
  return base.type === 'MemberExpression' && base.base.type === 'Identifier' && base.base.name === 'redis'
}

function isKeyType(type: string): boolean {
  return type === 'HASH' || type === 'ZSET'
}

function isListType(type: string): boolean {
  return type === 'ZSETs'
}

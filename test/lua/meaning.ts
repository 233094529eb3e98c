/** Compares two Lua texts without regard to the names of their locals. */
import luaparse from 'luaparse'

interface Node {
  readonly type: string
  readonly loc: { readonly start: { readonly line: number } }
  readonly [part: string]: unknown
}
/** Maps the name of each visible local to the number of its declaration, as text. */
type Scope = ReadonlyMap<string, string>

const lineOf = ({ loc }: Node) => loc.start.line
const nodes = (value: unknown) => (Array.isArray(value) ? value : [value]) as Node[]

/**
 * Returns the syntax tree of a text, with each local replaced by the number of its declaration. So the tree is equal
 * for two texts that differ only in the names of their locals. The function follows Lua's rules of scope itself, and
 * does not rely on luaparse for them.
 */
export function meaning(text: string): unknown {
  let declared = 0
  const withLocals = (scope: Scope, identifiers: readonly Node[]) =>
    new Map([...scope, ...identifiers.map(({ name }) => [String(name), `local ${++declared}`] as const)])
  const block = (body: readonly Node[], outer: Scope): { code: unknown[]; scope: Scope } => {
    let scope = outer
    const code = body.map(statement => {
      if (statement.type === 'LocalStatement') {
        const { init, variables } = statement
        const values = expression(init, scope)
        scope = withLocals(scope, nodes(variables))
        return [statement.type, lineOf(statement), values, expression(variables, scope)]
      }
      if (statement.type === 'FunctionDeclaration' && statement['isLocal']) {
        // In Lua, a local function is visible in its own body.
        scope = withLocals(scope, nodes(statement['identifier']))
      }
      return expression(statement, scope)
    })
    return { code, scope }
  }

  const expression = (value: unknown, scope: Scope): unknown => {
    if (Array.isArray(value)) return value.map(each => expression(each, scope))
    if (value === null || typeof value !== 'object') return value
    const { type, loc: _, ...parts } = value as Node
    const line = lineOf(value as Node)
    const every = (inside: Scope, ...done: string[]) =>
      Object.entries(parts).flatMap(([name, part]) => (done.includes(name) ? [] : [[name, expression(part, inside)]]))
    const body = parts['body'] as Node[]
    switch (type) {
      case 'Identifier':
        return scope.get(String(parts['name'])) ?? `global ${parts['name']}`
      case 'MemberExpression':
        return [type, line, every(scope, 'identifier'), (parts['identifier'] as Node)['name']]
      case 'TableKeyString':
        return [type, line, every(scope, 'key'), (parts['key'] as Node)['name']]
      case 'FunctionDeclaration': {
        const inside = withLocals(
          scope,
          nodes(parts['parameters']).filter(each => each.type === 'Identifier'),
        )
        return [
          type,
          line,
          expression(parts['identifier'], scope),
          every(inside, 'identifier', 'body'),
          block(body, inside).code,
        ]
      }
      case 'ForNumericStatement':
      case 'ForGenericStatement': {
        const variables = parts['variables'] ?? parts['variable']
        const inside = withLocals(scope, nodes(variables))
        return [
          type,
          line,
          every(scope, 'variables', 'variable', 'body'),
          expression(variables, inside),
          block(body, inside).code,
        ]
      }
      case 'RepeatStatement': {
        // In `repeat … until`, locals of the body are visible in the condition.
        const { code, scope: inside } = block(body, scope)
        return [type, line, code, expression(parts['condition'], inside)]
      }
      default:
        return [type, line, every(scope, 'body'), body ? block(body, scope).code : []]
    }
  }
  return block(luaparse.parse(text, { luaVersion: '5.1', locations: true }).body as unknown as Node[], new Map()).code
}

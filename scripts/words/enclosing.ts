/**
 * Finds the place of a comment: the first line of the nearest function, method, class, interface or test around the
 * comment.
 */
import ts from '@typescript/typescript6'

/** Returns the first line of the declaration around a position. Undefined if there is none. */
export function enclosing(file: string, text: string): (position: number) => string | undefined {
  return /\.(?:[mc]?ts|mjs|cjs)$/.test(file) ? inTypeScript(file, text) : byIndentation(text)
}

function inTypeScript(file: string, text: string): (position: number) => string | undefined {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  return position => {
    let found: number | undefined
    const visit = (node: ts.Node) => {
      if (position < node.getStart(source) || position >= node.getEnd()) return
      const at = nameIn(node)?.getStart(source)
      // A comment that stands before the name describes the declaration, so it is not inside the declaration.
      if (at !== undefined && at < position) found = at
      ts.forEachChild(node, visit)
    }
    visit(source)
    if (found === undefined) return undefined
    const from = text.lastIndexOf('\n', found) + 1
    return text.slice(from).split('\n', 1)[0]!.trim()
  }
}

/**
 * Returns the name of a declaration, or the declaration itself if it has no name. Undefined if the node is no
 * declaration.
 */
function nameIn(node: ts.Node): ts.Node | undefined {
  if (ts.isConstructorDeclaration(node)) return node
  if (ts.isFunctionDeclaration(node) || ts.isClassLike(node) || ts.isInterfaceDeclaration(node))
    return node.name ?? node
  if (ts.isMethodDeclaration(node) || ts.isAccessor(node) || ts.isTypeAliasDeclaration(node)) return node.name
  if (ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node)) {
    return node.initializer && ts.isFunctionLike(node.initializer) ? node.name : undefined
  }
  if (!ts.isCallExpression(node) || !/^(?:test|it|describe)\b/.test(node.expression.getText())) return undefined
  return node.arguments.some(ts.isFunctionLike) ? node.arguments[0] : undefined
}

const declaration = /\bfunction\b|\b(?:class|interface|enum|struct|proctype|inline|init|active)\b|\w\(.*\{$/
const statement = /^(?:if|for|while|switch|else|do|try|catch|return)\b/

function byIndentation(text: string): (position: number) => string | undefined {
  return position => {
    const before = text.slice(0, position).split('\n')
    let depth = indentation(before.pop() ?? '')
    for (const line of before.reverse()) {
      if (line.trim() === '' || indentation(line) >= depth) continue
      depth = indentation(line)
      if (declaration.test(line) && !statement.test(line.trim())) return line.trim()
    }
    return undefined
  }
}

function indentation(line: string): number {
  return line.search(/\S|$/)
}

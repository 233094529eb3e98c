/** Finds the message that a text is part of. For instance, a function returns a reason, and its caller shows it. */
import ts from '@typescript/typescript6'
import { constantOf, isPrintable, isPut, isText, joinedBy, nameOf } from './rendered.ts'

/** Returns the largest expression whose text contains the text of this expression. */
export function wholeOf(node: ts.Expression): ts.Expression {
  let at: ts.Node = node
  for (let up = at.parent; isPart(at, up); up = at.parent) at = up
  return at as ts.Expression
}

function isPart(at: ts.Node, up: ts.Node): boolean {
  if (isPrintable(up)) return true
  if (ts.isConditionalExpression(up)) return up.condition !== at
  if (ts.isBinaryExpression(up)) {
    const { kind } = up.operatorToken
    return (
      kind === ts.SyntaxKind.PlusToken ||
      kind === ts.SyntaxKind.BarBarToken ||
      kind === ts.SyntaxKind.QuestionQuestionToken ||
      (kind === ts.SyntaxKind.AmpersandAmpersandToken && up.right === at)
    )
  }
  return (
    ts.isParenthesizedExpression(up) || ts.isAwaitExpression(up) || ts.isTemplateSpan(up) || ts.isTemplateExpression(up)
  )
}

/**
 * Finds the expression by which a larger text in the same file contains this text. That is a call of the function that
 * returns this text, a parameter that receives this text, or a variable. If it is a constant, returns 'inserted',
 * because the renderer replaces constants by their values. Returns undefined if there is no larger text.
 */
export function shownIn(node: ts.Expression): ts.Expression | 'inserted' | undefined {
  const whole = wholeOf(node)
  const { parent } = whole
  if (ts.isVariableDeclaration(parent) && ts.isIdentifier(parent.name)) {
    const { initializer, name } = parent
    const constant = (parent.parent.flags & ts.NodeFlags.Const) !== 0
    const all = uses(scopeOf(parent), name.text).filter(use => !constant || constantOf(use) === initializer)
    if (all.some(use => isShown(use) || isOfPage(use)) && constant && initializer && isPut(initializer))
      return 'inserted'
    return shownOf(all)
  }
  if (ts.isReturnStatement(parent) || (ts.isArrowFunction(parent) && parent.body === whole)) {
    const name = ownName(functionAround(parent))
    return name === undefined ? undefined : calls(node.getSourceFile(), name).find(isShown)
  }
  if (ts.isCallExpression(parent) && whole !== parent.expression) {
    const name = nameOf(parent)
    const called = name === undefined ? undefined : functionNamed(node.getSourceFile(), name)
    const parameter = called?.parameters[parent.arguments.indexOf(whole)]?.name
    if (!called || !parameter || !ts.isIdentifier(parameter)) return undefined
    // A function that calls itself shows the text elsewhere.
    for (let at: ts.Node = parent; at; at = at.parent) if (at === called) return undefined
    const next = shownOf(uses(called, parameter.text).filter(each => each !== parameter))
    return next === 'inserted' ? undefined : next
  }
  return undefined
}

/**
 * Returns the first expression that is part of a larger text. If there is none, continues with the first expression
 * that is an argument of a call, and looks for the text in that function.
 */
function shownOf(all: readonly ts.Expression[]): ReturnType<typeof shownIn> {
  return all.find(isShown) ?? all.filter(use => ts.isCallExpression(use.parent)).map(shownIn)[0]
}

function isOfPage(node: ts.Expression): boolean {
  return ts.isTaggedTemplateExpression(wholeOf(node).parent)
}

/** Returns whether the expression is a part of a larger text, or of an error's message. */
function isShown(node: ts.Expression): boolean {
  const whole = wholeOf(node)
  if (isOfPage(node)) return false
  if (ts.isNewExpression(whole.parent)) return /(?:Error|^Failure|^Option)$/.test(whole.parent.expression.getText())
  if (whole === node)
    return ts.isArrayLiteralExpression(whole.parent) && joinedBy(whole.parent.parent.parent) !== undefined
  return some(whole, each => isText(each) && /\p{L}/u.test(each.getText().replaceAll(/\$\{[^}]*\}/g, '')))
}

function functionAround(node: ts.Node): ts.Node {
  let at = node
  while (at.parent && !ts.isFunctionLike(at)) at = at.parent
  return at
}

/** Returns the name of a function, of a method, or of the constant that a function is assigned to. */
function ownName(node: ts.Node): string | undefined {
  if ((ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) && node.name) return node.name.getText()
  return ts.isArrowFunction(node) && ts.isVariableDeclaration(node.parent) ? node.parent.name.getText() : undefined
}

function functionNamed(file: ts.SourceFile, name: string): ts.SignatureDeclaration | undefined {
  return all(file, (node): node is ts.SignatureDeclaration => ts.isFunctionLike(node) && ownName(node) === name)[0]
}

function calls(file: ts.SourceFile, name: string): ts.CallExpression[] {
  return all(file, (node): node is ts.CallExpression => ts.isCallExpression(node) && nameOf(node) === name)
}

function uses(within: ts.Node, name: string): ts.Identifier[] {
  return all(within, (node): node is ts.Identifier => ts.isIdentifier(node) && node.text === name)
}

function scopeOf(node: ts.Node): ts.Node {
  let at = node.parent
  while (!ts.isBlock(at) && !ts.isSourceFile(at)) at = at.parent
  return at
}

function all<T extends ts.Node>(within: ts.Node, is: (node: ts.Node) => node is T): T[] {
  const found: T[] = []
  const visit = (node: ts.Node) => {
    if (is(node)) found.push(node)
    ts.forEachChild(node, visit)
  }
  visit(within)
  return found
}

/** Returns whether `is` returns true for the expression or a part of it. Ignores the operands of `===` and `!==`. */
function some(within: ts.Node, is: (node: ts.Node) => boolean): boolean {
  if (ts.isBinaryExpression(within) && /^[!=]==$/.test(within.operatorToken.getText())) return false
  return is(within) || (ts.forEachChild(within, child => some(child, is) || undefined) ?? false)
}

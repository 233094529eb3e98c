/**
 * Renders expressions as the texts that users see: constants are inserted, and lines that belong together are joined.
 */
import ts from '@typescript/typescript6'

const VALUE = '\u0024{…}'

export class Renderer {
  /** Texts that are already part of a message. */
  readonly used = new Set<ts.Node>()
  /** Texts to show instead of certain expressions. */
  readonly instead = new Map<ts.Node, string>()

  /** Returns the text of an expression. Values that only the running program knows become placeholders. */
  render(node: ts.Expression, depth = 0): string {
    const given = this.instead.get(node)
    if (given !== undefined) return given
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      this.used.add(node)
      return node.text
    }
    if (ts.isTemplateExpression(node)) {
      this.used.add(node)
      const spans = node.templateSpans.map(span => `${this.render(span.expression, depth)}${span.literal.text}`)
      return node.head.text + spans.join('')
    }
    if (ts.isParenthesizedExpression(node)) return this.render(node.expression, depth)
    if (isPrintable(node)) return this.render(node.arguments[0]!, depth)
    if (ts.isArrayLiteralExpression(node)) return this.#lines(node, depth, '\n')
    const joined = joinedBy(node)
    if (joined) return this.#lines(joined.list, depth, joined.separator)
    if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText())) {
      const [first, second] = node.arguments ?? []
      const message = node.expression.getText() === 'AggregateError' ? second : first
      if (message) return this.render(message, depth)
    }
    if (ts.isBinaryExpression(node)) return this.#binary(node, depth)
    if (ts.isConditionalExpression(node)) {
      const [one, other] = [this.render(node.whenTrue, depth), this.render(node.whenFalse, depth)]
      if (one === '' || other === '') return optional(one || other)
      return one === other ? one : `(${one}|${other})`
    }
    if (ts.isIdentifier(node) && depth < 3) {
      const value = constantOf(node)
      if (value && isPut(value)) return this.render(value, depth + 1)
    }
    const returned = ts.isCallExpression(node) && depth < 3 ? returnedBy(node) : undefined
    const text = returned ? this.render(returned, depth + 1) : ''
    return /\p{L}/u.test(text.replaceAll(/\$\{.*?\}/g, '')) ? text : placeholder(node)
  }

  #binary(node: ts.BinaryExpression, depth: number): string {
    const { operatorToken, left, right } = node
    switch (operatorToken.kind) {
      case ts.SyntaxKind.PlusToken:
        return isSum(node) || isSum(node.parent) || this.instead.has(left) || this.instead.has(right)
          ? this.render(left, depth) + this.render(right, depth)
          : placeholder(node)
      case ts.SyntaxKind.AmpersandAmpersandToken:
        return optional(this.render(right, depth))
      case ts.SyntaxKind.BarBarToken:
      case ts.SyntaxKind.QuestionQuestionToken:
        if (!isText(right)) return placeholder(node)
        return right.getText().length === 2
          ? this.render(left, depth)
          : `(${this.render(left, depth)}|${this.render(right, depth)})`
      default:
        return placeholder(node)
    }
  }

  #lines(list: ts.Expression, depth: number, separator: string): string {
    if (ts.isArrayLiteralExpression(list)) {
      const lines = list.elements.map(line =>
        ts.isSpreadElement(line) ? this.#lines(line.expression, depth, separator) : this.render(line, depth),
      )
      // A single lower-case word is not a line of the message. It may be the name of a colour.
      return lines
        .filter((line, i) => (line === '' ? isText(list.elements[i]!) : !/^[a-z]+$/.test(line)))
        .join(separator)
    }
    if (ts.isParenthesizedExpression(list)) return this.#lines(list.expression, depth, separator)
    if (ts.isConditionalExpression(list)) {
      const [one, other] = [list.whenTrue, list.whenFalse].map(each => this.#lines(each, depth, separator).trim())
      return one === '' || other === '' ? optional(one || other!) : `(${one}|${other})`
    }
    if (ts.isIdentifier(list) && depth < 3) {
      const value = constantOf(list)
      if (value && hasLines(value)) return this.#lines(value, depth + 1, separator)
    }
    const each = mapping(list)
    return each ? this.render(each, depth) : placeholder(list)
  }
}

function optional(text: string): string {
  return text === '' ? '' : `[${text}]`
}

/** Returns what stands for a value in a message: its expression if that is short, otherwise `${…}`. */
function placeholder(node: ts.Expression): string {
  const name = node.getText().replaceAll(/\s+/g, ' ')
  return name.length <= 40 && !/['"`{}]/.test(name) ? `\${${name}}` : VALUE
}

/** Recognizes `join` on a list of texts, or on a constant that is such a list. Returns the list and the separator. */
export function joinedBy(node: ts.Node): { readonly list: ts.Expression; readonly separator: string } | undefined {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return undefined
  const [separator] = node.arguments
  if (node.expression.name.text !== 'join' || !separator || !ts.isStringLiteral(separator)) return undefined
  if (separator.text.trim() !== '') return undefined
  let list = node.expression.expression
  // `lines.map(printable)` only escapes characters in the lines, so `lines` itself is the list.
  const call = ts.isCallExpression(list) && ts.isPropertyAccessExpression(list.expression) ? list : undefined
  if (call && nameOf(call) === 'map' && ts.isIdentifier(call.arguments[0]!))
    list = (call.expression as ts.PropertyAccessExpression).expression
  const value = ts.isIdentifier(list) ? constantOf(list) : list
  return value && hasLines(value) ? { list, separator: separator.text } : undefined
}

function hasLines(list: ts.Expression): boolean {
  if (ts.isParenthesizedExpression(list)) return hasLines(list.expression)
  if (ts.isConditionalExpression(list)) return hasLines(list.whenTrue) || hasLines(list.whenFalse)
  return ts.isArrayLiteralExpression(list) ? list.elements.length > 0 : mapping(list) !== undefined
}

/** For `list.map(each => text)`, returns the text. */
function mapping(node: ts.Expression): ts.Expression | undefined {
  if (!ts.isCallExpression(node) || nameOf(node) !== 'map') return undefined
  const [each] = node.arguments
  return each && ts.isArrowFunction(each) && isText(each.body) ? each.body : undefined
}

type TextNode = ts.StringLiteral | ts.NoSubstitutionTemplateLiteral | ts.TemplateExpression

export function isText(node: ts.Node): node is TextNode {
  return ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node)
}

/** Returns whether the expression is a `+` that joins texts. */
export function isSum(node: ts.Node): boolean {
  if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return false
  return [node.left, node.right].some(side => isPut(side) || isSum(side))
}

/** Returns whether the call only escapes its first argument (`printable`), or appends a reason to it (`withReason`). */
export function isPrintable(node: ts.Node): node is ts.CallExpression {
  return ts.isCallExpression(node) && /^(?:printable|withReason)$/.test(nameOf(node) ?? '')
}

/**
 * Returns whether this value of a constant is a text or a choice of texts. Such a value replaces the constant's name.
 */
export function isPut(node: ts.Expression): boolean {
  if (isPrintable(node)) return isPut(node.arguments[0]!)
  if (ts.isParenthesizedExpression(node)) return isPut(node.expression)
  if (ts.isConditionalExpression(node)) return isPut(node.whenTrue) && isPut(node.whenFalse)
  if (ts.isBinaryExpression(node)) return isPut(node.right)
  if (ts.isNewExpression(node)) return /Error$/.test(node.expression.getText())
  return isText(node)
}

/** Returns the value of a constant of the same function or file. Undefined for a parameter or another variable. */
export function constantOf(use: ts.Identifier): ts.Expression | undefined {
  for (let at: ts.Node = use.parent; at; at = at.parent) {
    if (ts.isFunctionLike(at) && at.parameters.some(({ name }) => binds(name, use.text))) return undefined
    if (ts.isForOfStatement(at) && binds(at.initializer, use.text)) return undefined
    if (!ts.isBlock(at) && !ts.isSourceFile(at)) continue
    for (const statement of at.statements) {
      if (!ts.isVariableStatement(statement)) continue
      const { flags, declarations } = statement.declarationList
      const found = declarations.find(({ name }) => binds(name, use.text))
      if (found) return flags & ts.NodeFlags.Const && ts.isIdentifier(found.name) ? found.initializer : undefined
    }
  }
  return undefined
}

/**
 * Returns the text, or the choice of texts, that the called function returns. Returns undefined if the function is not
 * in this file, or has any statement besides this `return`.
 */
function returnedBy(call: ts.CallExpression): ts.Expression | undefined {
  const { expression } = call
  if (!ts.isIdentifier(expression)) return undefined
  const value = constantOf(expression)
  if (value && ts.isArrowFunction(value)) return !ts.isBlock(value.body) && isPut(value.body) ? value.body : undefined
  const { statements } = call.getSourceFile()
  const called = statements.find(each => ts.isFunctionDeclaration(each) && each.name?.text === expression.text)
  const [only, ...others] = (called as ts.FunctionDeclaration | undefined)?.body?.statements ?? []
  if (!only || !ts.isReturnStatement(only) || others.length > 0) return undefined
  return only.expression && isPut(only.expression) ? only.expression : undefined
}

function binds(name: ts.Node, text: string): boolean {
  if (ts.isIdentifier(name)) return name.text === text
  if (ts.isVariableDeclarationList(name)) return name.declarations.some(each => binds(each.name, text))
  if (!ts.isObjectBindingPattern(name) && !ts.isArrayBindingPattern(name)) return false
  return name.elements.some(each => ts.isBindingElement(each) && binds(each.name, text))
}

export function nameOf({ expression }: ts.CallExpression): string | undefined {
  if (ts.isPropertyAccessExpression(expression)) return expression.name.text
  return ts.isIdentifier(expression) ? expression.text : undefined
}

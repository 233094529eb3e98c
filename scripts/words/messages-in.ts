/**
 * Finds the messages for users in a source file, from its syntax tree.
 *
 * Every text of several words counts as a message, because programs often assemble messages far from where they print
 * them. The surrounding call determines the kind of message. Constants of the same function are inserted. In the
 * result, `[x]` may be absent, `(x|y)` is one of several, and `${…}` is a value.
 */
import ts from '@typescript/typescript6'

export interface Message {
  readonly file: string
  /** The number of the line, from 1. */
  readonly line: number
  readonly kind: Kind
  /** For an error, its class and code; for help, the part of the help. */
  readonly detail: string
  readonly text: string
}

export type Kind = 'error' | 'warning' | 'help' | 'line' | 'event' | 'page' | 'part'

const codes: Readonly<Record<string, string>> = {
  LockTimeoutError: 'ERR_LOCK_TIMEOUT',
  LockLostError: 'ERR_LOCK_LOST',
  LockConnectionError: 'ERR_LOCK_CONNECTION',
  LockClosedError: 'ERR_LOCK_CLOSED',
  LockDeadlockError: 'ERR_LOCK_DEADLOCK',
  LockArgumentError: 'ERR_LOCK_ARGUMENT',
}

const helping = /^(?:argument|description|usage|addHelpText|\w*[oO]ption)$/
/** Texts of several words for machines: selectors, shell commands, settings of other programs. */
const forMachines =
  /^#|^\(prefers|redis\.call|^\s*local |exec cat|>&|^deb |^PING\n|^Created-By|already in use\\?\||(?:^| )figure$/
const printed = (file: string) => !file.startsWith('src/')

export function messagesIn(file: string, text: string): Message[] {
  return new Reader(file, text).read()
}

class Reader {
  readonly #file: string
  readonly #source: ts.SourceFile
  readonly #found: Message[] = []
  /** Texts that are already part of a message. */
  readonly #used = new Set<ts.Node>()

  constructor(file: string, text: string) {
    this.#file = file
    this.#source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  }

  read(): Message[] {
    this.#errors(this.#source)
    this.#others(this.#source)
    return this.#found.sort((a, b) => a.line - b.line)
  }

  #errors(node: ts.Node): void {
    if (ts.isNewExpression(node)) this.#error(node, node.expression.getText(), node.arguments ?? [])
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword) {
      const own = ancestor(node, ts.isClassLike)
      if (own?.name) this.#error(node, own.name.text, node.arguments, true)
    }
    ts.forEachChild(node, child => this.#errors(child))
  }

  #error(node: ts.Node, name: string, args: readonly ts.Expression[], own = false): void {
    if (!/(?:Error|^Failure|^WrongServer)$/.test(name)) return
    const [first, second, third] = args
    const warning = isWarned(node)
    let detail = codes[name] ? `${name}, ${codes[name]}` : name
    let text: string | undefined
    if (name === 'LockError' || (own && codes[name])) {
      if (first && ts.isStringLiteral(first)) detail = own ? detail : `${name}, ${first.text}`
      text = second && this.#render(second)
    } else if (name === 'LockArgumentError') {
      text = third && `${this.#render(first!)} is ${this.#render(second!)}; accepted: ${this.#render(third)}`
    } else if (name === 'LockLostError') {
      text = second && `lock "\${key}" was lost: ${this.#render(second)}`
    } else if (name === 'LockConnectionError') {
      text = first && `${this.#render(first)}${second ? `: ${this.#render(second)}` : ''}`
    } else if (name !== 'LockTimeoutError' && name !== 'LockClosedError' && name !== 'LockDeadlockError') {
      text = first && this.#render(first)
      if (name === 'Failure' && second) detail = `baton, exit code ${second.getText().replace('exitCodes.', '')}`
      if (name === 'InvalidArgumentError') detail = 'baton, exit code usage'
    }
    if (text === undefined || !/\p{L}{2}/u.test(text.replaceAll(/\$\{.*?\}/g, ''))) return
    this.#add(node, warning ? 'warning' : 'error', detail, text)
  }

  #others(node: ts.Node): void {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || ts.isTypeNode(node)) return
    if (ts.isInterfaceDeclaration(node) && node.name.text === 'ClientEvents') this.#events(node)
    if (ts.isTaggedTemplateExpression(node)) this.#page(node)
    else if (ts.isCallExpression(node) && isLines(node) && !this.#used.has(node.expression.expression.elements[0]!)) {
      this.#literal(node)
    } else if (isText(node) && !this.#used.has(node)) this.#literal(node)
    ts.forEachChild(node, child => this.#others(child))
  }

  #literal(node: ts.Expression): void {
    const call = ancestor(node, ts.isCallExpression)
    const callee = call && nameOf(call)
    const made = ancestor(node, ts.isNewExpression)?.expression.getText()
    const help = (callee && helping.test(callee)) || made === 'Option' || made === 'Argument'
    const text = help ? this.#help(node, call) : this.#render(node)
    if (!isProse(text)) return
    const kind = help ? 'help' : isWarned(node) ? 'warning' : printed(this.#file) ? 'line' : 'part'
    this.#add(node, kind, help ? (callee === 'addHelpText' || callee === 'description' ? callee : '') : '', text)
  }

  /** Returns the text of an option's help, with the option's name. */
  #help(node: ts.Expression, call: ts.CallExpression | undefined): string {
    const text = this.#render(node)
    const [first] = ancestor(node, ts.isNewExpression)?.arguments ?? call?.arguments ?? []
    return first && first !== node && isText(first) && /^(?:-|<|\[)/.test(this.#render(first))
      ? `${this.#render(first)}  ${text}`
      : text
  }

  #events(node: ts.InterfaceDeclaration): void {
    for (const member of node.members) {
      const doc = ts.getJSDocCommentsAndTags(member).map(each => ts.getTextOfJSDocComment(each.comment) ?? '')
      this.#add(member, 'event', member.name?.getText() ?? '', doc.join(' ').trim())
    }
  }

  /** Adds the texts between a page's tags, and its labels, titles and placeholders. */
  #page(node: ts.TaggedTemplateExpression): void {
    const text = this.#render(node.template)
    const attributes = [...text.matchAll(/(?:aria-label|title|placeholder)="([^"]*)"/g)].map(([, words]) => words!)
    for (const words of [...text.split(/<[^>]*>/), ...attributes]) {
      if (isProse(words)) this.#add(node, 'page', '', words.trim())
    }
  }

  #add(node: ts.Node, kind: Kind, detail: string, text: string): void {
    const { line } = this.#source.getLineAndCharacterOfPosition(node.getStart(this.#source))
    this.#found.push({ file: this.#file, line: line + 1, kind, detail, text })
  }

  /** Returns the text of an expression, as far as the source shows it. */
  #render(node: ts.Expression, depth = 0): string {
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      this.#used.add(node)
      return node.text
    }
    if (ts.isTemplateExpression(node)) {
      this.#used.add(node)
      const spans = node.templateSpans.map(span => `${this.#render(span.expression, depth)}${span.literal.text}`)
      return node.head.text + spans.join('')
    }
    if (ts.isParenthesizedExpression(node)) return this.#render(node.expression, depth)
    if (isLines(node)) return node.expression.expression.elements.map(line => this.#render(line, depth)).join('\n')
    if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText())) {
      const [first, second] = node.arguments ?? []
      const message = node.expression.getText() === 'AggregateError' ? second : first
      if (message) return this.#render(message, depth)
    }
    if (ts.isBinaryExpression(node)) {
      const { operatorToken, left, right } = node
      if (operatorToken.kind === ts.SyntaxKind.PlusToken && (isPut(left) || isPut(right))) {
        return this.#render(left, depth) + this.#render(right, depth)
      }
      if (operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken) return optional(this.#render(right, depth))
    }
    if (ts.isConditionalExpression(node)) {
      const [one, other] = [this.#render(node.whenTrue, depth), this.#render(node.whenFalse, depth)]
      if (one === '' || other === '') return optional(one || other)
      return one === other ? one : `(${one}|${other})`
    }
    if (ts.isIdentifier(node) && depth < 3) {
      const value = constantOf(node)
      if (value && isPut(value)) return this.#render(value, depth + 1)
    }
    return placeholder(node)
  }
}

function optional(text: string): string {
  return text === '' ? '' : `[${text}]`
}

const VALUE = '\u0024{…}'

/** Returns what stands for a value in a message: its expression if that is short, otherwise `${…}`. */
function placeholder(node: ts.Expression): string {
  const name = node.getText().replaceAll(/\s+/g, ' ')
  return name.length <= 40 && !/['"`{}]/.test(name) ? `\${${name}}` : VALUE
}

/** Returns whether the expression has the form `[…].join('\\n')`. */
function isLines(
  node: ts.Expression,
): node is ts.CallExpression & { expression: { expression: ts.ArrayLiteralExpression } } {
  if (!ts.isCallExpression(node) || nameOf(node) !== 'join' || node.arguments[0]?.getText() !== "'\\n'") return false
  return ts.isPropertyAccessExpression(node.expression) && ts.isArrayLiteralExpression(node.expression.expression)
}

type TextNode = ts.StringLiteral | ts.NoSubstitutionTemplateLiteral | ts.TemplateExpression

function isText(node: ts.Node): node is TextNode {
  return ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isTemplateExpression(node)
}

/** Returns whether to insert a constant where it is used: it must be a text, or a choice of texts. */
function isPut(node: ts.Expression): boolean {
  if (ts.isParenthesizedExpression(node)) return isPut(node.expression)
  if (ts.isConditionalExpression(node)) return isPut(node.whenTrue) && isPut(node.whenFalse)
  if (ts.isBinaryExpression(node)) return isPut(node.right)
  if (ts.isNewExpression(node)) return /Error$/.test(node.expression.getText())
  return isText(node)
}

/** Returns the value of a constant of the same function or file. */
function constantOf(use: ts.Identifier): ts.Expression | undefined {
  for (let at: ts.Node = use.parent; at; at = at.parent) {
    if (!ts.isBlock(at) && !ts.isSourceFile(at)) continue
    for (const statement of at.statements) {
      if (!ts.isVariableStatement(statement) || !(statement.declarationList.flags & ts.NodeFlags.Const)) continue
      const found = statement.declarationList.declarations.find(({ name }) => name.getText() === use.text)
      if (found) return found.initializer
    }
  }
  return undefined
}

/** Returns whether the text has two adjacent words, and is not for machines. */
function isProse(text: string): boolean {
  const words = text.replaceAll(/\$\{.*?\}/g, '…')
  return /\p{L}[\p{L}'-]*[,;:]? \p{L}{2}|… \p{L}{2,}|\p{L}{2,} …/u.test(words) && !forMachines.test(text)
}

/** Returns whether the expression is an argument of a function that warns. */
function isWarned(node: ts.Node): boolean {
  const call = ancestor(node, ts.isCallExpression)
  return call !== undefined && /^#?warn(?:ed)?$/.test(nameOf(call) ?? '')
}

function nameOf({ expression }: ts.CallExpression): string | undefined {
  if (ts.isPropertyAccessExpression(expression)) return expression.name.text
  return ts.isIdentifier(expression) ? expression.text : undefined
}

/** Returns the nearest enclosing node of this kind within the same statement. */
function ancestor<T extends ts.Node>(node: ts.Node, is: (node: ts.Node) => node is T): T | undefined {
  const wide = is === (ts.isClassLike as unknown)
  for (let at = node.parent; at; at = at.parent) {
    if (is(at)) return at
    if (!wide && (ts.isStatement(at) || ts.isFunctionLike(at))) return undefined
  }
  return undefined
}

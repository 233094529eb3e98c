/**
 * Finds the messages for users in a source file, from its syntax tree.
 *
 * Every text of several words counts as a message, because programs often assemble messages far from where they print
 * them. The surrounding call determines the kind of message. If a text is part of a larger text in the same file, only
 * the larger text is listed. To build it, a constant is replaced by its value, and lines that are printed together are
 * joined. If the reason of an error is the result of a function, or a parameter, the message of the error is listed
 * with that reason in it. Texts that are only names, such as the title of a column, are not listed. In the result,
 * `[x]` is a part that may be absent, `(x|y)` is a choice between texts, and `${…}` is a value.
 */
import ts from '@typescript/typescript6'
import { constantOf, isPrintable, isSum, isText, joinedBy, nameOf, Renderer } from './rendered.ts'
import { shownIn, wholeOf } from './shown-in.ts'

export interface Message {
  readonly file: string
  /** The number of the line, from 1. */
  readonly line: number
  readonly kind: Kind
  /** The class and code of an error, the name of an event, or the method that adds a text to the help. May be empty. */
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

/**
 * Errors that users see only as the reason within another message. Each entry has the start of a file's path, the class
 * of the error, and the other message. In that message, `…` stands for the reason.
 */
const reasons: readonly [file: string, name: string, message: string][] = [
  ['cli/reach.ts', 'Error', 'Redis at \u0024{address} cannot be used: …'],
  ['src/compose/quorum/', 'Error', 'server \u0024{i} of \u0024{n}: …'],
  ['src/redis/connection.ts', 'Error', '[lock "\u0024{key}": ]Redis did not answer for \u0024{outageTimeout} ms: …'],
  ['src/redis/listing.ts', 'Error', 'Redis did not answer for \u0024{outageTimeout} ms: …'],
  ['src/redis/shards.ts', 'Error', '[lock "\u0024{key}": ]cannot subscribe to \u0024{channel}: …'],
  ['src/wait/acquire.ts', 'Error', '[lock "\u0024{key}": ]Redis did not answer for \u0024{limit} ms: …'],
  ['src/', 'WrongServer', '[lock "\u0024{key}": ]…'],
]

const helping = /^(?:argument|description|usage|addHelpText|\w*[oO]ption)$/
/** Texts of several words for machines: selectors, shell commands, settings of other programs, names of symbols. */
const forMachines =
  /^#|^\(prefers|redis\.call|^\s*local |exec cat|>&|^deb |^PING\b|^Created-By|already in use\\?\||(?:^| )figure$|^default-src |^entered |^beat |^LockModule options|^Dir::|^LockClient of @Locked/
/** Properties that hold the names of columns, rows and scenarios. */
const naming = /^(?:title|axisTitle|name|head|heads|unit|what|label)$/
/** Tags within a sentence. The other tags of a page separate its texts. */
const inline = /<\/?(?:a|abbr|b|bdi|code|em|i|kbd|span|strong|sub|sup|var)\b[^>]*>/g
const printed = (file: string) => !file.startsWith('src/')

export function messagesIn(file: string, text: string): Message[] {
  return new Reader(file, text).read()
}

class Reader {
  readonly #file: string
  readonly #source: ts.SourceFile
  readonly #found = new Map<ts.Node, Message[]>()
  readonly #renderer = new Renderer()

  constructor(file: string, text: string) {
    this.#file = file
    this.#source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  }

  read(): Message[] {
    this.#errors(this.#source)
    this.#joined(this.#source)
    this.#others(this.#source)
    return [...this.#found.values()].flat().sort((a, b) => a.line - b.line)
  }

  #errors(node: ts.Node): void {
    if (ts.isNewExpression(node)) this.#error(node, node.expression.getText(), node.arguments ?? [])
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword) {
      const own = ancestor(node, ts.isClassLike)
      if (own?.name) this.#error(node, own.name.text, node.arguments, true)
    }
    ts.forEachChild(node, child => this.#errors(child))
  }

  #error(node: ts.Node, name: string, args: readonly ts.Expression[], own = false, at = node): void {
    if (!/(?:Error|^Failure|^WrongServer)$/.test(name) || isReasonOf(node)) return
    const [first, second, third] = args
    const warning = isWarned(node)
    let detail = codes[name] ? `${name}, ${codes[name]}` : name
    let text: string | undefined
    if (name === 'LockError' || (own && codes[name])) {
      if (first && ts.isStringLiteral(first)) detail = own ? detail : `${name}, ${first.text}`
      text = second && this.#render(second)
    } else if (name === 'LockArgumentError') {
      text = third && `${this.#render(first!)} is ${this.#render(second!)}; expected ${this.#render(third)}`
    } else if (name === 'LockLostError') {
      text = second && `lock "\${key}" was lost: ${this.#render(second)}`
    } else if (name === 'LockConnectionError') {
      text = first && `${this.#render(first)}${second ? `: ${this.#render(second)}` : ''}`
    } else if (name !== 'LockTimeoutError' && name !== 'LockClosedError' && name !== 'LockDeadlockError') {
      text = first && this.#render(first)
      if (name === 'Failure' && second) detail = `baton, exit code ${exitCodeOf(second)}`
      if (name === 'InvalidArgumentError') {
        detail = 'baton, exit code usage'
        text = text && `option '\${option}' argument '\${value}' is invalid. ${text}`
      }
    }
    if (text === undefined || !/\p{L}{2}/u.test(text.replaceAll(/\$\{.*?\}/g, ''))) return
    // If the error belongs to one lock, the message begins with the key of that lock.
    const prefix = name === 'LockConnectionError' && !own ? '[lock "\u0024{key}": ]' : ''
    const [, , whole = '…'] = reasons.find(([start, of]) => this.#file.startsWith(start) && of === name) ?? []
    this.#add(at, warning ? 'warning' : 'error', detail, prefix + whole.replace('…', () => text))
  }

  #joined(node: ts.Node): void {
    if (joinedBy(node) && this.#isNew(node)) this.#text(node as ts.Expression)
    ts.forEachChild(node, child => this.#joined(child))
  }

  #others(node: ts.Node): void {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || ts.isTypeNode(node)) return
    if (ts.isInterfaceDeclaration(node) && node.name.text === 'ClientEvents') this.#events(node)
    if (ts.isTaggedTemplateExpression(node)) this.#page(node)
    else if (ts.isArrayLiteralExpression(node) && !joinedBy(node.parent.parent)) this.#array(node)
    else if ((isText(node) || isSum(node)) && !this.#isUsed(node)) this.#text(node as ts.Expression)
    ts.forEachChild(node, child => this.#others(child))
  }

  #isUsed(node: ts.Node): boolean {
    return isSum(node) ? !this.#isNew(node) : this.#renderer.used.has(node)
  }

  /** Returns whether neither this expression nor a part of it has been added to a message yet. */
  #isNew(node: ts.Node): boolean {
    return (
      !this.#renderer.used.has(node) &&
      (ts.forEachChild(node, child => !this.#isNew(child) || undefined) ?? false) === false
    )
  }

  /**
   * If a function returns a list of texts, and one of them contains a value, adds the list as one message, with a line
   * for each text. If all texts are names, marks them as used, so that they are not added at all.
   */
  #array(node: ts.ArrayLiteralExpression): void {
    const texts = node.elements.filter(isText)
    if (texts.length > 1 && texts.every(text => ts.isStringLiteral(text) && isName(text.text))) {
      for (const text of texts) this.#renderer.used.add(text)
    } else if (ts.isReturnStatement(node.parent) && texts.some(ts.isTemplateExpression) && this.#isNew(node)) {
      this.#text(node)
    }
  }

  /**
   * Adds the message for a text: the text itself, or a larger text of this file that contains it. `at` has its line.
   */
  #text(node: ts.Expression, at: ts.Node = node, depth = 0): void {
    const use = depth < 4 ? shownIn(node) : undefined
    if (use === 'inserted') return
    if (use === undefined) return this.#literal(node, at)
    const text = this.#renderer.render(node)
    if (depth === 0 && (!isProse(text) || isName(text))) return
    this.#renderer.instead.set(use, text)
    const whole = wholeOf(use)
    const { parent } = whole
    const made = ts.isNewExpression(parent) ? parent.expression.getText() : undefined
    if (made === 'Option') this.#literal(whole, at)
    else if (ts.isNewExpression(parent))
      this.#error(parent, parent.expression.getText(), parent.arguments ?? [], false, at)
    else this.#text(joinedBy(parent.parent?.parent) ? (parent.parent.parent as ts.Expression) : whole, at, depth + 1)
    this.#renderer.instead.delete(use)
    // The larger text may have been added before, with the name of a parameter in the place of this text. That message
    // is now removed.
    if (ts.isIdentifier(use) && !constantOf(use)) this.#found.delete(ts.isNewExpression(parent) ? parent : whole)
  }

  #literal(node: ts.Expression, at: ts.Node): void {
    const call = ancestor(node, ts.isCallExpression)
    const callee = call && nameOf(call)
    // The third argument is a default value, not a text for users.
    if (/^(?:option|argument)$/.test(callee ?? '') && call?.arguments[2] === node) return
    const made = ancestor(node, ts.isNewExpression)?.expression.getText()
    const help = (callee && helping.test(callee)) || made === 'Option' || made === 'Argument'
    const text = help ? this.#help(node, call) : this.#render(node)
    const named = ts.isPropertyAssignment(node.parent) && naming.test(node.parent.name.getText())
    if (!isProse(text) || (!help && (named || isName(text)))) return
    const kind = help ? 'help' : isWarned(node) ? 'warning' : printed(this.#file) ? 'line' : 'part'
    this.#add(at, kind, help ? (callee === 'addHelpText' || callee === 'description' ? callee : '') : '', text)
  }

  /** Returns the text of an option's help, with the option's name and its default, as commander prints them. */
  #help(node: ts.Expression, call: ts.CallExpression | undefined): string {
    const text = this.#render(node)
    const [first] = ancestor(node, ts.isNewExpression)?.arguments ?? call?.arguments ?? []
    const given = defaultOf(ancestor(node, ts.isNewExpression) ?? call)
    // `urlOption('address of …')` makes the option `--url`.
    const [, own] = /^([a-z]+)Option$/.exec((call && nameOf(call)) ?? '') ?? []
    if (first === node && own && own !== 'add') return `--${own} <${own}>  ${text}`
    return first && first !== node && isText(first) && /^(?:-|<|\[)/.test(this.#render(first))
      ? `${this.#render(first)}  ${text}${given && ` (default: ${given})`}`
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
    const texts = text
      .replaceAll(/<\/dt>\s*<dd[^>]*>/g, ': ')
      .replaceAll(inline, '')
      .split(/<[^>]*>/)
    for (const words of [...texts, ...attributes]) {
      if (isProse(words) && !isName(words)) this.#add(node, 'page', '', words.trim())
    }
  }

  #add(node: ts.Node, kind: Kind, detail: string, text: string): void {
    const { line } = this.#source.getLineAndCharacterOfPosition(node.getStart(this.#source))
    const own = this.#found.get(node) ?? []
    this.#found.set(node, [...own, { file: this.#file, line: line + 1, kind, detail, text }])
  }

  #render(node: ts.Expression): string {
    return this.#renderer.render(node)
  }
}

/** Returns whether the text has two adjacent words, and is not for machines. */
function isProse(text: string): boolean {
  const words = text.replaceAll(/\$\{.*?\}/g, '…')
  return /\p{L}[\p{L}'-]*[,;:]? \p{L}{2}|… \p{L}{2,}|\p{L}{2,} …/u.test(words) && !forMachines.test(text)
}

/**
 * Returns the default of an option: the last argument of `.option`, or the argument of `.default` after `new Option`.
 */
function defaultOf(node: ts.Node | undefined): string {
  for (let at = node; at && !ts.isStatement(at) && !ts.isVariableDeclaration(at); at = at.parent) {
    const call = at !== node && ts.isCallExpression(at) && nameOf(at) === 'default' ? at : undefined
    if (call) return call.arguments.at(-1)!.getText().replaceAll("'", '')
    if (at === node && ts.isCallExpression(at)) {
      const last = at.arguments.length > 2 ? at.arguments.at(-1)! : undefined
      return last && (ts.isNumericLiteral(last) || ts.isStringLiteral(last)) ? last.text : ''
    }
  }
  return ''
}

/** Returns the name of an exit code. If the expression chooses between two exit codes, returns `a or b`. */
function exitCodeOf(node: ts.Expression): string {
  const text = node.getText().replaceAll('exitCodes.', '')
  return text.replace(/^.*\? (.*) : /, '$1 or ')
}

/** Returns whether the text is only a name, such as the title of a column: short, and not a sentence. */
function isName(text: string): boolean {
  const words = text.replace(/:\s*–?\s*$/, '').trim()
  return !/[.?!…]$|\$\{/.test(words) && words.split(/\s+/).length < 4
}

/**
 * Returns whether the error is assigned to a constant, and the same file passes that constant to another error as its
 * reason.
 */
function isReasonOf(node: ts.Node): boolean {
  const { parent } = node
  if (!ts.isVariableDeclaration(parent) || !ts.isIdentifier(parent.name)) return false
  const constant = parent.name.text
  const takes = (at: ts.Node): boolean =>
    (ts.isNewExpression(at) &&
      /Error$/.test(at.expression.getText()) &&
      at.arguments?.some(each => ts.isIdentifier(each) && each.text === constant)) ||
    (ts.forEachChild(at, child => takes(child) || undefined) ?? false)
  return takes(node.getSourceFile())
}

/** Returns whether the expression is an argument of a function that warns. */
function isWarned(node: ts.Node): boolean {
  let call = ancestor(node, ts.isCallExpression)
  if (call && isPrintable(call)) call = ancestor(call, ts.isCallExpression)
  return call !== undefined && /^#?warn(?:ed)?$/.test(nameOf(call) ?? '')
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

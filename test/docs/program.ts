/**
 * Turns the blocks of a page into programs: TypeScript modules, and shell scripts. Each program's text is on the same
 * lines as on the page; all other lines are empty. So errors of the compiler, of Node and of the shell have the line
 * numbers of the page.
 */
import { parseAllDocuments } from 'yaml'
import { elsewhere, notRun, typesOnly } from './declared.ts'
import type { Block, Page, Piece } from './page.ts'

/** One or more blocks that are run as one program. */
export interface Program {
  readonly page: string
  /** The line and the language of the program's first block. */
  readonly title: string
  readonly blocks: readonly Block[]
  readonly work: Work
}

export type Work =
  | { readonly kind: 'module'; readonly source: string; readonly typesOnly: boolean }
  | { readonly kind: 'script'; readonly source: string }
  /** JSON or YAML, which is not run. It has already been parsed, without an error. */
  | { readonly kind: 'data' }
  /** A block that the tests cannot use, although it is not among the exceptions in declared.ts. */
  | { readonly kind: 'unusable'; readonly why: string }

/** Returns the programs of a page. Drawings, and the blocks that declared.ts lists in `notRun`, are left out. */
export function programsOf(page: Page): Program[] {
  const groups: [Block, ...Block[]][] = []
  for (const block of page.blocks) {
    if (block.language === 'text' || isDeclared(notRun, page, block)) continue
    const before = groups.at(-1)
    if (block.goesOn && before) before.push(block)
    else groups.push([block])
  }
  return groups.map(blocks => {
    const [{ line, language = 'no language' }] = blocks
    const more = blocks.length > 1 ? `, and what goes on with it (${blocks.length} blocks)` : ''
    return { page: page.name, title: `line ${line}, ${language}${more}`, blocks, work: workOf(page, blocks) }
  })
}

function workOf(page: Page, blocks: readonly [Block, ...Block[]]): Work {
  const shell = blocks.filter(({ language }) => language === 'sh')
  if (shell.length === blocks.length) {
    const source = onTheirLines(blocks.flatMap(each => [...each.before, withoutOthers(each), ...each.after]))
    return { kind: 'script', source }
  }
  if (shell.length > 0)
    return { kind: 'unusable', why: 'a script of the shell and something else are to be one program' }
  for (const block of blocks) {
    const why = whyUnusable(block)
    if (why !== undefined) return { kind: 'unusable', why }
  }
  if (blocks.every(block => isData(block) && block.after.length === 0)) return { kind: 'data' }
  const pieces = blocks.flatMap(each => [...each.before, asTypeScript(each), ...each.after])
  const setUp = blocks.some(({ language }) => language === 'ts') ? page.setUp : []
  return {
    kind: 'module',
    source: onTheirLines([...setUp, ...pieces]),
    typesOnly: isDeclared(typesOnly, page, blocks[0]),
  }
}

function isData({ language }: Block): boolean {
  return language === 'json' || language === 'yaml'
}

function whyUnusable(block: Block): string | undefined {
  const { language, text, line, after } = block
  if (language === 'ts') return undefined
  if (isData(block)) return mistakeIn(language as 'json' | 'yaml', text)
  return after.length > 0
    ? undefined
    : `nothing runs what begins at line ${line}: docs/testing.md says what a block needs`
}

/**
 * Turns a block that is not TypeScript into a declaration of the string `code`, which has the block's text. The checks
 * in the page's hidden comments can read `code`. The declaration uses `var`, because a later block may declare `code`
 * again.
 */
function asTypeScript({ language, text, line }: Block): Piece {
  return language === 'ts' ? { text, line } : { text: `var code = ${JSON.stringify(text)}`, line }
}

function mistakeIn(language: 'json' | 'yaml', text: string): string | undefined {
  if (language === 'yaml') return parseAllDocuments(text).flatMap(document => document.errors)[0]?.message
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return String(error)
  }
}

/** Returns a shell line without the comment at its end. */
export function commandOf(line: string): string {
  return line.replace(/(^|\s)#.*$/, '').trim()
}

/**
 * Returns the block without the commands that the tests of the documentation do not run (`elsewhere` in declared.ts).
 */
function withoutOthers({ text, line }: Piece): Piece {
  const run = (line: string) => !elsewhere.some(({ command }) => command === commandOf(line))
  return {
    text: text
      .split('\n')
      .map(line => (run(line) ? line : ''))
      .join('\n'),
    line,
  }
}

function isDeclared(list: readonly { page: string; begins: string }[], page: Page, { text }: Block): boolean {
  return list.some(({ page: name, begins }) => name === page.name && text.startsWith(begins))
}

function onTheirLines(pieces: readonly Piece[]): string {
  const lines: string[] = []
  for (const { text, line } of pieces) {
    for (const [index, each] of text.split('\n').entries()) {
      const at = line - 1 + index
      // Several pieces may share a line: two hidden comments may be on one line of the page, or a hidden comment may
      // end on a line of code.
      lines[at] = lines[at]?.trim() ? `${lines[at]}; ${each}` : each
    }
  }
  return `${Array.from(lines, line => line ?? '').join('\n')}\n`
}

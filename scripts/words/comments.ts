/** Finds the comments of a source file. Adjacent lines of `//` or `--` are one comment. */
import ts from '@typescript/typescript6'
import { enclosing } from './enclosing.ts'

export interface Comment {
  /** The number of the comment's first line, from 1. */
  readonly line: number
  /** The text as in the source, including `//`, `/*` or `--`. */
  readonly text: string
  /** The next lines of code, which the comment describes. */
  readonly code: readonly string[]
  /** The first line of the function, class, interface or test that the comment is in. Undefined if it is in none. */
  readonly within: string | undefined
}

/** The positions in the file where a comment begins and ends. */
type Range = readonly [from: number, to: number]

const LINES_OF_CODE = 3

/** Files that comments are read from. */
export const commented = /\.(?:[mc]?ts|mjs|cjs|lua|pml|c|java)$/

/** Comments for tools, which people do not read as sentences. */
const directive = /^\s*(?:\/\/|\/\*|--)\s*(?:biome-ignore|@ts-|include:|\[\[|\]\]|@__PURE__)/

export function commentsIn(file: string, text: string): Comment[] {
  const starts = lineStarts(text)
  const lineAt = (position: number) => starts.findLastIndex(start => start <= position)
  const ranges = rangesIn(file, text).filter(([from, to]) => !directive.test(text.slice(from, to)))
  const hasCodeBefore = ([from]: Range) => text.slice(starts[lineAt(from)]!, from).trim() !== ''
  const within = enclosing(file, text)
  const blocks: [Range, ...Range[]][] = []
  for (const range of ranges) {
    const before = blocks.at(-1)?.at(-1)
    const goesOn =
      before !== undefined &&
      !text.startsWith('/*', range[0]) &&
      !text.startsWith('/*', before[0]) &&
      !hasCodeBefore(range) &&
      !hasCodeBefore(before) &&
      lineAt(range[0]) === lineAt(before[0]) + 1
    if (goesOn) blocks.at(-1)!.push(range)
    else blocks.push([range])
  }
  return blocks.flatMap(block => {
    const [from] = block[0]
    const to = block.at(-1)![1]
    const words = text.slice(from, to)
    if (!saysSomething(words)) return []
    // A comment at the end of a line describes that line.
    const beside = hasCodeBefore(block[0])
    const after = text.slice(beside ? starts[lineAt(from)] : to).split('\n')
    const code = after.filter(line => line.trim() !== '').slice(0, LINES_OF_CODE)
    return [{ line: lineAt(from) + 1, text: dedent(words), code, within: within(from) }]
  })
}

/** Returns whether the comment contains a word besides tags. */
function saysSomething(words: string): boolean {
  return /\p{L}{2}/u.test(words.replaceAll(/@(?:since [\d.]+|\w+)/g, ''))
}

/** Removes the comment's own indentation in the file. The first line of `words` has none, so it is kept as it is. */
function dedent(words: string): string {
  const [first = '', ...others] = words.split('\n')
  return [first, ...others.map(line => line.replace(/^\s+(?=\*|--|\/\/)/, first.startsWith('/*') ? ' ' : ''))].join(
    '\n',
  )
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

function rangesIn(file: string, text: string): Range[] {
  if (/\.(?:[mc]?ts|mjs|cjs)$/.test(file)) return rangesInTypeScript(file, text)
  return file.endsWith('.lua') ? rangesBy(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|--.*/g, '--', text) : rangesInC(text)
}

function rangesInC(text: string): Range[] {
  return rangesBy(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/\/.*|\/\*[\s\S]*?\*\//g, '/', text)
}

/**
 * Returns the positions of the comments. `token` matches comments and strings: a string is matched as a whole, so text
 * inside it is not mistaken for a comment. A match is a comment if it begins with `sign`.
 */
function rangesBy(token: RegExp, sign: string, text: string): Range[] {
  const found = [...text.matchAll(token)].filter(([match]) => match.startsWith(sign))
  return found.map(({ 0: match, index }) => [index, index + match.length] as const)
}

function rangesInTypeScript(file: string, text: string): Range[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found = new Map<number, Range>()
  const visit = (node: ts.Node) => {
    if (node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode) return
    const children = node.getChildren(source)
    if (children.length > 0) return children.forEach(visit)
    const at = node.getFullStart()
    const around = [
      ...(ts.getLeadingCommentRanges(text, at) ?? []),
      ...(ts.getTrailingCommentRanges(text, at === 0 ? 0 : node.getEnd()) ?? []),
    ]
    for (const { pos, end } of around) found.set(pos, [pos, end])
  }
  visit(source)
  return [...found.values()].sort(([a], [b]) => a - b)
}

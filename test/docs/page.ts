/**
 * A page of the documentation, parsed for its tests: the code blocks, the hidden comments (HTML comments that instruct
 * the tests), the links, and the anchors of the headings. docs/testing.md describes how to write a page.
 */
import { readdirSync, readFileSync } from 'node:fs'
import GithubSlugger from 'github-slugger'
import type { Code, Nodes } from 'mdast'
import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { toString as textOf } from 'mdast-util-to-string'
import { gfm } from 'micromark-extension-gfm'
import { visit } from 'unist-util-visit'

export const root = new URL('../../', import.meta.url)

/** A piece of a page's text, and the line on which it begins, counted from 1. */
export interface Piece {
  readonly text: string
  readonly line: number
}

export interface Block extends Piece {
  /** The word after the three backticks. */
  readonly language: string | undefined
  /** Code from hidden comments that runs before the block. */
  readonly before: readonly Piece[]
  /** Checks from hidden comments that run after the block. */
  readonly after: readonly Piece[]
  /** Whether the block continues the previous one. */
  readonly goesOn: boolean
  /** Whether the block shows the output of the previous one. */
  readonly prints: boolean
}

export interface Page {
  /** The page's path from the root of the project. */
  readonly name: string
  /** Code from hidden comments that is put before each TypeScript block of the page. */
  readonly setUp: readonly Piece[]
  readonly blocks: readonly Block[]
  readonly links: readonly Piece[]
  readonly anchors: ReadonlySet<string>
}

/** Returns the names of all pages: those in the root folder, and those in `folders`. */
export function pageNames(): string[] {
  const folders = ['docs', 'lua', 'examples', 'benchmarks']
  const inside = folders.flatMap(folder =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' }).map(name => `${folder}/${name}`),
  )
  return [...readdirSync(root), ...inside].filter(name => name.endsWith('.md')).sort()
}

export function readPage(name: string): Page {
  return parsePage(name, readFileSync(new URL(name, root), 'utf8'))
}

export function parsePage(name: string, source: string): Page {
  const reader = new Reader(name)
  const tree = fromMarkdown(source, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] })
  visit(tree, node => reader.read(node))
  return reader.end()
}

interface Draft extends Block {
  readonly after: Piece[]
}

class Reader {
  readonly #page: string
  readonly #setUp: Piece[] = []
  readonly #blocks: Draft[] = []
  readonly #links: Piece[] = []
  readonly #anchors = new Set<string>()
  readonly #slugger = new GithubSlugger()
  #before: Piece[] = []
  #goesOn = false
  #prints = false

  constructor(page: string) {
    this.#page = page
  }

  read(node: Nodes): void {
    const line = node.position?.start.line ?? 1
    if (node.type === 'heading') this.#anchors.add(this.#slugger.slug(textOf(node)))
    else if (node.type === 'link' || node.type === 'image' || node.type === 'definition') {
      this.#links.push({ text: node.url, line })
    } else if (node.type === 'code') this.#block(node, line)
    else if (node.type === 'html') this.#html(node.value, line)
  }

  end(): Page {
    if (this.#before.length > 0 || this.#goesOn || this.#prints) throw new Error(`${this.#page}: no block follows`)
    return {
      name: this.#page,
      setUp: this.#setUp,
      blocks: this.#blocks,
      links: this.#links,
      anchors: this.#anchors,
    }
  }

  #block({ value, lang, position }: Code, line: number): void {
    // A fenced block begins with a line of backticks, which is not part of its text. An indented block has no such
    // line.
    const fences = position ? position.end.line - line - value.split('\n').length : 1
    this.#blocks.push({
      text: value,
      line: fences > 0 ? line + 1 : line,
      language: lang ?? undefined,
      before: this.#before,
      after: [],
      goesOn: this.#goesOn,
      prints: this.#prints,
    })
    this.#before = []
    this.#goesOn = false
    this.#prints = false
  }

  #html(html: string, line: number): void {
    for (const [, id] of html.matchAll(/<a (?:id|name)="([^"]+)"/g)) this.#anchors.add(id!)
    for (const [, url] of html.matchAll(/<(?:a|img|source) (?:[^>]*\s)?(?:href|src|srcset)="([^"]+)"/g)) {
      this.#links.push({ text: url!, line })
    }
    for (const comment of html.matchAll(/<!--([\s\S]*?)-->/g)) {
      const above = html.slice(0, comment.index).split('\n').length - 1
      this.#comment(comment[1]!, line + above)
    }
  }

  #comment(comment: string, line: number): void {
    const said = comment.trim()
    if (said === 'goes on') this.#goesOn = true
    else if (said === 'prints') this.#prints = true
    const [head, word] = /^\s*(\w+):/.exec(comment) ?? []
    if (head === undefined) return
    // The text after the first word keeps its line number, so that errors have the line numbers of the page.
    const piece = { text: comment.slice(head.length), line: line + head.split('\n').length - 1 }
    if (word === 'page') this.#setUp.push(piece)
    else if (word === 'with') this.#before.push(piece)
    else if (word === 'check' && this.#blocks.length > 0) this.#blocks.at(-1)!.after.push(piece)
    else throw new Error(`${this.#page}:${line}: no such comment here: ${word}`)
  }
}

/** Doc comments, taken apart and written as markdown. */
import { ApiDocumentedItem, type ApiItem } from '@microsoft/api-extractor-model'
import type {
  DocBlock,
  DocCodeSpan,
  DocComment,
  DocErrorText,
  DocEscapedText,
  DocFencedCode,
  DocLinkTag,
  DocNode,
  DocPlainText,
} from '@microsoft/tsdoc'
import { markdownTable } from 'markdown-table'

/** Turns the name of a public item into a link to it, or leaves it as it is. */
export type Link = (name: string) => string

export function commentOf(item: ApiItem): DocComment | undefined {
  return item instanceof ApiDocumentedItem ? item.tsdocComment : undefined
}

/** What the item is, in words; empty where nobody has said. */
export function description(item: ApiItem, link: Link): string {
  const comment = commentOf(item)
  const parts = [comment?.summarySection, comment?.remarksBlock?.content].map(node => text(node, link).trim())
  // API Extractor has a sentence for constructors that have none, which says nothing.
  return parts
    .filter(part => part && !part.startsWith('Constructs a new instance of the'))
    .join('\n\n')
    .replace(/\n{3,}/g, '\n\n')
}

/** The contents of all blocks of a kind: `@throws`, `@defaultValue`, `@since`, `@example`. */
export function blocks(item: ApiItem, tag: string, link: Link): string[] {
  const comment = commentOf(item)
  const all: readonly DocBlock[] = [...(comment?.customBlocks ?? []), ...(comment?.seeBlocks ?? [])]
  return all.filter(({ blockTag }) => blockTag.tagName === tag).map(({ content }) => text(content, link).trim())
}

export function returns(item: ApiItem, link: Link): string {
  return text(commentOf(item)?.returnsBlock?.content, link).trim()
}

/** A table without the columns in which nothing stands. */
export function table(titles: readonly string[], rows: readonly string[][]): string {
  const filled = titles.flatMap((_, i) => (rows.some(row => row[i]) ? [i] : []))
  const cells = [titles, ...rows].map(row => filled.map(i => row[i]!))
  // Not padded: a longer word in one row would change all others.
  return markdownTable(cells, { alignDelimiters: false })
}

/** In one line, as in the cell of a table. */
export function inOneLine(markdown: string): string {
  return markdown
    .replace(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|')
    .trim()
}

export function text(node: DocNode | undefined, link: Link): string {
  if (!node) return ''
  switch (node.kind) {
    case 'PlainText':
      return (node as DocPlainText).text
    case 'EscapedText':
      return (node as DocEscapedText).decodedText
    case 'ErrorText':
      return (node as DocErrorText).text
    case 'SoftBreak':
      return '\n'
    case 'CodeSpan':
      return `\`${(node as DocCodeSpan).code}\``
    case 'FencedCode': {
      const { language, code } = node as DocFencedCode
      return `\n\`\`\`${language}\n${code}\`\`\`\n`
    }
    case 'LinkTag': {
      const { codeDestination, urlDestination, linkText } = node as DocLinkTag
      if (urlDestination) return `[${linkText ?? urlDestination}](${urlDestination})`
      const name = codeDestination?.memberReferences
        .map(({ memberIdentifier }) => memberIdentifier?.identifier)
        .join('.')
      return link(name ?? '')
    }
    case 'Paragraph':
      return `${inside(node, link)}\n`
    default:
      return inside(node, link)
  }
}

function inside(node: DocNode, link: Link): string {
  return node
    .getChildNodes()
    .map(child => text(child, link))
    .join('')
}

/** Finds what the doc comment of a public item must say, but does not. */
import {
  ApiDocumentedItem,
  ApiExportedMixin,
  type ApiItem,
  ApiItemKind,
  ApiOptionalMixin,
  ApiPropertyItem,
  ApiReturnTypeMixin,
} from '@microsoft/api-extractor-model'
import { type DocComment, DocExcerpt, type DocNode } from '@microsoft/tsdoc'
import { manifest } from '../build/entries.ts'
import type { Entry } from './extract.ts'

const { version } = manifest

/** Returns one line for each missing part, with the item that lacks it. */
export function missing({ name, items }: Entry): string[] {
  return items.filter(isPublic).flatMap(item => [item, ...item.members].flatMap(one => lacks(one, name)))
}

/** Returns whether users can import the item. The model also contains types that are only named in signatures. */
function isPublic(item: ApiItem): boolean {
  return !ApiExportedMixin.isBaseClassOf(item) || item.isExported
}

function lacks(item: ApiItem, entry: string): string[] {
  const comment = item instanceof ApiDocumentedItem ? item.tsdocComment : undefined
  const says = description(comment)
  const block = (tag: string) => blockOf(comment, tag)
  const settles = block('@throws') !== '' || /does not reject/.test(textOf(comment?.returnsBlock?.content))
  const wants: [wrong: boolean, what: string][] = [
    [says === '', 'a description'],
    [!isPast(block('@since')), `@since with a version up to ${version}`],
    [isOption(item) && block('@defaultValue') === '', '@defaultValue'],
    [
      isNumber(item) && !/\bms\b|\bnumber of\b|\bhow many\b|\bplace\b|\btoken\b|\bnumber that\b/i.test(says),
      'what its number counts: ms, a number of …',
    ],
    [isAsync(item) && !settles, '@throws, or @returns a promise that does not reject'],
  ]
  const where = item.getScopedNameWithinPackage()
  return wants.filter(([wrong]) => wrong).map(([, what]) => `${entry}: ${where} lacks ${what}`)
}

/**
 * Returns whether the text is a version that the package has reached. A comment must not name a later one, because a
 * reader of this package could not find it.
 */
function isPast(since: string): boolean {
  return /^\d+\.\d+\.\d+$/.test(since) && since.localeCompare(version, 'en', { numeric: true }) <= 0
}

/**
 * Returns the description of the item; empty if there is none. API Extractor's standard sentence for constructors does
 * not count.
 */
function description(comment: DocComment | undefined): string {
  const parts = [comment?.summarySection, comment?.remarksBlock?.content].map(textOf)
  return parts
    .filter(part => !part.startsWith('Constructs a new instance of the'))
    .join('\n')
    .trim()
}

function blockOf(comment: DocComment | undefined, tag: string): string {
  const blocks = comment?.customBlocks.filter(({ blockTag }) => blockTag.tagName === tag) ?? []
  return blocks.map(({ content }) => textOf(content)).join('\n')
}

/** Returns the text of a part of a comment, as in the source. */
function textOf(node: DocNode | undefined): string {
  const inside = (one: DocNode): string =>
    one instanceof DocExcerpt ? one.content.toString() : one.getChildNodes().map(inside).join('')
  return node ? inside(node).trim() : ''
}

/**
 * Returns whether the item is a property that a caller may set or leave out. Returned values have read-only properties,
 * which are not options.
 */
function isOption(item: ApiItem): boolean {
  return item instanceof ApiPropertyItem && !item.isReadonly && ApiOptionalMixin.isBaseClassOf(item) && item.isOptional
}

function isNumber(item: ApiItem): boolean {
  return item instanceof ApiPropertyItem && /^number( \| undefined)?$/.test(item.propertyTypeExcerpt.text)
}

function isAsync(item: ApiItem): boolean {
  if (item.kind !== ApiItemKind.Method && item.kind !== ApiItemKind.Function) return false
  return ApiReturnTypeMixin.isBaseClassOf(item) && /^(Promise|Async)/.test(item.returnTypeExcerpt.text)
}

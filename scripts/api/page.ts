/**
 * One page for each entry: its items by kind, each with what its doc comment says. Classes have a section for each
 * method and a table of properties; what only has properties is a table.
 */
import {
  ApiClass,
  ApiConstructor,
  ApiDeclaredItem,
  type ApiItem,
  ApiItemKind,
  ApiOptionalMixin,
  ApiParameterListMixin,
  ApiProperty,
  ApiPropertyItem,
  ApiReturnTypeMixin,
  type Excerpt,
  ExcerptTokenKind,
} from '@microsoft/api-extractor-model'
import { blocks, description, inOneLine, type Link, returns, table, text } from './comment.ts'
import type { Entry } from './extract.ts'
import { isPublic } from './public.ts'

type Callable = ApiDeclaredItem & ApiParameterListMixin

/** In the order of the page. */
const kinds: readonly [title: string, belongs: (item: ApiItem) => boolean][] = [
  ['Errors', item => item instanceof ApiClass && item.displayName.endsWith('Error')],
  ['Classes', item => item instanceof ApiClass],
  ['Functions', item => item.kind === ApiItemKind.Function],
  ['Options', item => /Options$|^Replicas$/.test(item.displayName)],
  ['Types', () => true],
]
const order = ['Classes', 'Functions', 'Options', 'Types', 'Errors']

/** The public items of an entry under the titles of their kinds. */
export function byKind({ items }: Entry): [title: string, items: readonly ApiItem[]][] {
  const titleOf = (item: ApiItem) => kinds.find(([, belongs]) => belongs(item))![0]
  const shown = items.filter(isPublic)
  return order.map(title => [title, shown.filter(item => titleOf(item) === title)])
}

export function pageOf(entry: Entry, link: Link): string {
  const sections = byKind(entry).flatMap(([, items]) => items.map(item => section(item, link)))
  return [`# \`${entry.name}\``, origin, description(entry.item, link), ...sections].join('\n\n').trimEnd()
}

/** Stands on every page. */
export const origin =
  '*Written by `npm run api` from the doc comments of the sources; what your editor shows is the same text.*'

/** The heading of an item, and of a member of a class. */
export function heading(item: ApiItem): string {
  return item.displayName
}

function section(item: ApiItem, link: Link): string {
  const parts = [`## ${heading(item)}`, since(item), signature(item), description(item, link), ...examples(item, link)]
  const callables = item.members.filter(isCallable)
  const properties = item.members.filter(member => member instanceof ApiPropertyItem)
  if (isCallable(item)) parts.push(...details(item, link))
  if (properties.length > 0) parts.push(tableOf(properties, item, link))
  const constructors = callables.filter(member => member instanceof ApiConstructor)
  const methods = callables.filter(member => !(member instanceof ApiConstructor))
  return [...parts, ...[...constructors, ...methods].flatMap(member => methodOf(member, item, link))].join('\n\n')
}

function methodOf(item: Callable, owner: ApiItem, link: Link): string[] {
  const names = item.parameters.map(({ name, isOptional }) => (isOptional ? `${name}?` : name)).join(', ')
  const title = item instanceof ApiConstructor ? `new ${owner.displayName}` : `${owner.displayName}.${item.displayName}`
  const shown = [
    `### ${title.replace('.[', '[')}(${names})`,
    signature(item),
    description(item, link),
    ...examples(item, link),
  ]
  const age = since(item) === since(owner) ? [] : [since(item)]
  return [...shown, ...age, ...details(item, link)]
}

/** Parameters, result and errors of what can be called. */
function details(item: Callable, link: Link): string[] {
  const parts: string[] = []
  if (item.parameters.length > 0) {
    const rows = item.parameters.map(({ name, isOptional, parameterTypeExcerpt, tsdocParamBlock }) => [
      `\`${isOptional ? `${name}?` : name}\``,
      typeOf(parameterTypeExcerpt, link),
      inOneLine(text(tsdocParamBlock?.content, link)),
    ])
    parts.push(table(['parameter', 'type', 'meaning'], rows))
  }
  if (ApiReturnTypeMixin.isBaseClassOf(item)) {
    const meaning = returns(item, link)
    parts.push(`Returns ${typeOf(item.returnTypeExcerpt, link).replaceAll('\\|', '|')}${meaning && `: ${meaning}`}`)
  }
  const errors = blocks(item, '@throws', link)
  if (errors.length > 0)
    parts.push(
      ['Throws, or rejects with', '', ...errors.map(error => `- ${inOneLine(linked(error, link))}`)].join('\n'),
    )
  return parts
}

function tableOf(properties: readonly ApiPropertyItem[], owner: ApiItem, link: Link): string {
  const defaults = properties.map(item => blocks(item, '@defaultValue', link).join())
  const ages = properties.map(item => since(item)).some(age => age !== since(owner))
  const titles = [owner.displayName.endsWith('Events') ? 'event' : 'name', 'type', 'default', 'meaning', 'since']
  const rows = properties.map((item, i) => [
    code(nameOf(item)),
    typeOf(item.propertyTypeExcerpt, link) || constant(item),
    inOneLine(defaults[i]!),
    inOneLine(description(item, link)),
    ages ? blocks(item, '@since', link).join() : '',
  ])
  return table(titles, rows)
}

/** The value of a property that has no type because it is one value for ever. */
function constant(item: ApiPropertyItem): string {
  const value = item instanceof ApiProperty ? item.initializerExcerpt?.text : undefined
  return value ? code(value) : ''
}

function nameOf(item: ApiPropertyItem): string {
  return ApiOptionalMixin.isBaseClassOf(item) && item.isOptional ? `${item.displayName}?` : item.displayName
}

function since(item: ApiItem): string {
  return `Since ${blocks(item, '@since', name => name).join()}.`
}

function examples(item: ApiItem, link: Link): string[] {
  return blocks(item, '@example', link)
}

function signature(item: ApiItem): string {
  const declared = item instanceof ApiDeclaredItem ? item.excerpt.text : item.displayName
  return code(declared.replace(/^export (declare )?/, '').replace(/;\s*$/, ''))
}

/** A type in which the items of the package are links to them. */
function typeOf(excerpt: Excerpt, link: Link): string {
  const parts: string[] = []
  let plain = ''
  for (const { kind, text } of excerpt.spannedTokens) {
    const linked = kind === ExcerptTokenKind.Reference ? link(text) : text
    if (linked === text) plain += text
    else {
      if (plain.trim()) parts.push(code(plain))
      plain = ''
      parts.push(linked)
    }
  }
  if (plain.trim()) parts.push(code(plain))
  return parts.join('').replaceAll('|', '\\|')
}

/** An error's name at the beginning becomes a link. */
function linked(error: string, link: Link): string {
  return error.replace(/^\w+Error\b/, link)
}

function code(text: string): string {
  return `\`${text.replace(/\s+/g, ' ').trim()}\``
}

function isCallable(item: ApiItem): item is Callable {
  return item instanceof ApiDeclaredItem && ApiParameterListMixin.isBaseClassOf(item)
}

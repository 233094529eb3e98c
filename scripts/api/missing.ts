/** What the doc comment of a public item has to say, and does not. */
import {
  type ApiItem,
  ApiItemKind,
  ApiOptionalMixin,
  ApiPropertyItem,
  ApiReturnTypeMixin,
} from '@microsoft/api-extractor-model'
import { blocks, description, returns } from './comment.ts'
import type { Entry } from './extract.ts'
import { isPublic } from './public.ts'

const plain = (name: string) => name

/** One line for each thing that is missing, with the item that it is missing from. */
export function missing({ name, items }: Entry): string[] {
  return items.filter(isPublic).flatMap(item => [item, ...item.members].flatMap(one => lacks(one, name)))
}

function lacks(item: ApiItem, entry: string): string[] {
  const says = description(item, plain)
  const wants: [wrong: boolean, what: string][] = [
    [says === '', 'a description'],
    [!/^\d+\.\d+\.\d+$/.test(blocks(item, '@since', plain).join()), '@since with a version'],
    [isOption(item) && blocks(item, '@defaultValue', plain).join() === '', '@defaultValue'],
    [
      isNumber(item) && !/\bms\b|\bnumber of\b|\bhow many\b|\bplace\b|\btoken\b|\bnumber that\b/i.test(says),
      'what its number counts: ms, a number of …',
    ],
    [isAsync(item) && !failure(item), '@throws, or @returns a promise that does not reject'],
  ]
  const where = item.getScopedNameWithinPackage()
  return wants.filter(([wrong]) => wrong).map(([, what]) => `${entry}: ${where} lacks ${what}`)
}

/** What a caller may set or leave out. What the package hands out is read-only. */
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

function failure(item: ApiItem): boolean {
  return blocks(item, '@throws', plain).length > 0 || /does not reject/.test(returns(item, plain))
}

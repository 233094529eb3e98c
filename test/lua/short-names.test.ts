/**
 * Tests scripts/lua/short-names.ts: in the texts sent to Redis, locals have short names. The texts with short names do
 * exactly what the texts with full names do.
 */
import { describe, expect, test } from 'vitest'
import { modulesOf } from '../../scripts/lua/module.ts'
import { namedScriptsOf, scriptsOf } from './built-texts.ts'
import { meaning } from './meaning.ts'

const lua = new URL('../../lua/', import.meta.url)
const modules = modulesOf(lua)
/** The texts of each script of each kind of lock, with short names and with full names. */
const scripts = await Promise.all(
  [...modules].map(async ([kind, module]) => {
    const [shortened, named] = [await scriptsOf(module), await namedScriptsOf(lua, kind)]
    return Object.entries(shortened).map(([name, { lua }]) => ({ kind, name, short: lua, long: named[name]!.lua }))
  }),
)

/** Returns the text as it is sent to Redis. Only a cluster gets the parts that are marked for clusters. */
function opened(text: string, where: string): string {
  return where === 'a cluster' ? text.replace(/--\[\[cluster\n([\s\S]*?)--\]\]\n/g, '$1') : text
}

describe.each(scripts.flat())('$kind: $name', script => {
  test.each(['a single server', 'a cluster'])('for %s: with short names it means the same, line by line', where => {
    const [short, long] = [opened(script.short, where), opened(script.long, where)]
    expect(meaning(short)).toEqual(meaning(long))
    expect(short.length).toBeLessThan(long.length)
  })
})

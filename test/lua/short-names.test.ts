/**
 * Tests scripts/lua/short-names.ts: in the texts sent to Redis, locals have short names. The texts with short names do
 * exactly what the texts with full names do.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { modulesOf } from '../../scripts/lua/module.ts'
import { plainRedis } from '../kit/redis.ts'
import { namedScriptsOf, scriptsOf } from './built-texts.ts'
import { meaning } from './meaning.ts'

const lua = new URL('../../lua/', import.meta.url)
const [shortened, named] = [await scriptsOf(modulesOf(lua).get('mutex') as string), await namedScriptsOf(lua)]

/** Returns the text as it is sent to Redis. Only a cluster gets the parts that are marked for clusters. */
function opened(text: string, where: string): string {
  return where === 'a cluster' ? text.replace(/--\[\[cluster\n([\s\S]*?)--\]\]\n/g, '$1') : text
}

const puzzle = {
  'puzzle/puzzle.lua': `
-- puzzle: names that hide each other, and names that are short already, which the build gives to others.
--
-- KEYS
--   lock     HASH    its own name is heard
-- ARGV
--   first    string  a text
--   last?    string  another
-- Replies
--   done     what was noted
local d, a, c, seen = first, 'upper', { a = last, lock = lock, first = { lock = 1 } }, {}
local function note(text) seen[#seen + 1] = text end
note(lock .. ' ' .. d .. ' ' .. (last or 'none'))
note((c.a or 'no field') .. c.lock .. c.first.lock)
local lock = 'hidden ' .. lock
do
  local a, lock = lock, a
  note(a .. ', ' .. lock .. ', ' .. lock:upper() .. ', ' .. string[lock](a) .. ', ' .. ('Q'):rep(2))
end
local steps = {}
for i = 1, 3 do
  local a = i * 10
  steps[i] = function(i)
    a = a + i
    return a .. ' of ' .. lock
  end
end
for b, step in ipairs(steps) do note(b .. ': ' .. step(b) .. ', ' .. step(1)) end
local count = 0
repeat
  local lock = count
  count = count + 1
until lock == 2
note('counted ' .. count .. lock)
local function factor(a) return a < 2 and 1 or a * factor(a - 1) end
note('factor ' .. factor(5))
local function many(a, ...)
  local rest = { ... }
  return #rest .. a
end
note(many('m', 1, 2, 3))
-- include: half { whole = count, note = note, lock = d .. lock }
note(half .. ' ' .. lock)
return { 'done', unpack(seen) }
`,
  'shared/half.lua': `
-- half: half of something.
--
-- Takes
--   whole  number  what is halved
--   note   string  is given a text
--   lock   string  another than its includer's
-- Gives
--   half   number  what comes of it
local a = whole
--[[cluster
local whole = 'whole'
note(whole .. ' of a cluster: ' .. a)
--]]
half = a / 2
note(lock .. half)
`,
}

/** Returns what the script `puzzle` has to reply to these arguments. */
function noted(where: string, [first, last]: readonly string[]): string[] {
  return [
    'done',
    `key ${first} ${last ?? 'none'}`,
    `${last ?? 'no field'}key1`,
    'hidden key, upper, UPPER, HIDDEN KEY, QQ',
    '1: 11 of hidden key, 12 of hidden key',
    '2: 22 of hidden key, 23 of hidden key',
    '3: 33 of hidden key, 34 of hidden key',
    'counted 3hidden key',
    'factor 120',
    '3m',
    ...(where === 'a cluster' ? ['whole of a cluster: 3'] : []),
    `${first}hidden key1.5`,
    '1.5 hidden key',
  ]
}

test.each(['a single server', 'a cluster'])(
  'for %s: names that hide each other, and short ones, in Redis',
  async where => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-lua-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    for (const sub of ['puzzle', 'shared']) mkdirSync(join(folder, sub))
    for (const [file, source] of Object.entries(puzzle)) writeFileSync(join(folder, file), source.trimStart())
    const source = pathToFileURL(`${folder}/`)
    const [short, long] = [
      await scriptsOf(modulesOf(source).get('puzzle') as string),
      await namedScriptsOf(source, 'puzzle'),
    ].map(built => opened(built['puzzle']!.lua, where))

    const redis = plainRedis()
    expect(short).not.toBe(long)
    expect(meaning(short!)).toEqual(meaning(long!))
    for (const given of [['one'], ['one', 'two']]) {
      const reply = await redis.eval(short!, 1, 'key', ...given)
      expect(reply).toEqual(await redis.eval(long!, 1, 'key', ...given))
      expect(reply).toEqual(noted(where, given))
    }
  },
)

describe.each(Object.entries(shortened))('%s', (name, { lua }) => {
  test.each(['a single server', 'a cluster'])('for %s: with short names it means the same, line by line', where => {
    const [short, long] = [opened(lua, where), opened(named[name]!.lua, where)]
    expect(meaning(short)).toEqual(meaning(long))
    expect(short.length).toBeLessThan(long.length)
  })
})

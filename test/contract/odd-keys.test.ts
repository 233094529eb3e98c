/**
 * Tests that a key may be any string, that each key is a separate lock, and that `list` reports each key exactly as it
 * is.
 */
import { describe, expect } from 'vitest'
import { kindsHere } from '../kit/kinds.ts'
import { collect } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { client, freshKey, test } from '../kit/redis.ts'

const odd = [
  'a',
  'A',
  '{a}',
  '{{a}}',
  '{a',
  'a}',
  '}a{',
  '}x',
  '{',
  '}',
  '{}',
  '{}a',
  '{}{a}',
  'a{}',
  '{{',
  '}}',
  '{{}',
  '{{}}',
  'a{b}',
  'a{b}c',
  '{b}c',
  '{a}{b}',
  '{a}b}',
  '{a}:q',
  '{a}:d',
  '{a}:lock',
  '{a}:lock:lock',
  '{a}:q:lock',
  '{a}:unlock',
  '{a}:inbox:client',
  'a:q',
  'a:d',
  'a:lock',
  'a:unlock',
  'inbox:a',
  'unlock:a',
  'unlock:lock:{a}',
  'lock',
  'lock:a',
  'lock:{a}',
  'queue',
  'queued',
  'holds',
  'owner',
  ':',
  '::',
  ' ',
  'a b',
  ' a',
  'a ',
  '\t',
  '\n',
  'a\nb',
  'a\r\nb',
  '\0',
  'a\0b',
  '"',
  "'",
  '`',
  '\\',
  '\\n',
  'a"b\'c',
  '%s',
  '%',
  '$1',
  '*',
  '?',
  '[a]',
  'a*',
  '[^a]',
  '\\*',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'é',
  'e\u0301',
  '😀',
  '漢字',
  '\u2028',
  '\u200b',
  '\ufeffa',
  '\ufffd',
  'null',
  'undefined',
  '0',
  '-1',
  'x'.repeat(1024),
  `{${'y'.repeat(1022)}}`,
  `${'z'.repeat(1018)}{tag}`,
  '漢'.repeat(341),
]

describe('odd keys', () => {
  test.each(kindsHere)(
    'I1: locks of all odd keys can be held at the same time, and each excludes only callers of the same key ($kind)',
    async ({ client }) => {
      const prefix = freshKey('prefix')
      const [one, two] = [client({ prefix }), client({ prefix })]
      const leases = await Promise.all(odd.map(key => one.tryLock(key)))
      expect(odd.filter((_, i) => !leases[i]?.held)).toEqual([])
      const second = await Promise.all(odd.map(key => two.tryLock(key)))
      expect(odd.filter((_, i) => second[i] !== null)).toEqual([])
      expect(leases.map(lease => lease?.key)).toEqual(odd)
      const states = await Promise.all(odd.map(key => two.inspect(key)))
      expect(states.map(state => state.key)).toEqual(odd)
      expect(states.every(state => state.locked)).toBe(true)
      expect(await Promise.all(leases.map(lease => lease?.release()))).toEqual(odd.map(() => true))
      expect(await Promise.all(odd.map(key => two.isLocked(key)))).toEqual(odd.map(() => false))
    },
  )

  test('list finds each by its exact name, once', async () => {
    const prefix = freshKey('prefix')
    const locks = client({ prefix })
    await Promise.all(odd.map(key => locks.lock(key)))
    const found = await collect(client({ prefix }).list())
    expect(found.map(state => state.key).sort()).toEqual([...odd].sort())
  })

  test('odd owners are shown unchanged, and re-enter', async ({ one, two }) => {
    for (const owner of ['a b', '\n', '{a}', '__proto__', '0', '漢', '"', '%', 'x'.repeat(1024)]) {
      const key = freshKey()
      const next = `2 3${owner.slice(3)}`
      await one.lock(key, { owner })
      expect((await two.inspect(key)).owner).toBe(owner)
      expect((await two.tryLock(key, { owner }))?.via).toBe('reentry')
      const queued = await park(two, key, { fair: true, owner: next })
      expect((await one.inspect(key)).waiters[0]!.owner).toBe(next)
      await one.forceRelease(key)
      expect((await queued.lease).owner).toBe(next)
    }
  })
})

/** Tests that key patterns match the same keys as in Redis, and that matching is fast for every pattern. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { glob } from '../../src/redis/glob.ts'
import { freshKey, plainRedis } from '../kit/redis.ts'

const wrong = 'a pattern of *, ?, [abc], [^abc] and [a-c]; a range begins with its lower character'

test.each([
  ['*', 'order:1', true],
  ['order:*', 'order:1', true],
  ['order:*', 'orders:1', false],
  ['order:?', 'order:1', true],
  ['order:?', 'order:12', false],
  ['*:1', 'order:1', true],
  ['o*r*:1', 'order:1', true],
  ['*ab', 'aab', true],
  ['a*', 'a', true],
  ['a', 'ab', false],
  ['[abc]', 'b', true],
  ['[^a-c]', 'b', false],
  ['[^a-c]', 'd', true],
  ['[a-]', '-', true],
  ['[a^]', '^', true],
  ['[\\]]', ']', true],
  ['[\\d]', '1', false],
  ['[*-\\]a', '+a', true],
  ['[*-\\]a', 'a', false],
  ['\\*', '*', true],
  ['\\*', 'x', false],
  ['a\\', 'a\\', true],
  ['a[bc', 'ab', true],
  ['[]', 'a', false],
  ['[^]', 'a', true],
  ['.+', 'xx', false],
  ['?', '\n', true],
  ['*', 'a\nb', true],
  ['長?', '長い', true],
  ['?', '🔒', true],
  ['[🔑-🔓]', '🔒', true],
])('%j and %j: %s', (pattern, key, expected) => {
  expect(glob(pattern)(key)).toBe(expected)
})

test.each(['[c-a]', 'x[^z-b]*'])('%j is refused', pattern => {
  const error = expect.objectContaining({
    name: 'LockArgumentError',
    option: 'pattern',
    value: pattern,
    accepted: wrong,
  })
  expect(() => glob(pattern)).toThrow(error)
})

describe('properties', () => {
  const key = fc.string({ unit: fc.constantFrom(...'abc-^[]\\*?'), minLength: 1, maxLength: 8 })

  test('every accepted pattern matches the same texts as in Redis', async () => {
    const redis = plainRedis()
    const prefix = freshKey('glob')
    await fc.assert(
      fc.asyncProperty(key, fc.array(key, { minLength: 1, maxLength: 10 }), async (pattern, keys) => {
        fc.pre(!pattern.includes('-]'))
        const matches = accepted(pattern)
        fc.pre(matches !== undefined)
        const names = keys.map(name => `${prefix}:${name}`)
        await redis.mset(Object.fromEntries(names.map(name => [name, ''])))
        const found = await redis.keys(`${prefix}:${pattern}`)
        await redis.del(...names)
        expect(found.sort()).toEqual([...new Set(names)].filter(name => matches!(name.slice(prefix.length + 1))).sort())
      }),
      { numRuns: 300, interruptAfterTimeLimit: 5_000 },
    )
  })
})

/**
 * Measures processor time, so that other work on the machine does not count. An algorithm that tried every star again
 * when a character did not match took 45 s.
 */
test('a pattern with many stars takes time in proportion to its length times that of the key, and no longer', () => {
  const before = process.cpuUsage()
  expect(glob('*a*a*a*b')('a'.repeat(1_024))).toBe(false)
  expect(glob(`${'*a'.repeat(300)}*b`)('a'.repeat(1_024))).toBe(false)
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(5_000)
})

function accepted(pattern: string): ((text: string) => boolean) | undefined {
  try {
    return glob(pattern)
  } catch {
    return undefined
  }
}

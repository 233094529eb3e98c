/** Tests that a matrix of test runs passes only if every row passes. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { servers } from '../../../scripts/matrix/servers.ts'
import { complaintsOf, isVersionOf, type Outcome } from '../../../scripts/suites.ts'

const outcome = (name: string, server: string | undefined, more: Partial<Outcome> = {}): Outcome => ({
  name,
  passed: 500,
  failed: 0,
  skipped: 0,
  seconds: 60,
  noted: server === undefined ? {} : { server },
  trouble: undefined,
  ...more,
})

const judged = (...outcomes: Outcome[]) => complaintsOf(['Redis 7.0', 'Valkey 9'], outcomes, ({ server }) => server)
const [redis, valkey] = [outcome('Redis 7.0', 'Redis 7.0.15'), outcome('Valkey 9', 'Valkey 9.1.2')]

describe('a matrix passes', () => {
  test('if each row has passed on its own version', () => {
    expect(judged(redis, valkey)).toEqual([])
  })

  test('not if a row is missing', () => {
    expect(judged(redis)).toEqual(['Valkey 9: was not run'])
    expect(judged()).toHaveLength(2)
  })

  test('not if a row has failed', () => {
    expect(judged(redis, { ...valkey, trouble: '1 tests were skipped' })).toEqual(['Valkey 9: 1 tests were skipped'])
  })

  test.each(['Valkey 8.1.1', 'Redis 9.0.0', 'Valkey 90.0.0', undefined])('not if the server reported %s', said => {
    expect(judged(redis, outcome('Valkey 9', said))).toHaveLength(1)
  })
})

test('the matrix has every promised server with the whole contract, and the oldest supported one', () => {
  const whole = servers.filter(({ without }) => without.length === 0).map(({ name }) => name)
  expect(whole).toEqual(expect.arrayContaining(['Redis 7.0', 'Redis 8', 'Valkey 8', 'Valkey 9']))
  expect(servers.map(({ name }) => name)).toContain('Redis 6.0')
})

test('the page about servers says of each server of the matrix which version was tested, and of no other', () => {
  const page = readFileSync(new URL('../../../docs/servers.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| ((?:Redis|Valkey) [\d.]+) \| ([\d.]+)/gm)].map(([, name = '', version]) => {
    const [product] = name.split(' ', 1)
    return [name, isVersionOf(name, `${product} ${version}`)]
  })
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(servers.map(({ name }) => [name, true])))
})

test('the tests that a row leaves out exist', () => {
  for (const { without } of servers) for (const file of without) expect(existsSync(file)).toBe(true)
})

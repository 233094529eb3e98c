/** Tests which of several servers' refusals decide what a refused caller learns. */
import { expect, test } from 'vitest'
import { merged } from '../../src/compose/quorum/round.ts'
import type { Refused } from '../../src/kind.ts'

function refusalBy(label: string, since: number): Refused {
  const holder = { label, since }
  return { granted: false, sent: 2_000, ttl: 500, position: 1, ticket: '1', holder, owner: label, clock: 0 }
}

const [waiter, holder] = [refusalBy('waiter', 1_010), refusalBy('holder', 1_000)]

/**
 * The holder has the lock on servers 1 and 2. Its request reached server 0 only after that of a waiter, so server 0 has
 * voted for the waiter.
 */
test.each([
  ['servers 0 and 1 have answered', [waiter, holder]],
  ['all have answered', [waiter, holder, holder]],
])('a vote for a waiter is not mistaken for the holder: %s', (_, refusals) => {
  expect(merged(refusals, 1, 1_500)).toMatchObject({ holder: { label: 'holder' }, owner: 'holder' })
})

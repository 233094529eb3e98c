/** The checker finds every mutation of every simulated history, and nothing in the histories themselves. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { check } from './check.ts'
import * as mutations from './mutations.ts'
import { calls, Simulated } from './simulated.ts'

/** What each mutation has to be found as. */
const found: [string, mutations.Mutation, string][] = [
  ['an overlap', mutations.overlap, 'I1'],
  ['a hold that was renewed for too long', mutations.renewedTooLong, 'I1'],
  ['a hold with a lease that it never asked for', mutations.foreignLease, 'I1'],
  ['a repeated token', mutations.repeatedToken, 'I2'],
  ['a token that goes back', mutations.tokensSwapped, 'I2'],
  ['a token that is ahead of the time of day', mutations.aheadOfTime, 'I2'],
  ['a swapped order', mutations.orderSwapped, 'I3'],
  ['a changed ticket', mutations.ticketChanged, 'I3'],
  ['a lost waiter', mutations.lostWaiter, 'I4'],
  ['a hold that keeps others out when nobody has it any more', mutations.outlivedHold, 'I4'],
  ['a waiter that is granted too late', mutations.lateWaiter, 'I4'],
  ['a process that has all the turns', mutations.turnsTaken, 'turns'],
  ['a key that is left', mutations.residue, 'I7'],
  ['a loss that nobody was told of', mutations.silentLoss, 'I8'],
  ['a write without a grant', mutations.foreignWrite, 'I2'],
]

test('a history without a fault is clean', () => {
  fc.assert(
    fc.property(calls, list => {
      expect(check(Simulated.of(list).events).violations).toEqual([])
    }),
  )
})

test.each(found)('%s is found', (_, mutate, invariant) => {
  let broken = 0
  fc.assert(
    fc.property(calls, list => {
      const events = mutate(Simulated.of(list).events)
      fc.pre(events !== undefined)
      broken += 1
      expect(check(events!).violations.map(violation => violation.invariant)).toContain(invariant)
    }),
  )
  expect(broken).toBeGreaterThan(50)
})

test('a lost waiter is also a promise that never settles', () => {
  const { events } = Simulated.of([
    { key: 0, worker: 0, after: 1, fair: true, lease: 100, hold: 5, patience: undefined },
  ])
  const violations = check(mutations.lostWaiter(events)!).violations
  expect(violations.map(({ invariant }) => invariant).sort()).toEqual(['I4', 'I6'])
})

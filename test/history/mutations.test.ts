/** The checker finds every mutation of every simulated history, and finds nothing in the unchanged histories. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { overFive } from './by-hand.ts'
import { check } from './check.ts'
import * as mutations from './mutations.ts'
import * as quorum from './mutations-quorum.ts'
import * as shared from './mutations-shared.ts'
import { calls, type LockKind, Simulated } from './simulated.ts'

/** How many histories each test makes. */
const rounds = { numRuns: 40 }

type Row = [string, mutations.Mutation, string]

/** Mutations for locks of every kind. Each row ends with the invariant that the checker must report. */
const always: Row[] = [
  ['a hold that was renewed for longer than any caller requests', mutations.foreignLease, 'I1'],
  ['a token that is ahead of the time of day', mutations.aheadOfTime, 'I2'],
  ['a changed ticket', mutations.ticketChanged, 'I3'],
  ['a lost waiter', mutations.lostWaiter, 'I4'],
  ['a hold without a holder that keeps others out', mutations.outlivedHold, 'I4'],
  ['a waiter that is granted too late', mutations.lateWaiter, 'I4'],
  ['a key that is left', mutations.residue, 'I7'],
  ['a loss that was not signalled', mutations.silentLoss, 'I8'],
  ['a write without a grant', mutations.foreignWrite, 'I2'],
]

/** Further mutations for each kind of lock. */
const found: Record<LockKind, Row[]> = {
  mutex: [
    ['an overlap', mutations.overlap, 'I1'],
    ['a hold that was renewed for too long', mutations.renewedTooLong, 'I1'],
    ['a repeated token', mutations.repeatedToken, 'I2'],
    ['a token that goes back', mutations.tokensSwapped, 'I2'],
    ['a swapped order', mutations.orderSwapped, 'I3'],
    ['a process that has all the turns', mutations.turnsTaken, 'turns'],
  ],
  semaphore: [
    ['more permits than there are', shared.permitsExceeded, 'I1'],
    ['a caller whose own number was ignored', shared.ownNumberIgnored, 'I1'],
    ['a repeated token', mutations.repeatedToken, 'I2'],
    ['a holder that re-enters', shared.permitsReentered, 'I2'],
    ['a swapped order', mutations.orderSwapped, 'I3'],
    ['a small request that overtakes a larger one', shared.smallBarged, 'I3'],
    ['a group that has more than its turn', shared.groupPassed, 'I3'],
  ],
  readWrite: [
    ['a reader that is admitted beside a writer', shared.readWhileWritten, 'I1'],
    ['a writer that is admitted beside a reader', shared.writtenWhileRead, 'I1'],
    ['a repeated token', mutations.repeatedToken, 'I2'],
    ['a swapped order of writers', mutations.orderSwapped, 'I3'],
    ['an unqueued reader that overtakes', shared.readerBarged, 'I3'],
    ['an unqueued writer that overtakes', shared.writerBarged, 'I3'],
    ['a reader that is admitted beside others while a writer is queued', shared.writerStarved, 'I3'],
    ['a reader that waits for two writers', shared.readerStarved, 'I3'],
    ['a reader that is admitted to write', shared.letInToWrite, 'I6'],
    ['a reader that asks to write and is refused for another reason', shared.refusedToWrite, 'I6'],
    ['a deadlock of a caller that does not read', shared.noDeadlock, 'I6'],
  ],
}

describe.each(Object.entries(found) as [LockKind, Row[]][])('%s', (kind, own) => {
  test('a history without a fault is clean', () => {
    fc.assert(
      fc.property(calls, list => {
        expect(check(Simulated.of(list, kind).events).violations).toEqual([])
      }),
    )
  })

  test.each([...own, ...always])('%s is found', (_, mutate, invariant) => {
    let broken = 0
    fc.assert(
      fc.property(calls, list => {
        const events = mutate(Simulated.of(list, kind).events)
        fc.pre(events !== undefined)
        broken += 1
        expect(check(events!).violations.map(violation => violation.invariant)).toContain(invariant)
      }),
      rounds,
    )
    expect(broken).toBeGreaterThan(20)
  })
})

/** Servers fail all the time, but never more than a minority at once, so these faults excuse nothing. */
describe('a mutex over a quorum', () => {
  const overQuorum = (list: Parameters<typeof Simulated.of>[0]) =>
    quorum.withMinoritiesAway(overFive(Simulated.of(list, 'mutex').events))

  test('a history in which minorities are away is clean', () => {
    fc.assert(
      fc.property(calls, list => {
        expect(check(overQuorum(list)).violations).toEqual([])
      }),
    )
  })

  test.each<Row>([
    ...found.mutex.filter(([, , invariant]) => invariant !== 'turns'),
    ...always,
    ['an overlap after servers have come back empty', quorum.overlapWhereEmptied, 'I1'],
    ['a token that is ahead of the clocks of all servers', quorum.aheadOfAll, 'I2'],
    ['a hold that is lost before its time', quorum.lostEarly, 'I5'],
    [
      'a hold that is lost before its time, when the servers of another lock have forgotten it',
      quorum.lostElsewhere,
      'I5',
    ],
    ['a call that fails', quorum.failedCall, 'I6'],
  ])('%s is found', (_, mutate, invariant) => {
    let broken = 0
    fc.assert(
      fc.property(calls, list => {
        const events = mutate(overQuorum(list))
        fc.pre(events !== undefined)
        broken += 1
        expect(check(events!).violations.map(violation => violation.invariant)).toContain(invariant)
      }),
      rounds,
    )
    expect(broken).toBeGreaterThan(20)
  })
})

test('a lost waiter is also found as a promise that never settles', () => {
  const call = { key: 0, worker: 0, after: 1, fair: true, lease: 100, hold: 5, patience: undefined }
  const { events } = Simulated.of([{ ...call, permits: [1, 1], reads: false }])
  const violations = check(mutations.lostWaiter(events)!).violations
  expect(violations.map(({ invariant }) => invariant).sort()).toEqual(['I4', 'I6'])
})

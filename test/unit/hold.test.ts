/** Tests the record of a hold: its states, and until when the client may rely on the hold. */
import { describe, expect, test } from 'vitest'
import { LockLostError } from '../../src/errors.ts'
import type { Granted } from '../../src/kind.ts'
import { Hold } from '../../src/local/hold.ts'

const claim = { key: 'key', id: 'id', owner: 'id', label: '', lease: 30_000, headStart: 0 }
const loss = new LockLostError('key', 'gone')

function grant(granted: Partial<Granted> = {}, renew = true): Hold {
  const asked = { claim, since: 90, renew, maxHold: Number.POSITIVE_INFINITY, alone: false }
  const deadline = 29_968
  return new Hold(asked, { granted: true, token: 7, deadline, via: 'immediate', ...granted }, undefined, 100, 0)
}

const ways = {
  release: (hold: Hold) => hold.release(() => {}),
  end: (hold: Hold) => hold.end(),
  lose: (hold: Hold) => hold.lose(loss),
}

describe('a hold goes from state to state,', () => {
  test.each([
    { by: [], release: 'releasing', end: 'released', lose: 'lost' },
    { by: ['release'], release: undefined, end: 'released', lose: 'lost' },
    { by: ['release', 'end'], release: undefined, end: undefined, lose: undefined },
    { by: ['end'], release: undefined, end: undefined, lose: undefined },
    { by: ['lose'], release: undefined, end: undefined, lose: undefined },
  ] as const)('after $by', ({ by, ...next }) => {
    for (const way of Object.keys(ways) as (keyof typeof ways)[]) {
      const hold = grant()
      for (const before of by) ways[before](hold)
      const { is } = hold.state
      const changed = ways[way](hold)
      expect([way, changed, hold.state.is]).toEqual([way, next[way] !== undefined, next[way] ?? is])
    }
  })

  test('I8 and only a loss aborts its signal, with the loss as the reason, whether the signal is read before or after', () => {
    const [before, after, released] = [grant(), grant(), grant()]
    const { signal } = before
    for (const hold of [before, after]) hold.lose(loss)
    released.release(() => {})
    released.end()
    expect([signal.reason, after.signal.reason, released.signal.aborted]).toEqual([loss, loss, false])
  })

  test('I1 and is certainly ours only while it is held', () => {
    for (const way of Object.values(ways)) {
      const hold = grant()
      expect([hold.remaining(100), hold.remaining(29_968), hold.remaining(40_000)]).toEqual([29_868, 0, 0])
      way(hold)
      expect(hold.remaining(100)).toBe(0)
    }
  })
})

test('the scheduler asks nothing about a hold while an earlier question is unanswered, nor after the hold has ended', () => {
  const hold = grant()
  expect(hold.due).toBeLessThan(10_000)
  hold.ask(9_000)
  hold.doubt(9_001)
  expect(hold.due).toBe(Number.POSITIVE_INFINITY)
  hold.answered()
  expect(hold.due).toBe(9_001)
  hold.release(() => {})
  expect(hold.due).toBe(Number.POSITIVE_INFINITY)
})

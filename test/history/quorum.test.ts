/**
 * Hand-made histories over five servers. Faults of a minority excuse nothing, and faults of a majority excuse only a
 * few things.
 */
import { describe, expect, test } from 'vitest'
import { at, foundOverFive, granted, lost, released, WALL } from './by-hand.ts'
import type { EventOf, HistoryEvent } from './events.ts'

let faults = 0
function fault(
  from: number,
  to: number,
  fields: { servers?: number[]; worker?: string; reach?: EventOf<'fault'>['reach'] } = {},
): HistoryEvent[] {
  const reach = fields.reach ?? (fields.worker ? 'worker' : 'server')
  const same = { fault: ++faults, name: 'stop', reach, ...fields }
  return [at(from, 'fault', { ...same, phase: 'begin' }), at(to, 'fault', { ...same, phase: 'end' })]
}
const clock = (t: number, server: number, off: number) => at(t, 'clock', { wall: WALL + t + off, server })
/** Makes a holder that relies on its hold until 400 ms. At 400 ms, the holder is notified that the hold was lost. */
const believer = (issued: number) => [
  ...granted('a', issued, { lease: 403 - issued }),
  lost('a', 400),
  ...released('a', 401, false),
]
const toldEarly = (t: number) => [...granted('a', 10), lost('a', t), ...released('a', t + 1, false)]
const next = (issued: number) => [...granted('b', issued), ...released('b', issued + 10)]

describe('servers that forget', () => {
  const taken = (fields: { key?: string } = {}) =>
    at(200, 'taken', { from: 198, how: 'restart', closed: true, ...fields })
  const opened = at(200, 'taken', { from: 198, how: 'clock', key: 'k' })

  test('I1 holds until the lease would have ended, because emptied servers do not count before', () => {
    expect(foundOverFive(believer(10), taken(), next(300))).toEqual(['I1'])
    expect(foundOverFive(believer(10), taken({ key: 'k' }), next(300))).toEqual(['I1'])
    expect(foundOverFive(believer(10), taken(), next(410))).toEqual([])
    expect(foundOverFive(believer(10), opened, next(300))).toEqual([])
  })

  test('the holder may be notified before its deadline, but only if a majority may have forgotten its hold', () => {
    expect(foundOverFive(toldEarly(300))).toEqual(['I5'])
    expect(foundOverFive(toldEarly(300), taken())).toEqual([])
    expect(foundOverFive(toldEarly(300), taken({ key: 'k' }))).toEqual([])
    expect(foundOverFive(toldEarly(300), taken({ key: 'other' }))).toEqual(['I5'])
    expect(foundOverFive(toldEarly(300), opened)).toEqual([])
    expect(foundOverFive(toldEarly(190), taken())).toEqual(['I5'])
  })

  test('a minority that is away, or comes back empty, takes no hold away', () => {
    expect(foundOverFive(toldEarly(300), fault(100, 250, { servers: [0, 1] }))).toEqual(['I5'])
    expect(foundOverFive(toldEarly(300), fault(100, 250, { servers: [0, 1, 2] }))).toEqual(['I5'])
  })
})

describe('I6: a call fails', () => {
  const failed = (worker = 'w') => [
    at(10_000, 'request', { worker, attempt: 'a', key: 'k', mode: 'fair' }),
    at(10_100, 'end', { worker, attempt: 'a', how: 'failed', error: '2 of 5 answered' }),
  ]

  test('only if its process could not reach a majority', () => {
    expect(foundOverFive(failed(), fault(9_000, 11_000, { servers: [0, 1] }))).toEqual(['I6'])
    expect(foundOverFive(failed(), fault(9_000, 11_000, { servers: [0, 1, 2] }))).toEqual([])
    expect(foundOverFive(failed(), fault(9_000, 11_000))).toEqual([])
    expect(foundOverFive(failed(), fault(9_000, 11_000, { servers: [0, 1, 2], reach: 'nothing' }))).toEqual(['I6'])
  })

  test('simultaneous faults add up, each server once, whether of the server or of the process’s way to it', () => {
    const minority = fault(9_000, 11_000, { servers: [0, 1] })
    expect(foundOverFive(failed(), minority, fault(9_500, 10_050, { servers: [4] }))).toEqual([])
    expect(foundOverFive(failed(), minority, fault(9_500, 10_050, { servers: [1] }))).toEqual(['I6'])
    expect(foundOverFive(failed(), minority, fault(9_500, 10_050, { servers: [4], worker: 'w' }))).toEqual([])
    expect(foundOverFive(failed(), minority, fault(9_500, 10_050, { servers: [4], worker: 'v' }))).toEqual(['I6'])
    expect(foundOverFive(failed(), minority, fault(10_200, 10_300, { servers: [4] }))).toEqual(['I6'])
  })
})

describe('clocks', () => {
  test('I2: a token may be as far ahead as the clock of one server', () => {
    const ahead = [...granted('a', 310, { off: 5_000 }), ...released('a', 320)]
    expect(foundOverFive(ahead)).toEqual(['I2'])
    expect(foundOverFive(ahead, clock(299, 3, 0), clock(300, 3, 5_000))).toEqual([])
    // The clock of server 3 was 6 s ahead for a while. Tokens continue from the time that this clock showed.
    expect(foundOverFive(ahead, clock(100, 3, 0), clock(101, 3, 6_000), clock(300, 3, 0))).toEqual([])
    expect(foundOverFive(ahead, clock(330, 3, 5_000))).toEqual(['I2'])
  })

  test('a grant may have been made when the clock of any server showed its token', () => {
    const step = [clock(199, 3, 0), clock(200, 3, 60_000)]
    const taken = at(205, 'taken', { from: 198, how: 'clock', key: 'k' })
    const holder = (off: number, issued: number) => [
      ...granted('a', issued, { off, heard: issued + 20, asked: 5, lease: 403 - issued }),
      lost('a', 400),
      ...released('a', 401, false),
    ]
    const later = (off: number) => [...granted('b', 330, { off }), ...released('b', 340)]
    // In all histories, the clock of server 3 steps forward, which takes holds away. In the first history, another
    // server issues the token of `a`, long after the step. In the second history, server 3 issues this token, also
    // after the step. In the third history, this token is issued before the step.
    expect(foundOverFive(step, taken, holder(0, 270), later(0))).toEqual(['I1'])
    expect(foundOverFive(step, taken, holder(60_000, 270), later(60_000))).toEqual(['I1'])
    expect(foundOverFive(step, taken, holder(0, 150), later(0))).toEqual([])
  })
})

/**
 * Hand-made histories of semaphores: how many callers may hold at the same time, and in which order they are granted.
 */
import { describe, expect, test } from 'vitest'
import { at, found, granted, lost, queue, released, run, tokenOf } from './by-hand.ts'
import { check } from './check.ts'
import type { HistoryEvent } from './events.ts'
import type { Wants } from './wants.ts'

type Times = Parameters<typeof granted>[2]
const hold = (id: string, issued: number, until: number, wants: Wants, fields: Times = {}) => [
  ...granted(id, issued, { wants, ...fields }),
  ...released(id, until),
]
const taken = (t: number) => at(t, 'taken', { key: 'k', from: t - 2, how: 'DEL' })

describe('I1', () => {
  test('all permits may be taken, and not one more', () => {
    expect(found(hold('a', 10, 90, [2, 3]), hold('b', 20, 80, [1, 3]))).toEqual([])
    expect(found(hold('a', 10, 90, [2, 3]), hold('b', 20, 80, [2, 3]))).toEqual(['I1'])
    expect(found(hold('a', 10, 90, [1, 2]), hold('b', 20, 80, [1, 2]), hold('c', 30, 70, [1, 2]))).toEqual(['I1'])
    expect(found(hold('a', 10, 25, [1, 2]), hold('b', 20, 80, [1, 2]), hold('c', 30, 70, [1, 2]))).toEqual([])
  })

  test('reports how many permits were taken', () => {
    const events = [...run, ...hold('a', 10, 90, [2, 3]), ...hold('b', 20, 80, [2, 3])]
    expect(check(events).violations.map(({ text }) => text)).toEqual([
      'a and b held 4 of 3 permits for 59.000 ms from 21.000',
    ])
  })

  test('each caller is judged by its own number, in the order of the grants', () => {
    expect(found(hold('a', 10, 90, [3, 3]), hold('b', 20, 80, [1, 4]))).toEqual([])
    expect(found(hold('a', 10, 90, [1, 4]), hold('b', 20, 80, [3, 3]))).toEqual(['I1'])
    // Redis grants `a` before `b`, but the grant of `a` arrives after the grant of `b`.
    expect(found(hold('b', 20, 80, [1, 4]), hold('a', 10, 90, [3, 3], { heard: 30 }))).toEqual([])
    expect(found(hold('b', 20, 80, [3, 3]), hold('a', 10, 90, [1, 4], { heard: 30 }))).toEqual(['I1', 'I2'])
  })

  test('a group takes no more than its limit, by the number of each caller', () => {
    const a = (permits: number, limit?: number): Wants => [permits, 9, 'a', limit]
    expect(found(hold('a', 10, 90, a(2, 3)), hold('b', 20, 80, a(1, 3)), hold('c', 30, 70, [3, 9, 'b', 3]))).toEqual([])
    expect(found(hold('a', 10, 90, a(2, 3)), hold('b', 20, 80, a(2, 3)))).toEqual(['I1'])
    expect(found(hold('a', 10, 90, a(3, 3)), hold('b', 20, 80, a(1, 4)), hold('c', 30, 70, a(4)))).toEqual([])
  })

  test('two holds of one owner conflict', () => {
    const both = (wants: Wants) => found(hold('a', 10, 90, wants), hold('a2', 20, 80, wants, { owner: 'a' }))
    expect(both([1, 2])).toEqual([])
    expect(both([2, 3])).toEqual(['I1'])
  })

  test('a taking frees permits granted before it, and nothing else', () => {
    const old = [...granted('a', 10, { wants: [2, 3], lease: 393 }), lost('a', 400), ...released('a', 401, false)]
    expect(found(old, taken(200), hold('b', 300, 310, [3, 3]))).toEqual([])
    expect(found(old, hold('b', 100, 110, [3, 3]), taken(200))).toEqual(['I1'])
    expect(found(old, taken(200), hold('b', 300, 360, [2, 3]), hold('c', 350, 370, [2, 3]))).toEqual(['I1'])
  })
})

describe('I2', () => {
  test('grants that can be held together may arrive in any order', () => {
    expect(found(hold('b', 20, 80, [1, 3]), hold('a', 10, 90, [2, 3], { heard: 30 }))).toEqual([])
  })

  test('a repeated or smaller token is a violation, whichever other callers hold', () => {
    expect(found(hold('a', 10, 90, [1, 3]), hold('b', 20, 80, [1, 3], { off: -10 }))).toEqual(['I2'])
    expect(found(hold('a', 10, 90, [1, 3]), hold('b', 20, 80, [1, 3], { off: -11 }))).toEqual(['I2'])
    expect(found(hold('a', 10, 90, [1, 3]), hold('b', 20, 80, [1, 3], { off: -11, asked: 5 }))).toEqual([])
  })

  test('no caller may re-enter', () => {
    const again = { owner: 'a', via: 'reentry', off: -10 } as const
    expect(found(hold('a', 10, 90, [1, 3]), hold('a2', 20, 80, [1, 3], again))).toContain('I2')
    expect(found(granted('a', 10), granted('a2', 20, again), released('a2', 80), released('a', 90))).toEqual([])
  })
})

describe('I3', () => {
  test('no queued request overtakes the head, however many permits the head wants', () => {
    const later = [
      hold('small', 110, 120, [1, 3], { asked: 20 }),
      hold('large', 130, 140, [3, 3], { asked: 10 }),
    ].flat()
    expect(found(queue(100, 'large', 'small'), later)).toEqual(['I3'])
    expect(found(queue(100, 'small', 'large'), later)).toEqual([])
  })

  test('inside a group, requests are granted in their order; between groups, in any order', () => {
    const later = (small: string, large: string) =>
      [
        hold('small', 110, 120, [1, 3, small], { asked: 20 }),
        hold('large', 130, 140, [3, 3, large], { asked: 10 }),
      ].flat()
    expect(found(queue(100, 'large', 'small'), later('a', 'a'))).toEqual(['I3'])
    expect(found(queue(100, 'large', 'small'), later('a', 'b'))).toEqual([])
    const large = hold('large', 130, 140, [3, 3, 'a'], { asked: 10 })
    const small = (group?: string) => hold('small', 110, 120, [1, 3, group], { asked: 105, mode: 'once' })
    expect(found(queue(100, 'large'), large, small('a'))).toEqual(['I3'])
    expect(found(queue(100, 'large'), large, small())).toEqual([])
  })

  test('no unqueued request overtakes the head', () => {
    const large = hold('large', 130, 140, [3, 3], { asked: 10 })
    const small = (mode: 'unfair' | 'once' | 'fair', asked = 105) => hold('small', 110, 120, [1, 3], { asked, mode })
    expect(found(queue(100, 'large'), large, small('unfair'))).toEqual(['I3'])
    expect(found(queue(100, 'large'), large, small('once'))).toEqual(['I3'])
    // The check does not judge these two small requests. The first one came before the snapshot. The second one queues
    // as well, and a head start may have put it ahead of the large request.
    expect(found(queue(100, 'large'), large, small('once', 99))).toEqual([])
    expect(found(queue(100, 'large'), large, small('fair'))).toEqual([])
    expect(found(queue(100, 'large'), large, hold('late', 150, 160, [1, 3], { mode: 'once' }))).toEqual([])
  })

  test('no request overtakes a head that was still waiting and was never granted', () => {
    const small = hold('small', 110, 120, [1, 3], { asked: 105, mode: 'once' })
    const waiting = (part: boolean) =>
      at(10, 'request', {
        worker: 'w-large',
        attempt: 'large',
        key: 'k',
        mode: 'fair',
        owner: 'large',
        wants: [3, 3],
        ...(part && { part: 'several' }),
      })
    const end = (t: number) => at(t, 'end', { worker: 'w-large', attempt: 'large', how: 'timeout' })
    expect(found(queue(100, 'large'), waiting(false), small, end(115))).toEqual(['I3'])
    expect(found(queue(100, 'large'), waiting(false), small, end(108))).toEqual([])
    // This is no violation: a call for several locks may have been granted this lock, and may then have released it.
    expect(found(queue(100, 'large'), waiting(true), small, end(115))).toEqual([])
  })

  test('an overtaking is excused by a fault that reaches the overtaken waiter', () => {
    const passed = [
      ...hold('large', 130, 140, [3, 3], { asked: 10 }),
      ...hold('small', 110, 120, [1, 3], { asked: 105, mode: 'once' }),
    ]
    const cut = (worker: string): HistoryEvent[] =>
      (['begin', 'end'] as const).map(phase =>
        at(104, 'fault', { fault: 1, name: 'cut', phase, reach: 'worker', worker }),
      )
    expect(found(queue(100, 'large'), passed, cut('w-large'))).toEqual([])
    expect(found(queue(100, 'large'), passed, cut('w-small'))).toEqual(['I3'])
    expect(found(queue(100, 'large'), passed, taken(107))).toEqual([])
  })

  test('reports how much was judged', () => {
    const passed = [
      ...hold('large', 110, 120, [3, 3], { asked: 10 }),
      ...hold('small', 130, 140, [1, 3], { asked: 105, mode: 'once' }),
    ]
    expect(check([...run, queue(100, 'large'), ...passed]).order).toMatchObject({ barging: 1 })
  })
})

test('I6 a part of several locks may fail because of a fault that hits another part', () => {
  const part = (attempt: string, key: string, call: string) => [
    at(10, 'request', { worker: 'w', attempt, key, mode: 'fair', part: call }),
    at(30, 'end', { worker: 'w', attempt, how: 'failed', error: 'Redis refused' }),
  ]
  const fault = (key: string): HistoryEvent[] =>
    (['begin', 'end'] as const).map(phase =>
      at(15, 'fault', { fault: 1, name: 'wrong type', phase, reach: 'key', key }),
    )
  expect(found(part('a', 'k', 'one'), part('b', 'l', 'one'), fault('l'))).toEqual([])
  expect(found(part('a', 'k', 'one'), part('b', 'l', 'one'), fault('m'))).toEqual(['I6', 'I6'])
  expect(found(part('a', 'k', 'one'), part('b', 'l', 'two'), fault('l'))).toEqual(['I6'])
})

test('I4, turns: a part of several locks may be held already, while another part is waited for', () => {
  const waiting = (part: boolean) =>
    at(10, 'request', { worker: 'w', attempt: 'x', key: 'k', mode: 'unfair', ...(part && { part: 'several' }) })
  const calm = [at(20, 'calm', {}), at(9_000, 'end', { worker: 'w', attempt: 'x', how: 'timeout' })]
  expect(found(waiting(false), calm)).toEqual(['I4'])
  expect(found(waiting(true), calm)).toEqual([])
  // Two calls wait for the lock, which no process is known to hold. That is no violation: one of the two calls is for
  // several locks, and may already hold this lock.
  const other = at(12, 'request', { worker: 'v', attempt: 'y', key: 'k', mode: 'fair' })
  expect(found(other, waiting(true), calm, at(9_001, 'end', { worker: 'v', attempt: 'y', how: 'timeout' }))).toEqual([])
  const turns = Array.from({ length: 30 }, (_, i) => [
    ...granted(`t${i}`, 100 + i * 100, { worker: 't', mode: 'unfair' }),
    ...released(`t${i}`, 190 + i * 100),
  ])
  const end = at(4_000, 'end', { worker: 'w', attempt: 'x', how: 'timeout' })
  expect(found(waiting(false), ...turns, end)).toContain('turns')
  expect(found(waiting(true), ...turns, end)).not.toContain('turns')
})

describe('the witnesses', () => {
  const met = (id: string, ...others: string[]) => at(40, 'met', { worker: `w-${id}`, key: 'k', id, others })
  const three = [...hold('a', 10, 90, [1, 2]), ...hold('b', 20, 80, [1, 2]), ...hold('c', 30, 70, [1, 2])]

  test('may meet all callers that can hold together', () => {
    expect(found(three, met('c', 'a', 'b'))).toEqual(['I1', 'I1'])
    expect(found(three.slice(0, 8), met('b', 'a'))).toEqual([])
  })

  test('do not count callers whose holds had been taken away', () => {
    const old = [...granted('a', 10, { wants: [1, 2], lease: 393 }), lost('a', 400), ...released('a', 401, false)]
    const others = [...hold('b', 200, 380, [1, 2]), ...hold('c', 210, 370, [1, 2])]
    const event = at(240, 'met', { worker: 'w-c', key: 'k', id: 'c', others: ['a', 'b'] })
    expect(found(old, others, event)).toEqual(['I1', 'I1'])
    expect(found(old, taken(100), others, event)).toEqual([])
    const more = hold('d', 215, 360, [1, 2])
    const all = { ...event, others: ['a', 'b', 'd'] }
    expect(found(old, taken(100), others, more, all)).toEqual(['I1', 'I1'])
  })

  test('may write in any order', () => {
    const register = (...entries: [number, string][]) => at(500, 'register', { key: 'k', entries })
    const two = [...hold('a', 10, 90, [1, 2]), ...hold('b', 20, 80, [1, 2])]
    expect(found(two, register([tokenOf(20), 'b'], [tokenOf(10), 'a']))).toEqual([])
    expect(found(two, register([tokenOf(20), 'b'], [tokenOf(30), 'nobody']))).toEqual(['I2'])
  })
})

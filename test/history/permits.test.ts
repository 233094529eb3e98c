/**
 * Hand-made histories of semaphores: how many callers may hold at the same time, and in which order they are granted.
 */
import { describe, expect, test } from 'vitest'
import { at, found, granted, queue, released, run } from './by-hand.ts'
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
  test('a number belongs to one live hold at a time', () => {
    const both = (until: number, slots: number[]) =>
      found(hold('a', 10, until, [1, 3], { slots: [0] }), hold('b', 20, 80, [2, 3], { slots }))
    expect(both(90, [1, 2])).toEqual([])
    expect(both(90, [0, 1])).toEqual(['I1'])
    expect(both(15, [0, 1])).toEqual([])
  })

  test('a lock that was released before its minHold has passed is not granted until then', () => {
    const next = (issued: number, minHold: number) =>
      found(hold('a', 10, 15, [1, 1], { minHold }), hold('b', issued, issued + 10, [1, 1]))
    expect(next(20, 0)).toEqual([])
    expect(next(20, 30)).toEqual(['I1'])
    expect(next(50, 30)).toEqual([])
    const waited = hold('a', 310, 315, [1, 1], { minHold: 200, asked: 10 })
    expect(found(waited, hold('b', 400, 410, [1, 1]))).toEqual(['I1'])
    expect(found(waited, hold('b', 515, 520, [1, 1]))).toEqual([])
    expect(found(hold('a', 10, 15, [1, 1], { minHold: 30 }), taken(18), hold('b', 20, 30, [1, 1]))).toEqual([])
  })

  test('a group takes no more than its limit, by the number of each caller', () => {
    const a = (permits: number, limit?: number): Wants => [permits, 9, 'a', limit]
    expect(found(hold('a', 10, 90, a(2, 3)), hold('b', 20, 80, a(1, 3)), hold('c', 30, 70, [3, 9, 'b', 3]))).toEqual([])
    expect(found(hold('a', 10, 90, a(2, 3)), hold('b', 20, 80, a(2, 3)))).toEqual(['I1'])
    expect(found(hold('a', 10, 90, a(3, 3)), hold('b', 20, 80, a(1, 4)), hold('c', 30, 70, a(4)))).toEqual([])
  })
})

describe('I3', () => {
  test('a group has at most as much as the largest job of a group that waits, and one job', () => {
    const job = (id: string, issued: number, permits: number, fields: Times = {}) =>
      hold(id, issued, issued + 5, [permits, 9, id[0], id === 'l' ? 3 : undefined], { asked: 10, ...fields })
    const jobs = [job('a1', 110, 1), job('a2', 120, 1), job('a3', 130, 1)].flat()
    const seen = (...first: string[]) => queue(100, ...first, 'a1', 'a2', 'a3')
    expect(found(seen('b'), jobs, job('b', 140, 1))).toEqual(['I3'])
    expect(found(seen('b'), jobs, job('b', 140, 2))).toEqual([])
    expect(found(seen('b'), jobs, job('b', 125, 1))).toEqual([])
    expect(found(seen('b', 'b2'), jobs, job('b', 125, 1), job('b2', 140, 1))).toEqual([])
    // The group may be full, or a mate may be ahead of the waiter.
    expect(found(seen('l'), jobs, job('l', 140, 1))).toEqual([])
    expect(found(seen('b'), jobs, job('b', 140, 1), job('b2', 150, 1, { headStart: 500 }))).toEqual([])
    // Each of two other groups is granted two jobs at most.
    const two = [job('a1', 110, 1), job('c1', 115, 1), job('a2', 120, 1), job('c2', 125, 1)].flat()
    expect(found(queue(100, 'b', 'a1', 'c1', 'a2', 'c2'), two, job('b', 140, 1))).toEqual([])
  })

  test('inside a group, requests are granted in their order', () => {
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

test('I4: a part of several locks may be held already, while another part is waited for', () => {
  const waiting = (part: boolean) =>
    at(10, 'request', { worker: 'w', attempt: 'x', key: 'k', mode: 'unfair', ...(part && { part: 'several' }) })
  const calm = [at(20, 'calm', {}), at(9_000, 'end', { worker: 'w', attempt: 'x', how: 'timeout' })]
  expect(found(waiting(false), calm)).toEqual(['I4'])
  expect(found(waiting(true), calm)).toEqual([])
  // Two calls wait for the lock, which no process is known to hold. That is no violation: one of the two calls is for
  // several locks, and may already hold this lock.
  const other = at(12, 'request', { worker: 'v', attempt: 'y', key: 'k', mode: 'fair' })
  expect(found(other, waiting(true), calm, at(9_001, 'end', { worker: 'v', attempt: 'y', how: 'timeout' }))).toEqual([])
})

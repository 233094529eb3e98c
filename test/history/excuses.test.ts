/** Some faults necessarily break I1. These tests check what each fault excuses, and that it excuses nothing else. */
import { describe, expect, test } from 'vitest'
import { at, found, granted, lost, queue, released, run, tokenOf, WALL } from './by-hand.ts'
import { check } from './check.ts'
import type { HistoryEvent } from './events.ts'

const taken = (t: number, fields: { key?: string; worker?: string; how?: string } = {}) =>
  at(t, 'taken', { from: t - 2, how: 'a fault', ...fields })
const clock = (t: number, off: number) => at(t, 'clock', { wall: WALL + t + off })
/** Makes a holder that relies on its hold until 400 ms. At 400 ms, the holder is notified that the hold was lost. */
const old = (issued: number, fields: Parameters<typeof granted>[2] = {}) => [
  ...granted('a', issued, { lease: 403 - issued, ...fields }),
  lost('a', 400),
  ...released('a', 401, false),
]
const next = (issued: number, fields: Parameters<typeof granted>[2] = {}) => [
  ...granted('b', issued, fields),
  ...released('b', issued + 10),
]

describe('a failover that lost the last writes', () => {
  const failover = (...workers: string[]) => workers.map(worker => taken(200, { worker, how: 'failover' }))

  test('excuses grants of the old master to the processes that had not reached the new one yet', () => {
    expect(found(old(10), failover('w-a', 'w-b'), next(300))).toEqual([])
    expect(found(old(10), failover('w-b'), next(300))).toEqual(['I1'])
  })
})

describe("the server's clock steps", () => {
  const forward = [clock(199, 0), clock(200, 60_000), taken(200, { how: 'clock' })]

  test('forward: excuses earlier grants, and nothing else', () => {
    expect(found(old(10), forward, next(300, { off: 60_000 }))).toEqual([])
    expect(found(old(10), forward, next(100))).toEqual(['I1'])
    expect(found(old(260, { off: 60_000 }), forward, next(300, { off: 60_000 }))).toEqual(['I1'])
  })

  test('forward: the time of a grant follows from the clock at that time, however late the grant was received', () => {
    expect(found(old(150, { heard: 290 }), forward, next(285, { off: 60_000 }))).toEqual([])
    expect(found(old(260, { off: 60_000, heard: 284 }), forward, next(285, { off: 60_000 }))).toEqual(['I1'])
    // Holds are taken away at 100 ms, long before the grant to `a`. So the overlap has no excuse. The server's clock
    // steps forward at 5,100 ms. A checker that included this step when it computed the server's time at 100 ms would
    // excuse the overlap by mistake.
    const before = [taken(100), clock(5_099, 0), clock(5_100, 5_000)]
    const first = granted('a', 5_120, { off: 5_000, lease: 183 })
    const both = [...first, lost('a', 5_300), ...released('a', 5_301, false), ...next(5_200, { off: 5_000 })]
    expect(found(before, both)).toEqual(['I1'])
  })
})

describe('other losses of data', () => {
  test.each(['evict', 'restart', 'FLUSHALL'])('%s excuses earlier grants', how => {
    expect(found(old(10), taken(200, { how }), next(300))).toEqual([])
    expect(found(old(10), taken(200, { how }), next(100))).toEqual(['I1'])
    expect(found(old(260), taken(200, { how }), next(300))).toEqual(['I1'])
  })

  test('a fault of one lock excuses the order of its own waiters only', () => {
    const fault = (t: number, key: string) => [
      at(t, 'fault', { fault: 1, name: 'delete queue', phase: 'begin', reach: 'key', key }),
      at(t + 10, 'fault', { fault: 1, name: 'delete queue', phase: 'end', reach: 'key', key }),
    ]
    const overtaken = [...next(110, { asked: 10 }), ...granted('a', 130, { asked: 10 }), ...released('a', 140)]
    expect(found(queue(100, 'a', 'b'), overtaken, fault(105, 'k'))).toEqual([])
    expect(found(queue(100, 'a', 'b'), overtaken, fault(105, 'other'))).toEqual(['I3'])
    const failed = [
      at(10, 'request', { worker: 'w', attempt: 'a', key: 'k', mode: 'fair' }),
      at(30, 'end', { worker: 'w', attempt: 'a', how: 'failed', error: 'Redis refused' }),
    ]
    expect(found(failed, fault(15, 'k'))).toEqual([])
    expect(found(failed, fault(15, 'other'))).toEqual(['I6'])
  })
})

describe('a forged grant with a waiter’s id', () => {
  /** `a` holds the lock from 10 to 400. `f` waits, and receives a forged grant at 200. */
  const holder = [...granted('a', 10), ...released('a', 400)]
  const believer = (told: HistoryEvent[] = [lost('f', 230)]) => [
    ...granted('f', 200, { asked: 5, lease: 33 }),
    ...told,
    ...released('f', 260, false),
  ]
  const forged = (id = 'f', t = 200, key = 'k') => at(199, 'forged', { key, id, token: tokenOf(t) })

  test('is excused for that waiter and that token', () => {
    expect(found(holder, believer(), forged())).toEqual([])
    expect(found(holder, believer())).toEqual(['I1'])
    expect(found(holder, believer(), forged('another'))).toEqual(['I1'])
    expect(found(holder, believer(), forged('f', 201))).toEqual(['I1'])
  })

  test('does not count as progress, and its waiter’s place in the queue is no evidence about the order of others', () => {
    expect(found(queue(100, 'b', 'f'), holder, believer(), forged(), next(410, { asked: 7 }))).toEqual([])
    const calm = at(1_000, 'calm', {})
    const waiting = [
      at(990, 'request', { worker: 'w', attempt: 'x', key: 'k', mode: 'fair' }),
      at(9_000, 'end', { worker: 'w', attempt: 'x', how: 'timeout' }),
    ]
    const at4000 = [...granted('f', 4_000, { lease: 33 }), lost('f', 4_030), ...released('f', 4_060, false)]
    expect(found(calm, waiting, at4000)).toEqual([])
    expect(found(calm, waiting, at4000, forged('f', 4_000))).toEqual(['I4'])
  })

  test('excuses what the witnesses saw of it, and nothing else', () => {
    const met = (id: string, other: string) => at(210, 'met', { worker: `w-${id}`, key: 'k', id, others: [other] })
    expect(found(holder, believer(), forged(), met('f', 'a'))).toEqual([])
    expect(found(holder, believer(), forged(), next(500), met('b', 'a'))).toEqual(['I1'])
    const fenced = (newer: number) => at(220, 'fenced', { worker: 'w-a', key: 'k', id: 'a', token: tokenOf(10), newer })
    expect(found(holder, believer(), forged(), fenced(tokenOf(200)))).toEqual([])
    expect(found(holder, believer(), forged(), fenced(tokenOf(205)))).toEqual(['I2'])
    const register = (...entries: [number, string][]) => at(500, 'register', { key: 'k', entries })
    expect(found(holder, believer(), forged(), register([tokenOf(10), 'a'], [tokenOf(200), 'f']))).toEqual([])
    expect(found(holder, believer(), forged(), register([tokenOf(200), 'f'], [tokenOf(10), 'a']))).toEqual(['I2'])
  })
})

test('excused violations are counted', () => {
  const met = at(305, 'met', { worker: 'w-b', key: 'k', id: 'b', others: ['a'] })
  const believer = [...granted('f', 200, { asked: 5, lease: 33 }), lost('f', 230), ...released('f', 260, false)]
  const forged = at(199, 'forged', { key: 'k', id: 'f', token: tokenOf(200) })
  const events = [...run, ...old(10), taken(290), ...next(300), met, ...believer, forged]
  expect(check(events)).toMatchObject({ violations: [], excused: { overlaps: 1, forged: 1, witnesses: 1 } })
})

test('after a forced release, a waiter that had not learned of its grant may have to wait again', () => {
  const overtaken = [...next(110, { asked: 10 }), ...granted('a', 130, { asked: 10 }), ...released('a', 140)]
  expect(found(queue(100, 'a', 'b'), overtaken, taken(107, { key: 'k' }))).toEqual([])
  expect(found(queue(100, 'a', 'b'), overtaken, taken(90, { key: 'k' }))).toEqual(['I3'])
  expect(found(queue(100, 'a', 'b'), overtaken, taken(107, { key: 'other' }))).toEqual(['I3'])
})

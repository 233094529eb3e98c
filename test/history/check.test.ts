/** Hand-made histories: what counts as a violation, what is excused, and the limits of each excuse. */
import { describe, expect, test } from 'vitest'
import { at, found, granted, lost, queue, released, run } from './by-hand.ts'
import { check, eventsBefore } from './check.ts'

describe('I1', () => {
  test('a dead process holds until the last deadline that it knew, and no longer', () => {
    const dead = [...granted('a', 10, { lease: 500 }), at(20, 'died', { worker: 'w-a' })]
    expect(found(dead, granted('b', 400), released('b', 410))).toEqual(['I1'])
    expect(found(dead, granted('b', 510), released('b', 520))).toEqual([])
  })

  test('a taking ends holds granted before it, and nothing else', () => {
    const taken = at(200, 'taken', { key: 'k', from: 190, how: 'DEL' })
    const old = [...granted('a', 10, { lease: 393 }), lost('a', 400), ...released('a', 401, false)]
    expect(found(old, taken, granted('b', 300), released('b', 310))).toEqual([])
    expect(found(old, granted('b', 100), released('b', 110), taken)).toEqual(['I1'])
    expect(found(taken, granted('b', 300), granted('c', 350), released('b', 360), released('c', 370))).toEqual(['I1'])
    expect(
      found(old, at(200, 'taken', { key: 'other', from: 190, how: 'DEL' }), granted('b', 300), released('b', 310)),
    ).toEqual(['I1'])
  })
})

describe('I3', () => {
  const swapped = [...granted('b', 110), ...released('b', 120), ...granted('a', 130), ...released('a', 140)]
  const early = swapped.map(event => (event.kind === 'request' ? { ...event, t: 10 } : event))

  test('a waiter whose timeout has passed counts as gone, however late its process reports that', () => {
    const waiting = (terms: { patience?: number; abort?: number }) =>
      at(10, 'request', { worker: 'w-a', attempt: 'a', key: 'k', mode: 'fair', owner: 'a', ...terms })
    const next = [...granted('b', 110), ...released('b', 120)]
    const end = (how: 'timeout' | 'aborted') => at(115, 'end', { worker: 'w-a', attempt: 'a', how })
    const judged = (terms: { patience?: number; abort?: number }, how: 'timeout' | 'aborted') =>
      found(waiting(terms), queue(100, 'a', 'b'), next, end(how))
    expect(judged({ patience: 101 }, 'timeout')).toEqual([])
    expect(judged({ patience: 103 }, 'timeout')).toEqual(['I3'])
    expect(judged({ abort: 98 }, 'aborted')).toEqual([])
    expect(judged({ abort: 103 }, 'aborted')).toEqual(['I3'])
    expect(judged({ patience: 103, abort: 98 }, 'aborted')).toEqual([])
  })

  test('a fault that reaches the overtaken waiter is an excuse, for as long as its next heartbeats may take', () => {
    const fault = (t: number, worker: string, reach: 'worker' | 'nothing' = 'worker') => [
      at(t, 'fault', { fault: 1, name: 'cut', phase: 'begin', reach, worker }),
      at(t + 10, 'fault', { fault: 1, name: 'cut', phase: 'end', reach, worker }),
    ]
    expect(found(queue(100, 'a', 'b'), early, fault(105, 'w-a'))).toEqual([])
    expect(found(queue(100, 'a', 'b'), early, fault(50, 'w-a'))).toEqual([])
    expect(found(queue(100, 'a', 'b'), early, fault(105, 'w-a', 'nothing'))).toEqual(['I3'])
    expect(found(queue(100, 'a', 'b'), early, fault(105, 'w-b'))).toEqual(['I3'])
    expect(found(queue(100, 'a', 'b'), early, fault(-4_000, 'w-a'))).toEqual(['I3'])
  })
})

describe('I6 and I8', () => {
  const waiting = at(10, 'request', { worker: 'w', attempt: 'a', key: 'k', mode: 'fair', patience: 100 })
  const end = at(5_000, 'end', { worker: 'w', attempt: 'a', how: 'timeout' })

  test('finds a promise that settles late, unless its process stood still', () => {
    expect(found(waiting, end)).toEqual(['I6'])
    expect(found(waiting, end, at(4_900, 'stall', { worker: 'w', from: 100 }))).toEqual([])
    const cut = (t: number, phase: 'begin' | 'end') =>
      at(t, 'fault', { fault: 1, name: 'cut', phase, reach: 'worker', worker: 'w' })
    expect(found(waiting, end, cut(100, 'begin'), cut(4_990, 'end'))).toEqual(['I6'])
  })

  test.each(['freeze', 'block'])('a process that is killed after a %s need not report that it stood still', name => {
    const fault = (t: number, phase: 'begin' | 'end', worker: string) =>
      at(t, 'fault', { fault: 1, name, phase, reach: 'worker', worker })
    const killed = at(5_001, 'died', { worker: 'w' })
    expect(found(waiting, fault(100, 'begin', 'w'), fault(4_990, 'end', 'w'), end, killed)).toEqual([])
    expect(found(waiting, fault(100, 'begin', 'v'), fault(4_990, 'end', 'v'), end, killed)).toEqual(['I6'])
  })

  test('finds a call that fails without a fault', () => {
    const failed = at(20, 'end', { worker: 'w', attempt: 'a', how: 'failed', error: 'Redis refused' })
    expect(found(waiting, failed)).toEqual(['I6'])
    expect(found(waiting, failed, at(15, 'taken', { from: 14, how: 'FLUSHALL' }))).toEqual([])
  })

  test('a hold that ran out while its release was under way was not lost', () => {
    const release = at(20, 'release', { worker: 'w-a', id: 'a', held: true })
    const answer = (t: number) => at(t, 'released', { worker: 'w-a', id: 'a', result: false })
    expect(found(granted('a', 10), release, answer(1_010))).toEqual([])
    expect(found(granted('a', 10), release, answer(900))).toEqual(['I8'])
  })
})

test('a violation is shown with the events of its key and the faults before it', () => {
  const list = [...run, ...granted('a', 10), ...granted('b', 20), ...released('a', 30), ...released('b', 900)]
  const other = at(15, 'request', { worker: 'w', attempt: 'x', key: 'other', mode: 'fair' })
  const fault = at(12, 'fault', { fault: 1, name: 'cut', phase: 'begin', reach: 'worker', worker: 'w' })
  const [violation] = check([...list, other, fault]).violations
  const shown = eventsBefore(violation!, [...list, other, fault])
  expect(shown).toContain(fault)
  expect(shown).not.toContain(other)
  expect(shown.filter(({ kind }) => kind === 'grant')).toHaveLength(2)
})

test('a hundred thousand events are checked in seconds of CPU time', { timeout: 120_000 }, () => {
  const many = Array.from({ length: 20_000 }, (_, i) => [
    ...granted(`h${i}`, 10 + i * 10, { lease: 1_000 }),
    ...released(`h${i}`, 15 + i * 10),
    ...(i % 2 === 0 ? [queue(8.5 + i * 10, `h${i}`, `h${i + 1}`)] : []),
  ])
  const list = [...run, ...many.flat()]
  const before = process.cpuUsage()
  const { violations, order } = check(list)
  expect(violations).toEqual([])
  expect(order.compared).toBe(10_000)
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000_000).toBeLessThan(2)
})

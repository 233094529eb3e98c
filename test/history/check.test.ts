/** Hand-made histories: what counts as a violation, what is excused, and the limits of each excuse. */
import { describe, expect, test } from 'vitest'
import { at, found, granted, lost, queue, released, run, WALL } from './by-hand.ts'
import { check, eventsBefore } from './check.ts'

describe('I1', () => {
  test('holds one after the other are accepted', () => {
    expect(found(granted('a', 10), released('a', 20), granted('b', 25), released('b', 30))).toEqual([])
  })

  test('a dead process holds until the last deadline that it knew, and no longer', () => {
    const dead = [...granted('a', 10, { lease: 500 }), at(20, 'died', { worker: 'w-a' })]
    expect(found(dead, granted('b', 400), released('b', 410))).toEqual(['I1'])
    expect(found(dead, granted('b', 510), released('b', 520))).toEqual([])
  })

  test('a stopped process holds only until its deadline', () => {
    const stopped = [...granted('a', 10, { lease: 500 }), lost('a', 2_000), ...released('a', 2_001, false)]
    expect(found(stopped, granted('b', 600), released('b', 700))).toEqual([])
  })

  test('an overlap with the second to last hold is found', () => {
    const long = [...granted('a', 10, { lease: 5_000 }), ...released('a', 300)]
    expect(
      found(long, granted('a2', 20, { owner: 'a' }), released('a2', 30), granted('c', 100), released('c', 110)),
    ).toContain('I1')
  })

  test('holds of one owner may overlap', () => {
    const again = granted('a2', 10, { owner: 'a', via: 'reentry' })
    expect(found(granted('a', 10), again, released('a2', 30), released('a', 40))).toEqual([])
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

describe('I2', () => {
  test('finds a token smaller than one known at the time of the request', () => {
    const late = granted('b', 50).map(event =>
      event.kind === 'grant' ? { ...event, token: (WALL + 5) * 1000 } : event,
    )
    expect(found(granted('a', 10), released('a', 20), late, released('b', 60))).toContain('I2')
  })
})

test('I1 no process counts on a hold for longer than the longest lease, whoever owns it', () => {
  const believed = (ms: number, owner = 'a') => [...granted('a', 10, { owner, lease: ms }), ...released('a', 20)]
  const renewed = at(15, 'renewed', { worker: 'w-a', id: 'a', deadline: 15 + 60_000 })
  expect(found(believed(3_000))).toEqual([])
  expect(found(believed(60_000))).toEqual(['I1'])
  expect(found(believed(60_000, 'somebody'))).toEqual(['I1'])
  expect(found(believed(3_000), renewed)).toEqual(['I1'])
})

describe('I3', () => {
  const swapped = [...granted('b', 110), ...released('b', 120), ...granted('a', 130), ...released('a', 140)]
  const early = swapped.map(event => (event.kind === 'request' ? { ...event, t: 10 } : event))

  test('finds a waiter that was overtaken', () => {
    expect(found(queue(100, 'a', 'b'), early)).toEqual(['I3'])
    expect(found(queue(100, 'b', 'a'), early)).toEqual([])
  })

  test('finds an overtaken waiter that was never granted', () => {
    const waiting = at(10, 'request', { worker: 'w-a', attempt: 'a', key: 'k', mode: 'fair', owner: 'a' })
    const end = (t: number) => at(t, 'end', { worker: 'w-a', attempt: 'a', how: 'timeout' })
    expect(found(waiting, queue(100, 'a', 'b'), granted('b', 110), released('b', 120), end(115))).toEqual(['I3'])
    expect(found(waiting, queue(100, 'a', 'b'), granted('b', 110), released('b', 120), end(105))).toEqual([])
  })

  test('a waiter whose timeout has passed counts as gone, however late its process reports that', () => {
    const waiting = (terms: { patience?: number; abort?: number }) =>
      at(10, 'request', { worker: 'w-a', attempt: 'a', key: 'k', mode: 'fair', owner: 'a', ...terms })
    const next = [...granted('b', 110), ...released('b', 120)]
    const end = (how: 'timeout' | 'aborted') => at(115, 'end', { worker: 'w-a', attempt: 'a', how })
    const judged = (terms: { patience?: number; abort?: number }, how: 'timeout' | 'aborted') =>
      found(waiting(terms), queue(100, 'a', 'b'), next, end(how))
    expect(judged({ patience: 98 }, 'timeout')).toEqual([])
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

describe('I4', () => {
  const waiting = at(10, 'request', { worker: 'w-a', attempt: 'a', key: 'k', mode: 'fair' })
  const end = at(9_000, 'end', { worker: 'w-a', attempt: 'a', how: 'timeout' })

  test('finds a calm in which a caller waits while no process holds', () => {
    expect(found(waiting, end, at(100, 'calm', {}))).toEqual(['I4'])
    expect(found(waiting, end, at(100, 'calm', {}), at(5_000, 'storm', {}))).toEqual([])
    expect(found(waiting, end, at(100, 'calm', {}), granted('b', 4_000), released('b', 4_100))).toEqual([])
    expect(found(waiting, end, at(100, 'calm', {}), at(200, 'died', { worker: 'w-a' }))).toEqual([])
  })

  test('finds a promise that is still pending after the end of the run', () => {
    expect(found(waiting, at(100, 'healed', { bound: 50 }))).toEqual(['I4', 'I6'])
    expect(found(waiting, at(100, 'healed', { bound: 50 }), at(90, 'died', { worker: 'w-a' }))).toEqual([])
  })
})

describe('I5', () => {
  const early = [...granted('a', 10), lost('a', 400), ...released('a', 401, false)]

  test('finds a hold that is lost before its deadline without a taking', () => {
    expect(found(early)).toEqual(['I5'])
    expect(found(granted('a', 10, { lease: 393 }), early.slice(2))).toEqual([])
    expect(found(early, at(200, 'taken', { key: 'k', from: 190, how: 'DEL' }))).toEqual([])
    expect(found(early, at(200, 'taken', { key: 'other', from: 190, how: 'DEL' }))).toEqual(['I5'])
    expect(found(early, at(600, 'taken', { key: 'k', from: 590, how: 'DEL' }))).toEqual(['I5'])
  })

  test('a renewal moves this deadline', () => {
    const renewed = at(300, 'renewed', { worker: 'w-a', id: 'a', deadline: 900 })
    expect(found(granted('a', 10, { lease: 393 }), renewed, lost('a', 400), released('a', 401, false))).toEqual(['I5'])
  })
})

describe('I6 and I8', () => {
  const waiting = at(10, 'request', { worker: 'w', attempt: 'a', key: 'k', mode: 'fair', patience: 100 })
  const end = at(5_000, 'end', { worker: 'w', attempt: 'a', how: 'timeout' })

  test('finds a promise that settles late, unless its process stood still', () => {
    expect(found(waiting, end)).toEqual(['I6'])
    expect(found(waiting, end, at(4_900, 'stall', { worker: 'w', from: 100 }))).toEqual([])
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

  test('finds a hold that never ends, and a hold whose end was not signalled', () => {
    expect(found(granted('a', 10))).toEqual(['I8'])
    expect(found(granted('a', 10), released('a', 20, false))).toEqual(['I8'])
    expect(found(granted('a', 10, { lease: 8 }), lost('a', 15), released('a', 20, false))).toEqual([])
  })

  test('a hold that ran out while its release was under way was not lost', () => {
    const release = at(20, 'release', { worker: 'w-a', id: 'a', held: true })
    const answer = (t: number) => at(t, 'released', { worker: 'w-a', id: 'a', result: false })
    expect(found(granted('a', 10), release, answer(1_010))).toEqual([])
    expect(found(granted('a', 10), release, answer(900))).toEqual(['I8'])
  })

  test('finds events that must never happen in a process', () => {
    expect(found(at(10, 'crash', { worker: 'w', error: 'unhandled rejection' }))).toEqual(['I6'])
  })
})

describe('the witnesses', () => {
  const two = [...granted('a', 10), ...released('a', 20), ...granted('b', 30), ...released('b', 40)]

  test('count even if the history shows no violation', () => {
    const { violations } = check([...run, ...two, at(32, 'met', { worker: 'w-b', key: 'k', id: 'b', others: ['a'] })])
    expect(violations.map(({ text }) => text)).toEqual([
      'by the files: a was inside when b came, which the history does not show',
    ])
    expect(found(two, at(35, 'fenced', { worker: 'w-a', key: 'k', id: 'a', token: 1, newer: 2 }))).toEqual(['I2'])
  })

  test('are excused as the history is', () => {
    const taken = at(26, 'taken', { from: 24, how: 'FLUSHALL' })
    expect(found(two, taken, at(32, 'met', { worker: 'w-b', key: 'k', id: 'b', others: ['a'] }))).toEqual([])
  })

  test('and the history agree on the writes', () => {
    const token = (t: number) => (WALL + t) * 1000
    const register = (...entries: [number, string][]) => at(50, 'register', { key: 'k', entries })
    expect(found(two, register([token(10), 'a'], [token(30), 'b']))).toEqual([])
    expect(found(two, register([token(30), 'b'], [token(10), 'a']))).toEqual(['I2'])
    expect(found(two, register([token(10), 'b']))).toEqual(['I2'])
    expect(found(two, register(), at(35, 'written', { worker: 'w-b', key: 'k', id: 'b', token: token(30) }))).toEqual([
      'I2',
    ])
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

test('a million events are checked in seconds of CPU time', { timeout: 120_000 }, () => {
  const many = Array.from({ length: 200_000 }, (_, i) => [
    ...granted(`h${i}`, 10 + i * 10, { lease: 1_000 }),
    ...released(`h${i}`, 15 + i * 10),
    ...(i % 2 === 0 ? [queue(8.5 + i * 10, `h${i}`, `h${i + 1}`)] : []),
  ])
  const list = [...run, ...many.flat()]
  const before = process.cpuUsage()
  const { violations, order } = check(list)
  expect(violations).toEqual([])
  expect(order.compared).toBe(100_000)
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000_000).toBeLessThan(20)
})

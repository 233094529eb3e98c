/** Hand-made histories of read-write locks: which holds may overlap, and whose turn it is. */
import { describe, expect, test } from 'vitest'
import { at, found, granted, lost, queue, queues, released, run, tokenOf } from './by-hand.ts'
import { check } from './check.ts'
import type { HistoryEvent } from './events.ts'

type Times = Parameters<typeof granted>[2]
const hold = (wants: 'read' | 'write', id: string, issued: number, until: number, fields: Times = {}) => [
  ...granted(id, issued, { wants, ...fields }),
  ...released(id, until),
]
const read = (id: string, issued: number, until: number, fields?: Times) => hold('read', id, issued, until, fields)
const write = (id: string, issued: number, until: number, fields?: Times) => hold('write', id, issued, until, fields)
/** Makes a re-entry inside the hold that `owner` was granted at `since`. */
const inside = (owner: string, since: number, issued: number): Times => ({ owner, via: 'reentry', off: since - issued })
const waiting = (wants: 'read' | 'write', id: string, fields: object = {}) =>
  at(10, 'request', { worker: `w-${id}`, attempt: id, key: 'k', mode: 'fair', owner: id, wants, ...fields })
const ended = (id: string, t: number, how: 'timeout' | 'refused' | 'deadlock' = 'timeout') =>
  at(t, 'end', { worker: `w-${id}`, attempt: id, how })
const cut = (worker: string): HistoryEvent[] =>
  (['begin', 'end'] as const).map(phase => at(104, 'fault', { fault: 1, name: 'cut', phase, reach: 'worker', worker }))

describe('I1', () => {
  test('readers read together; a writer is alone', () => {
    expect(found(read('a', 10, 90), read('b', 20, 80), read('c', 30, 70))).toEqual([])
    expect(found(read('a', 10, 90), write('w', 20, 80))).toEqual(['I1'])
    expect(found(write('w', 10, 90), read('a', 20, 80))).toEqual(['I1'])
    expect(found(write('w', 10, 90), write('v', 20, 80))).toEqual(['I1'])
    expect(found(write('w', 10, 15), read('a', 20, 80), write('v', 90, 95))).toEqual([])
  })

  test('finds that one of many readers is still inside', () => {
    expect(found(read('a', 10, 90), read('b', 20, 40), read('c', 30, 45), write('w', 60, 80))).toEqual(['I1'])
  })

  test('a writer may also read, and may keep reading after its write', () => {
    const both = [...write('w', 10, 40), ...read('w2', 20, 90, inside('w', 10, 20))]
    expect(found(both, read('a', 50, 80))).toEqual([])
    expect(found(both, read('a', 30, 80))).toEqual(['I1'])
    expect(found(both, write('v', 50, 80))).toEqual(['I1'])
  })
})

describe('I2', () => {
  test('finds a writer’s grant that arrives too late, but accepts readers’ late grants', () => {
    expect(found(read('b', 20, 80), read('a', 10, 90, { heard: 30 }))).toEqual([])
    expect(found(read('b', 20, 80), write('w', 10, 35, { heard: 30 }))).toEqual(['I1', 'I2'])
    expect(found(write('w', 20, 25), read('a', 10, 40, { heard: 30 }))).toEqual(['I2'])
  })

  test('readers’ tokens differ, unless an owner reads again', () => {
    expect(found(read('a', 10, 90), read('b', 20, 80, { off: -10 }))).toEqual(['I2'])
    const others = [...read('a', 10, 90), ...read('b', 20, 80)]
    expect(found(others, read('a2', 40, 60, inside('a', 10, 40)))).toEqual([])
    // In the first history, the owner's first hold had already ended. In the second history, the owner c has no hold
    // that it could re-enter.
    expect(found(read('a', 10, 30), read('b', 20, 80), read('a2', 40, 60, inside('a', 10, 40)))).toEqual(['I2'])
    expect(found(others, read('c', 40, 60, { via: 'reentry', off: -35 }))).toEqual(['I2'])
  })

  test('an owner’s waiting reads that are admitted together, or beside its hold, have one token', () => {
    const other = { owner: 'a', asked: 5, off: -10 }
    expect(found(read('a', 10, 30), read('b', 15, 80), read('a2', 20, 60, other))).toEqual([])
    expect(found(read('a', 10, 18), read('a2', 20, 60, { ...other, asked: 19 }))).toEqual(['I2'])
    expect(found(read('a', 10, 30), read('b2', 20, 60, { ...other, owner: 'b' }))).toEqual(['I2'])
    expect(found(write('a', 10, 30), write('a2', 20, 60, other))).toEqual(['I2'])
  })

  test('a reader that the register refuses was overtaken by a writer', () => {
    const list = [...read('a', 10, 90), ...write('w', 100, 110)]
    const fenced = at(80, 'fenced', { worker: 'w-a', key: 'k', id: 'a', token: tokenOf(10), newer: tokenOf(100) })
    expect(found(list, fenced)).toEqual(['I2'])
  })
})

describe('I3 a reader waits for one writer’s turn at most', () => {
  const queued = queues(100, { readers: ['r'] })
  const reader = read('r', 200, 210, { asked: 10 })

  test('the turn may be the current writer’s or the next writer’s', () => {
    expect(found(queued, write('v', 50, 120), reader)).toEqual([])
    expect(found(queued, write('v', 110, 120), reader)).toEqual([])
    expect(found(queued, write('v', 50, 120), write('w', 130, 140), reader)).toEqual(['I3'])
    expect(found(queued, write('v', 110, 120), write('w', 130, 140), reader)).toEqual(['I3'])
    expect(found(queued, write('v', 50, 90), write('w', 130, 140), reader)).toEqual([])
  })

  test('a turn has one writer, however often it enters', () => {
    expect(found(queued, write('v', 50, 160), write('v2', 130, 140, inside('v', 50, 130)), reader)).toEqual([])
  })

  test('this holds whether or not the reader was granted in the end', () => {
    const turns = [...write('v', 50, 120), ...write('w', 130, 140)]
    expect(found(queued, turns, waiting('read', 'r'), ended('r', 135))).toEqual(['I3'])
    expect(found(queued, turns, waiting('read', 'r'), ended('r', 125))).toEqual([])
    expect(found(queued, turns, waiting('read', 'r', { part: 'several' }), ended('r', 135))).toEqual([])
  })

  test('a fault that reaches the reader is an excuse', () => {
    const turns = [...write('v', 50, 120), ...write('w', 130, 140), ...reader]
    expect(found(queued, turns, cut('w-r'))).toEqual([])
    expect(found(queued, turns, cut('w-w'))).toEqual(['I3'])
    expect(found(queued, turns, at(127, 'taken', { key: 'k', from: 126, how: 'forceRelease' }))).toEqual([])
    expect(found(queued, turns, at(127, 'taken', { key: 'other', from: 126, how: 'DEL' }))).toEqual(['I3'])
  })
})

describe('I3 no reader is admitted while others read and a writer is queued', () => {
  const reading = read('a', 50, 120)
  const writer = write('w', 200, 210, { asked: 10 })
  const late = (asked: number, fields?: Times) => read('r', 150, 160, { asked, ...fields })

  test('this holds for newcomers and for queued readers', () => {
    expect(found(queues(100, { writers: ['w'] }), reading, writer, late(105))).toEqual(['I3'])
    expect(found(queues(100, { writers: ['w'], readers: ['r'] }), reading, writer, late(20))).toEqual(['I3'])
    // These histories have no violation, because the reader `r` may have requested the lock before the writer queued.
    expect(found(queues(100, { writers: ['w'] }), reading, writer, late(95))).toEqual([])
    expect(found(queues(100, { readers: ['r'] }), reading, writer, late(20))).toEqual([])
  })

  test('after a writer’s turn, it is the readers’ turn', () => {
    expect(found(queues(100, { writers: ['v', 'w'] }), reading, write('v', 130, 140), writer, late(105))).toEqual([])
    // At the time of the snapshot, x is the only holder. It writes until 110 ms, and it has re-entered to read until
    // 130 ms.
    const both = [...write('x', 50, 110), ...read('x2', 60, 130, inside('x', 50, 60))]
    expect(found(queues(100, { writers: ['w'] }), both, writer, late(105))).toEqual([])
  })

  test('an owner that reads already may read again', () => {
    const again = read('a2', 110, 115, { ...inside('a', 50, 110), asked: 105 })
    expect(found(queues(100, { writers: ['w'] }), reading, again, writer)).toEqual([])
  })

  test('the history may not show the turn of a writer that gave up', () => {
    const both = queues(100, { writers: ['v', 'w'], readers: ['r'] })
    expect(found(both, reading, waiting('write', 'v'), ended('v', 125), writer, late(20))).toEqual([])
    const ahead = [waiting('write', 'v', { headStart: 50 }), ended('v', 125)]
    const one = queues(100, { writers: ['w'], readers: ['r'] })
    expect(found(one, reading, ahead, writer, late(20))).toEqual([])
    expect(found(one, reading, waiting('write', 'v'), ended('v', 125), writer, late(20))).toEqual(['I3'])
  })

  test('a fault that reaches the writer is an excuse', () => {
    const list = [queues(100, { writers: ['w'] }), ...reading, ...writer, ...late(105)]
    expect(found(list, cut('w-w'))).toEqual([])
    expect(found(list, cut('w-r'))).toEqual(['I3'])
  })
})

test('I3 writers are served by ticket, and no unqueued caller overtakes either queue', () => {
  const swapped = [...write('w', 110, 120, { asked: 10 }), ...write('v', 130, 140, { asked: 10 })]
  expect(found(queues(100, { writers: ['v', 'w'] }), swapped)).toEqual(['I3'])
  expect(found(queues(100, { writers: ['w', 'v'] }), swapped)).toEqual([])
  const once = (wants: 'read' | 'write') => hold(wants, 'o', 110, 120, { asked: 105, mode: 'once' })
  for (const wants of ['read', 'write'] as const) {
    expect(found(queues(100, { writers: ['w'] }), write('w', 130, 140, { asked: 10 }), once(wants))).toEqual(['I3'])
    expect(found(queues(100, { readers: ['r'] }), read('r', 130, 140, { asked: 10 }), once(wants))).toEqual(['I3'])
  }
})

test('I3 a reader keeps its ticket', () => {
  const sight = (t: number, ticket: string) =>
    ({ ...queues(t, {}), readers: [['r', ticket, 'w-r', 'r']] }) as HistoryEvent
  expect(found(sight(100, '5'), sight(110, '5'))).toEqual([])
  expect(found(sight(100, '5'), sight(110, '6'))).toEqual(['I3'])
})

describe('I6 a call that would wait for its own caller', () => {
  const upgrade = (how: 'deadlock' | 'refused' | 'timeout', fields: object = {}) => [
    at(30, 'request', { worker: 'w-a', attempt: 'up', key: 'k', mode: 'once', owner: 'a', wants: 'write', ...fields }),
    at(40, 'end', { worker: 'w-a', attempt: 'up', how }),
  ]

  test('is refused as a deadlock, and no other call is', () => {
    expect(found(read('a', 10, 90), upgrade('deadlock'))).toEqual([])
    expect(found(read('a', 10, 90), upgrade('refused'))).toEqual(['I6'])
    expect(found(read('a', 10, 90), upgrade('timeout'))).toEqual(['I6'])
    expect(found(read('b', 10, 90), upgrade('deadlock'))).toEqual(['I6'])
    expect(found(read('b', 10, 90), upgrade('refused'))).toEqual([])
    expect(found(read('a', 10, 20), upgrade('deadlock'))).toEqual(['I6'])
    expect(found(read('a', 10, 35), upgrade('refused'))).toEqual([])
    expect(found(read('a', 50, 90), upgrade('deadlock'))).toEqual(['I6'])
  })

  test('is not judged if the caller’s hold was lost, because Redis may know that already', () => {
    const old = (fate: HistoryEvent[]) => [...granted('a', 10, { wants: 'read', lease: 20 }), lost('a', 27), ...fate]
    expect(found(old(released('a', 50, false)), upgrade('deadlock'))).toEqual([])
    const taken = at(20, 'taken', { key: 'k', from: 18, how: 'DEL' })
    expect(found(read('a', 10, 90), taken, upgrade('refused'))).toEqual([])
  })

  test('is not admitted', () => {
    const up = write('a2', 31, 40, { owner: 'a', asked: 30, mode: 'once' })
    expect(found(read('a', 10, 90), up)).toEqual(['I6'])
    expect(found(read('a', 10, 20), up)).toEqual([])
    const own = [...write('a', 10, 90), ...read('a3', 20, 80, inside('a', 10, 20))]
    expect(found(own, write('a2', 31, 40, { ...inside('a', 10, 31), asked: 30 }))).toEqual([])
  })

  test('a fault that reaches its process is an excuse', () => {
    expect(found(read('a', 10, 90), upgrade('refused'), cut('w-a'))).toEqual(['I6'])
    const early = cut('w-a').map(event => ({ ...event, t: 25 }) as HistoryEvent)
    expect(found(read('a', 10, 90), upgrade('refused'), early)).toEqual([])
  })
})

test('reports how much was judged', () => {
  const events = [
    ...run,
    queues(100, { readers: ['r'] }),
    ...write('v', 50, 120),
    ...read('r', 130, 140, { asked: 10 }),
    ...write('w', 150, 160),
  ]
  expect(check(events).order).toMatchObject({ phases: 1 })
  expect(check([...run, queue(100, 'a')]).order).toMatchObject({ phases: 0 })
})

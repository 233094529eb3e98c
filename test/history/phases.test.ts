/** Hand-made histories of read-write locks: which holds may overlap, and whose turn it is. */
import { describe, expect, test } from 'vitest'
import { at, found, granted, lost, queue, queues, released, run } from './by-hand.ts'
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
  test('a writer may also read, and may keep reading after its write', () => {
    const both = [...write('w', 10, 40), ...read('w2', 20, 90, inside('w', 10, 20))]
    expect(found(both, read('a', 50, 80))).toEqual([])
    expect(found(both, read('a', 30, 80))).toEqual(['I1'])
    expect(found(both, write('v', 50, 80))).toEqual(['I1'])
  })
})

describe('I2', () => {
  // The lease of the outer read, 5 ms, ends for the process before the request of the nested one, at 30.
  test('a nested read has the token of the outer one as long as Redis has that one, also past larger tokens', () => {
    const nested = (result: boolean) => {
      const [, answer] = released('a', 50, result) as [HistoryEvent, HistoryEvent]
      const outer = [
        ...granted('a', 10, { wants: 'read', lease: 5 }),
        at(50, 'release', { worker: 'w-a', id: 'a', held: false, doubt: true }),
        answer,
      ]
      return found(outer, read('b', 20, 90), read('a2', 31, 60, { ...inside('a', 10, 31), asked: 30 }))
    }
    expect(nested(true)).toEqual([])
    expect(nested(false)).toContain('I2')
  })
})

describe('I3 a reader waits for one writer’s turn at most', () => {
  const queued = queues(100, { readers: ['r'] })
  const reader = read('r', 200, 210, { asked: 10 })

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

describe('I6 a call that would wait for its own caller', () => {
  const upgrade = (how: 'deadlock' | 'refused' | 'timeout', fields: object = {}) => [
    at(30, 'request', { worker: 'w-a', attempt: 'up', key: 'k', mode: 'once', owner: 'a', wants: 'write', ...fields }),
    at(40, 'end', { worker: 'w-a', attempt: 'up', how }),
  ]

  test('is not judged if the caller’s hold was lost, because Redis may know that already', () => {
    const old = (fate: HistoryEvent[]) => [...granted('a', 10, { wants: 'read', lease: 20 }), lost('a', 27), ...fate]
    expect(found(old(released('a', 50, false)), upgrade('deadlock'))).toEqual([])
    const taken = at(20, 'taken', { key: 'k', from: 18, how: 'DEL' })
    expect(found(read('a', 10, 90), taken, upgrade('refused'))).toEqual([])
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

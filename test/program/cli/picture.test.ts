/** Tests the picture that `baton top` and `baton ui` draw: its figures, its order, and its filter. */
import { describe, expect, test } from 'vitest'
import { holderCell, sharedBy } from '../../../cli/description.ts'
import { matching, type Order, sorted } from '../../../cli/live/picture.ts'
import { lockSeen, readWriteSeen, semaphoreSeen } from './locks.ts'

const locks = [
  lockSeen('d', { heldFor: 10, ttl: 30_000 }),
  lockSeen('b', { heldFor: 5_000, ttl: 100, waits: [700, 900] }),
  lockSeen('a', { ttl: 0, waits: [800, 20, 10] }),
  lockSeen('c', { heldFor: 300, ttl: 2_000, label: 'Web-1:77', waits: [2_000] }),
]
const keysBy = (order: Order, reversed?: boolean) =>
  sorted(locks, order, reversed)
    .map(({ key }) => key)
    .join('')

describe('a lock of several holders', () => {
  const both = semaphoreSeen('quota', [
    { label: 'Elder:1', heldFor: 9_000, ttl: 25_000 },
    { label: 'younger:2', heldFor: 100, ttl: 4_000 },
  ])

  test('counts as held since its first holder got it, and until the first lease ends', () => {
    expect(both).toMatchObject({ heldFor: 9_000, timeLeft: 4_000 })
    const others = [lockSeen('a', { heldFor: 500, ttl: 5_000 }), lockSeen('b', { heldFor: 10_000, ttl: 3_000 })]
    const order = (by: Order) => sorted([both, ...others], by).map(({ key }) => key)
    expect(order('heldFor')).toEqual(['b', 'quota', 'a'])
    expect(order('timeLeft')).toEqual(['b', 'quota', 'a'])
  })

  test('is found by the label of any holder', () => {
    expect(matching([both, ...locks], 'YOUNGER')).toEqual([both])
  })
})

describe('in a cell of a table', () => {
  const [one, other] = [{ label: 'web-1' }, { label: 'web-2' }]
  const many = Array.from({ length: 1_500 }, () => one)
  test.each([
    ['web-1', lockSeen('k', one)],
    ['–', lockSeen('k', { ttl: 0, waits: [1] })],
    ['2/5 web-1', semaphoreSeen('k', [{ ...one, permits: 2 }])],
    ['3/5 web-1 +1', semaphoreSeen('k', [{ ...one, permits: 2 }, other])],
    ['1,500/5 web-1 +1,499', semaphoreSeen('k', many)],
    ['0/5 –', semaphoreSeen('k', [], [1])],
    ['read web-1', readWriteSeen('k', [{ ...one, mode: 'read' }])],
    [
      'read web-1 +1',
      readWriteSeen('k', [
        { ...one, mode: 'read' },
        { ...other, mode: 'read' },
      ]),
    ],
    ['write web-1', readWriteSeen('k', [{ ...one, mode: 'write' }])],
    // The writer also holds the read side, so that it can go on reading after it has written.
    [
      'write web-1',
      readWriteSeen('k', [
        { ...one, mode: 'read' },
        { ...one, mode: 'write' },
      ]),
    ],
    ['–', readWriteSeen('k', [], [1])],
  ])('%s', (cell, lock) => {
    expect(holderCell(lock).join('')).toBe(cell)
  })
})

describe('in a sentence', () => {
  test.each([
    ['semaphore: 0 of 5 permits taken, 1 waiting', semaphoreSeen('k', [], [1])],
    ['semaphore: 1 of 5 permits taken by 1 holder', semaphoreSeen('k', [{}])],
    ['semaphore: 4 of 5 permits taken by 2 holders, 2 waiting', semaphoreSeen('k', [{ permits: 3 }, {}], [1, 2])],
    ['read-write lock: held by 1 reader', readWriteSeen('k', [{ mode: 'read' }])],
    ['read-write lock: held by 2 readers, 1 waiting', readWriteSeen('k', [{ mode: 'read' }, { mode: 'read' }], [1])],
    ['read-write lock: held by a writer', readWriteSeen('k', [{ mode: 'write' }])],
    ['read-write lock: nobody holds it, 1 waiting', readWriteSeen('k', [], [1])],
  ])('%s', (said, lock) => {
    expect(sharedBy(lock)).toBe(said)
  })
})

describe('order', () => {
  test.each<[Order, string]>([
    ['key', 'abcd'],
    ['heldFor', 'bcda'],
    ['timeLeft', 'bcda'],
    ['waiters', 'abcd'],
    ['longestWait', 'cbad'],
  ])('by %s', (order, keys) => {
    expect(keysBy(order)).toBe(keys)
    expect(keysBy(order, true)).toBe([...keys].reverse().join(''))
  })

  test('equal locks are ordered by key', () => {
    const equal = ['z', 'x', 'y'].map(key => lockSeen(key))
    expect(sorted(equal, 'waiters').map(({ key }) => key)).toEqual(['x', 'y', 'z'])
  })
})

describe('a filter finds', () => {
  const found = (text: string) =>
    matching(locks, text)
      .map(({ key }) => key)
      .join('')
  test.each([
    ['a name', 'D', 'd'],
    ['the label of a holder', 'web-1', 'c'],
    ['the label of a waiter', 'waiter-3', 'a'],
    ['everything', '', 'dbac'],
    ['nothing', 'none such', ''],
  ])('%s', (_, text, keys) => {
    expect(found(text)).toBe(keys)
  })
})

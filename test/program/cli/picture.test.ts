/** The picture that `baton top` and `baton ui` draw: its figures, its order, what is in sight. */
import { describe, expect, test } from 'vitest'
import { matching, type Order, sorted } from '../../../cli/live/picture.ts'
import { lockSeen, picture } from './locks.ts'

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

describe('figures', () => {
  test('of each lock', () => {
    const [b] = locks.filter(({ key }) => key === 'b')
    expect(b).toMatchObject({ heldFor: 5_000, longestWait: 900 })
    expect(locks.find(({ key }) => key === 'a')).toMatchObject({ heldFor: undefined, longestWait: 800 })
  })

  test('of all', () => {
    expect(picture(...locks)).toMatchObject({ held: 3, queued: 3, waiters: 6, longestWait: 2_000 })
    expect(picture()).toEqual({ locks: [], held: 0, queued: 0, waiters: 0, longestWait: 0 })
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

  test('those that are equal stand by key', () => {
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

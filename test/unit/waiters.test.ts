/** The table of waiters: who is where, and who is found. */
import { expect, test } from 'vitest'
import { Waiter, Waiters } from '../../src/wait/waiters.ts'

function waiter(id: string, key = 'key'): Waiter {
  const claim = { key, id, owner: id, label: '', lease: 1_000, headStart: 0 }
  return new Waiter({ claim, mode: 'line', fairAfter: undefined, mayReenter: false }, 0, 0, () => {})
}

test('the head of a line is who came first, and then who came next', () => {
  const waiters = new Waiters()
  const [a, b, c] = [waiter('a'), waiter('b'), waiter('c')]
  const room = waiters.line(a)
  expect(waiters.line(b)).toBe(room)
  waiters.line(c)
  expect(room.head).toBe(a)
  waiters.remove(a)
  expect(room.head).toBe(b)
  waiters.remove(b)
  waiters.remove(c)
  expect(room.head).toBeUndefined()
  expect(room.empty).toBe(true)
})

test('each key has a room of its own', () => {
  const waiters = new Waiters()
  const one = waiters.line(waiter('a', 'one'))
  const two = waiters.queue(waiter('b', 'two'))
  expect(waiters.rooms).toEqual([one, two])
  expect(waiters.room('one')).toBe(one)
  expect(waiters.room('two')).toBe(two)
  expect(waiters.size).toBe(2)
})

test('a waiter is found by its id while it waits, also one that is in no room', () => {
  const waiters = new Waiters()
  const all = ['fair', 'unfair', 'single'].map(id => waiter(id))
  for (const one of all) waiters.add(one)
  waiters.queue(all[0]!)
  waiters.line(all[1]!)
  for (const one of all) {
    expect(waiters.find(one.claim.id)).toBe(one)
    waiters.remove(one)
    expect(waiters.find(one.claim.id)).toBeUndefined()
  }
})

test('a waiter that moves into the queue leaves its line, and counts once', () => {
  const waiters = new Waiters()
  const [a, b] = [waiter('a'), waiter('b')]
  const room = waiters.line(a)
  waiters.line(b)
  waiters.queue(a)
  expect(room.head).toBe(b)
  expect([...room.queued]).toEqual([a])
  expect(waiters.size).toBe(2)
})

test('I7 a room that was closed is forgotten, and the next waiter of its key gets a new one', () => {
  const waiters = new Waiters()
  const a = waiter('a')
  const room = waiters.line(a)
  expect(waiters.remove(a)).toBe(room)
  waiters.close(room)
  expect(waiters.rooms).toEqual([])
  expect(waiters.line(waiter('b'))).not.toBe(room)
})

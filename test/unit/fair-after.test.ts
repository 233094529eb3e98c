/**
 * Tests that unfair waiters become fair after their `fairAfter`, in order, with one timer for each different value.
 */
import { expect, test } from 'vitest'
import { WaiterRecord } from '../../src/local/waiter.ts'
import { FairAfter } from '../../src/wait/fair-after.ts'
import { FakeClock } from './fake-clock.ts'

function setUp() {
  const clock = new FakeClock()
  const due: string[] = []
  const waiters = new FairAfter(clock, waiter => due.push(waiter.claim.id))
  const park = (id: string, fairAfter: number | undefined, mode: 'line' | 'queue' = 'line') => {
    const claim = { key: 'key', id, owner: id, label: '', lease: 1_000, headStart: 0 }
    const waiter = new WaiterRecord({ claim, mode, fairAfter, mayReenter: false }, clock.now(), clock.now(), () => {})
    waiters.add(waiter)
    return waiter
  }
  return { clock, due, waiters, park }
}

test('each waiter is due after its own time, and once', async () => {
  const { clock, due, park } = setUp()
  park('A', 100)
  await clock.advance(50)
  park('B', 100)
  park('C', 20)
  await clock.advance(49)
  expect(due).toEqual(['C'])
  await clock.advance(1)
  expect(due).toEqual(['C', 'A'])
  await clock.advance(50)
  expect(due).toEqual(['C', 'A', 'B'])
  await clock.advance(1_000)
  expect([due.length, clock.armed]).toEqual([3, 0])
})

test('any number of waiters has one timer', async () => {
  const { clock, due, park } = setUp()
  for (let i = 0; i < 1_000; i++) park(`${i}`, 100)
  expect(clock.armed).toBe(1)
  await clock.advance(100)
  expect([due.length, clock.armed]).toEqual([1_000, 0])
})

test('a waiter whose wait is over is not due, and the last one removes the timer', async () => {
  const { clock, due, waiters, park } = setUp()
  const [first, second] = [park('A', 100), park('B', 100)]
  waiters.delete(first)
  waiters.delete(first)
  expect(clock.armed).toBe(1)
  waiters.delete(second)
  expect(clock.armed).toBe(0)
  park('C', 100)
  await clock.advance(100)
  waiters.delete(second)
  expect([due, clock.armed]).toEqual([['C'], 0])
})

test('after a pause of the process all late waiters are due at once, in order', async () => {
  const { clock, due, park } = setUp()
  for (const id of ['A', 'B', 'C']) {
    park(id, 100)
    await clock.advance(10)
  }
  clock.block(115)
  park('D', 100)
  await clock.advance(0)
  expect(due).toEqual(['A', 'B', 'C'])
  await clock.advance(100)
  expect(due).toEqual(['A', 'B', 'C', 'D'])
})

test('waiters that are in the queue already, or never join it, are not due', () => {
  const { clock, park } = setUp()
  park('A', undefined)
  park('B', 100, 'queue')
  expect(clock.armed).toBe(0)
})

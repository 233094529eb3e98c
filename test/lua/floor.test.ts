/**
 * Tests two values that a client sends if several servers keep one lock. One is the floor, the smallest token or ticket
 * that the server may issue (lua/mutex/acquire.lua). The other is the ticket in a heartbeat, which replaces the ticket
 * that the server has issued (lua/mutex/tend.lua).
 */
import { describe, expect } from 'vitest'
import { anonymous, caller, claimOf } from './callers.ts'
import { sharedLock, test, testAlone } from './test-lock.ts'
import { agreed, ahead, HOUR } from './votes.ts'

const [ada, ben, cyd] = [caller('ada'), caller('ben'), caller('cyd')]

describe.each(['try', 'queue'] as const)('I2: a free lock, acquired with a floor (%s)', mode => {
  test.for([
    { state: 'new', given: undefined },
    { state: 'free', given: {} },
    { state: 'lapsed', given: { holder: cyd, endsIn: -1 } },
  ])('gets the floor as its token and clock, if both would be smaller ($state)', async ({ given }, { lock }) => {
    if (given) await lock.given(given)
    const floor = await ahead(lock)

    const status = given && 'holder' in given ? 'succeeded' : 'granted'
    expect(await lock.acquire(ada, { mode, floor })).toMatchObject({ status, token: floor })
    expect(await agreed(lock)).toEqual({ token: floor, clock: floor })
    expect(await lock.redis.pttl(lock.names.lock)).toBeGreaterThan(HOUR / 1000)
  })

  test('gets the time of the server as its token, if that is larger', async ({ lock }) => {
    await lock.given({})
    const before = await lock.micros()

    const { token } = await lock.acquire(ada, { mode, floor: before - 1 })
    expect(token).toBeGreaterThan(before)
    expect(token).toBeLessThanOrEqual(await lock.micros())
  })

  test('I3: goes to the first waiter, with a token not below the floor, even if the lock itself was lost', async () => {
    for (const lost of [false, true]) {
      const lock = await sharedLock()
      await lock.given({ waiters: [ben, cyd] })
      if (lost) await lock.redis.del(lock.names.lock)
      await lock.listen(ben, cyd)
      const floor = await ahead(lock)

      expect(await lock.acquire(ada, { mode, floor })).toMatchObject({ status: 'refused', label: 'ben' })
      expect((await agreed(lock)).token).toBeGreaterThanOrEqual(floor)
    }
  })
})

describe('an attempt with a floor,', () => {
  testAlone('I9: costs the same as one without', async ({ lock }) => {
    const first = anonymous('first')
    await lock.grant(first)
    await lock.release(first)
    const floor = await ahead(lock, 5_000)

    const calls = await lock.callsInside(() => lock.acquire(anonymous('next'), { mode: 'try', floor }))
    expect(calls).toEqual(['HMGET', 'HSET', 'TIME'])
  })
})

describe('a waiter that joins with a floor', () => {
  test('I2: gets the floor as its ticket, and the clock is at least the floor', async ({ lock }) => {
    await lock.given({ holder: ada })
    const floor = await ahead(lock)

    expect(await lock.acquire(ben, { mode: 'queue', floor })).toMatchObject({ position: 1, ticket: floor })
    expect((await agreed(lock)).clock).toBe(floor)
    await lock.leave(ben)
    await lock.release(ada)
    expect(await lock.grant(cyd)).toBe(floor + 1)
  })

  test('I3: gets the floor minus its head start as its ticket', async ({ lock }) => {
    await lock.given({ holder: ada })
    const floor = await ahead(lock)

    const urgent = caller('urgent', { headStart: 2_000_000 })
    expect(await lock.acquire(urgent, { mode: 'queue', floor })).toMatchObject({ ticket: floor - 2_000_000 })
  })
})

describe('a heartbeat', () => {
  test('I3: moves its waiter to the ticket that it sends, and the clock to at least that ticket', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [ben, cyd] })
    const ticket = await ahead(lock)

    expect((await lock.tend([ben, ticket])).places).toEqual([2])
    expect(await lock.order()).toEqual([cyd.id, ben.id])
    expect(Number(await lock.redis.zscore(lock.names.queue, claimOf(ben)))).toBe(ticket)
    expect((await agreed(lock)).clock).toBe(ticket)
    expect((await lock.tend([ben, ticket - 2 * HOUR])).places).toEqual([1])
    expect(await lock.order()).toEqual([ben.id, cyd.id])
    expect((await agreed(lock)).clock).toBe(ticket)
  })

  test('I3: moves a waiter that was passed over, and joined again by acquire, back to its old place', async () => {
    const lock = await sharedLock()
    await lock.given({ holder: ada })
    const ticket = await lock.enqueue(ben)
    await lock.redis.zrem(lock.names.queue, claimOf(ben))
    await lock.enqueue(cyd)
    await lock.enqueue(ben)
    expect(await lock.order()).toEqual([cyd.id, ben.id])

    expect((await lock.tend([ben, ticket])).places).toEqual([1])
    expect(await lock.order()).toEqual([ben.id, cyd.id])
  })
})

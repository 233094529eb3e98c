/**
 * If several servers keep one lock, a grant by one of them is a vote, and all votes must have the same token. Tests
 * three modes of lua/mutex/acquire.lua, with which the client makes the servers agree. 'raise' raises the token of a
 * vote. 'same' gives the hold, with the token of the other votes, to a server that has missed the grant. 'place' gives
 * a waiter the ticket that it has on the other servers.
 */
import { describe, expect } from 'vitest'
import { Mutex } from '../../src/kinds/mutex/mutex.ts'
import { again, type Caller, caller, claimOf } from './callers.ts'
import { sharedLock, test, testAlone } from './test-lock.ts'
import { agreed, ahead, HOUR, unchanged } from './votes.ts'

const [ada, ben, cyd] = [caller('ada'), caller('ben'), caller('cyd')]

describe("'raise'", () => {
  test('I2: makes the floor the token of a hold, and the clock at least that; the lease is unchanged', async () => {
    const lock = await sharedLock()
    await lock.given({ holder: ada })
    const { until, clock: _, keep: __, token: ___, ...before } = await lock.hash()
    const floor = await ahead(lock)

    expect(await lock.acquire(ada, { mode: 'raise', floor })).toMatchObject({ status: 'granted', token: floor })
    expect(await lock.hash()).toMatchObject({ ...before, until, token: String(floor), clock: String(floor) })
    expect(await lock.redis.pttl(lock.names.lock)).toBeGreaterThan(HOUR / 1000)
    expect(await lock.acquire(ada)).toMatchObject({ status: 'granted', token: floor })
    await lock.release(ada)
    expect(await lock.grant(ben)).toBe(floor + 1)
  })

  test('I5: changes nothing if the token is already as large, or if the request is repeated', async ({ lock }) => {
    await lock.given({ holder: ada })
    const token = (await agreed(lock)).token!
    for (const floor of [token, token - 1])
      expect(await unchanged(lock, ada, 'raise', floor)).toMatchObject({ status: 'granted', token })

    const floor = await ahead(lock)
    await lock.acquire(ada, { mode: 'raise', floor })
    expect(await unchanged(lock, ada, 'raise', floor)).toMatchObject({ status: 'granted', token: floor })
  })

  test.for([
    { state: 'nobody holds', who: ada, given: {} },
    { state: 'somebody else holds', who: ada, given: { holder: ben } },
    { state: 'its own lease has lapsed', who: ada, given: { holder: ada, endsIn: -1 } },
    { state: 'its owner holds', who: again(ada), given: { holder: ada } },
    { state: 'it is queued, and somebody else holds', who: cyd, given: { holder: ben, waiters: [cyd] } },
    { state: 'it is the first waiter, and nobody holds', who: cyd, given: { waiters: [cyd, ben] } },
    { state: 'all queued waiters are dead', who: ada, given: { waiters: [caller('dead', { joinedAgo: 6_000 })] } },
  ])('I4: does nothing if $state', async ({ who, given }, { lock }) => {
    await lock.given(given)
    await lock.listen(ben, cyd)

    expect(await unchanged(lock, who, 'raise', await ahead(lock))).toEqual({ status: 'absent' })
  })
})

testAlone('I5, I9: a floor that is the token already costs one read, and writes nothing', async ({ lock }) => {
  await lock.given({ holder: ada })
  const token = (await agreed(lock)).token!
  for (const mode of ['raise', 'same'] as const) {
    const calls = await lock.callsInside(() => lock.acquire(ada, { mode, floor: token }))
    expect(calls).toEqual(['HMGET', 'TIME'])
  }
})

describe("'same'", () => {
  test.each([
    { state: 'free', given: {} },
    { state: 'lapsed', given: { holder: cyd, endsIn: -1 } },
    { state: 'lapsed, which had several holds', given: { holder: cyd, reentries: [again(cyd)], endsIn: -1 } },
    { state: 'lapsed, and was its own', given: { holder: ada, endsIn: -1 } },
  ])('I8: takes a lock that is $state, with the floor as its token, even if the clock is ahead', async ({ given }) => {
    const lock = await sharedLock()
    const clock = await ahead(lock)
    await lock.given({ ...given, clock })
    const floor = (await lock.micros()) - 1_000_000

    expect(await lock.acquire(ada, { mode: 'same', floor })).toEqual({
      status: 'granted',
      token: floor,
      ttl: ada.lease,
    })
    expect(await agreed(lock)).toEqual({ token: floor, clock })
    const { hold, owner, holds } = await lock.hash()
    expect([hold, owner, holds]).toEqual([ada.id, ada.owner, undefined])
    expect(await unchanged(lock, ada, 'same', floor)).toMatchObject({ status: 'granted', token: floor })
    await lock.release(ada)
    expect(await lock.grant(ben)).toBe(clock + 1)
  })

  test('I2: after a lapsed holder, the clock is above all tokens that it may have issued on its own', async () => {
    const lock = await sharedLock()
    const clock = await ahead(lock)
    await lock.given({ holder: cyd, endsIn: -1, clock })
    await lock.amendHolder({ token: clock })

    await lock.acquire(ada, { mode: 'same', floor: await lock.micros() })
    expect((await agreed(lock)).clock).toBe(clock + 1_000)
  })

  test.for([
    { than: 'larger', by: HOUR },
    { than: 'smaller', by: -1_000_000 },
  ])('makes a $than floor the token of its own hold; the clock never goes back', async ({ by }, { lock }) => {
    await lock.given({ holder: ada })
    const { clock } = await agreed(lock)
    const { until } = await lock.hash()
    const floor = await ahead(lock, by)

    expect(await lock.acquire(ada, { mode: 'same', floor })).toMatchObject({ status: 'granted', token: floor })
    expect(await agreed(lock)).toEqual({ token: floor, clock: Math.max(clock, floor) })
    expect((await lock.hash())['until']).toBe(until)
    expect(await unchanged(lock, ada, 'same', floor)).toMatchObject({ token: floor })
  })

  test.for([
    { than: 'larger', by: HOUR },
    { than: 'smaller', by: -1_000_000 },
  ])('re-enters if its owner holds, and makes a $than floor the token of all holds', async ({ by }, { lock }) => {
    await lock.given({ holder: ada })
    const { clock } = await agreed(lock)
    const floor = await ahead(lock, by)
    const inner = again(ada, { lease: 3_000 })

    const reply = { status: 'reentered', token: floor, ttl: inner.lease }
    expect(await lock.acquire(inner, { mode: 'same', floor })).toEqual(reply)
    expect(await agreed(lock)).toEqual({ token: floor, clock: Math.max(clock, floor) })
    expect(Object.keys(await lock.deadlines()).sort()).toEqual([ada.id, inner.id].sort())
    expect(await lock.acquire(ada)).toMatchObject({ status: 'granted', token: floor })
  })

  test.for([
    { state: 'somebody else holds', given: { holder: ben } },
    { state: 'somebody else holds, and it is queued', given: { holder: ben, waiters: [ada] } },
    { state: 'somebody is queued', given: { waiters: [ben] } },
    { state: 'it is queued itself', given: { waiters: [ada, ben] } },
    { state: 'a lease has lapsed, and somebody is queued', given: { holder: cyd, endsIn: -1, waiters: [ben] } },
  ])('I3: does nothing if $state', async ({ given }, { lock }) => {
    await lock.given(given)
    await lock.listen(ben)

    expect(await unchanged(lock, ada, 'same', await ahead(lock))).toEqual({ status: 'absent' })
  })
})

describe("'place'", () => {
  test('I3: replaces the ticket of a waiter, or queues it with that ticket; a repeated call changes nothing', async () => {
    const lock = await sharedLock()
    await lock.given({ holder: cyd, waiters: [ada, ben] })
    const floor = Number(await lock.redis.zscore(lock.names.queue, claimOf(ben)))

    expect(await lock.acquire(ada, { mode: 'place', floor: floor + 5 })).toMatchObject({
      status: 'refused',
      position: 2,
    })
    const dan = caller('dan')
    const placed = { status: 'refused', position: 2, ticket: floor + 3 }
    expect(await lock.acquire(dan, { mode: 'place', floor: floor + 3 })).toMatchObject(placed)
    expect(await lock.acquire(dan, { mode: 'place', floor: floor + 3 })).toMatchObject(placed)
  })

  test('I3: gives a vote back to a waiter with an earlier ticket; a repeated call gives back no later vote', async () => {
    const lock = await sharedLock()
    await lock.given({ holder: ada, waiters: [ben] })
    await lock.listen(ada, ben)
    const { token } = await agreed(lock)
    const place = { mode: 'place', floor: await ahead(lock), returned: token! } as const

    expect(await lock.acquire(ada, place)).toMatchObject({ status: 'refused', position: 1, label: 'ben' })
    expect(await lock.acquire(ada, place)).toMatchObject({ status: 'refused', position: 1, label: 'ben' })
    await lock.release(ben)
    const anew = await lock.acquire(ada, place)
    expect(anew).toMatchObject({ status: 'granted' })
    expect(anew.token).toBeGreaterThan(place.floor)
    expect(await lock.acquire(ada, place)).toMatchObject({ status: 'granted', token: anew.token })
  })

  test('I4: keeps the lock with a new token, if no waiter has an earlier ticket', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [ben] })
    await lock.listen(ben)
    const { token } = await agreed(lock)
    const placed = await lock.acquire(ada, { mode: 'place', floor: token! - HOUR, returned: token! })

    expect(placed).toMatchObject({ status: 'granted' })
    expect(placed.token).toBeGreaterThan(token!)
    expect((await lock.hash())['hold']).toBe(ada.id)
  })

  test.for([
    { state: 'has another token', given: { holder: ada, waiters: [ben] }, by: 1 },
    { state: 'has been re-entered', given: { holder: ada, reentries: [again(ada)], waiters: [ben] }, by: 0 },
  ])('I5: does not give back a hold that $state', async ({ given, by }, { lock }) => {
    await lock.given(given)
    await lock.listen(ben)
    const token = (await agreed(lock)).token!

    const asked = { mode: 'place', floor: await ahead(lock), returned: token + by } as const
    expect(await lock.acquire(ada, asked)).toMatchObject({ status: 'granted', token })
    expect((await lock.hash())['hold']).toBe(ada.id)
  })
})

describe('Mutex.vote', () => {
  const claim = ({ id, owner, name: label, lease }: Caller) => ({ key: 'k', id, owner, label, lease, headStart: 0 })

  async function votes() {
    const lock = await sharedLock()
    const names = { of: () => lock.keys, keyOf: () => 'k', placeOf: () => '' }
    const parts = { names, scripts: lock.scripts, replicated: undefined, waiterTtl: 5_000, warn() {}, newId: () => '' }
    return { lock, mutex: new Mutex(parts) }
  }

  test('returns the result of the request, or undefined if the id holds nothing', async () => {
    const { lock, mutex } = await votes()
    const floor = await ahead(lock)

    expect(await mutex.vote(claim(ada), 'raise', floor)).toBeUndefined()
    expect(await mutex.vote(claim(ada), 'try', floor)).toMatchObject({ granted: true, token: floor, via: 'immediate' })
    expect(await mutex.vote(claim(ada), 'raise', floor + 5)).toMatchObject({ granted: true, token: floor + 5 })
    expect(await mutex.vote(claim(ada), 'same', floor + 2)).toMatchObject({ granted: true, token: floor + 2 })
    expect(await mutex.vote(claim(ben), 'same', floor)).toBeUndefined()
    expect(await mutex.vote(claim(ben), 'try', floor)).toMatchObject({ granted: false, position: 0 })
    const queued = await mutex.vote(claim(ben), 'queue', floor + 9)
    expect(queued).toMatchObject({ granted: false, position: 1, ticket: String(floor + 9) })
    await mutex.leave(claim(ben))
    await new Promise((done, failed) => mutex.release(claim(ada), undefined, { done, failed }))
    expect(await mutex.vote(claim(ben), 'same', floor)).toMatchObject({ granted: true, token: floor })
  })
})

/**
 * Tests lua/mutex/tend.lua, the heartbeat of a client's waiters. If messages or data were lost, a heartbeat repairs the
 * loss.
 */
import { describe, expect } from 'vitest'
import { again, type Caller, caller } from './callers.ts'
import { lockOnOwnServer, sharedLock, type TestLock, test, testAlone } from './test-lock.ts'

/** Queues some waiters of one client. Returns them with the tickets that they got. */
async function joined(lock: TestLock, waiters: readonly Caller[]): Promise<[Caller, number][]> {
  const pairs: [Caller, number][] = []
  for (const who of waiters) pairs.push([who, await lock.enqueue(who)])
  return pairs
}

const ada = caller('ada')
const ben = caller('ben')
const ben2 = caller('ben2', { client: ben.client })
const cyd = caller('cyd')

describe('a heartbeat while the lock is held', () => {
  test('reports the place of each waiter, the holder, and its times', async ({ lock }) => {
    const token = await lock.grant(ada)
    const [first] = await joined(lock, [ben])
    await lock.enqueue(cyd)
    const [third] = await joined(lock, [ben2])

    const reply = await lock.tend(first!, third!)
    expect(reply).toMatchObject({ label: 'ada', places: [1, 3] })
    expect(reply.ttl).toBeGreaterThan(8_000)
    expect(reply.ttl).toBeLessThanOrEqual(10_000)
    expect(reply.heldFor).toBeLessThan(2_000)
    expect(reply.clock).toBeGreaterThan(token)
  })

  test('I3: moves the deadlines of its waiters, so that they outlive their first expiry', async ({ lock }) => {
    await lock.grant(ada)
    const waiters = await joined(lock, [ben, ben2])
    const now = Math.floor((await lock.micros()) / 1000)
    await lock.tend(...waiters)

    for (const [who] of waiters) {
      const deadline = await lock.deadline(who)
      expect(deadline).toBeGreaterThanOrEqual(now + who.ttl)
      expect(deadline).toBeLessThan(now + who.ttl + 2_000)
    }
  })

  test('I5: does not change the holder, or the waiters of other clients', async ({ lock }) => {
    await lock.grant(ada)
    const waiters = await joined(lock, [ben])
    await lock.enqueue(cyd)
    const holding = async () => {
      const { owner, hold, token, until } = await lock.hash()
      return { owner, hold, token, until }
    }
    const [holder, order] = [await holding(), await lock.order()]
    await lock.tend(...waiters)

    expect(await holding()).toEqual(holder)
    expect(await lock.order()).toEqual(order)
    expect(await lock.deadline(cyd)).toBeUndefined()
  })

  test('I7: gives every key of the queue a life between one and two waiterTtl', async ({ lock }) => {
    await lock.grant(ada)
    await lock.tend(...(await joined(lock, [ben])))

    for (const key of [lock.names.queue, lock.names.deadlines]) {
      const life = await lock.redis.pttl(key)
      expect(life).toBeGreaterThan(ben.ttl)
      expect(life).toBeLessThanOrEqual(2 * ben.ttl)
    }
  })

  test('I7: removes deadlines that have passed, and no others', async ({ lock }) => {
    const gone = caller('gone', { joinedAgo: 60_000, deadlineIn: -1_000 })
    const alive = caller('alive', { deadlineIn: 3_000 })
    await lock.given({ holder: ada, waiters: [gone, alive] })
    await lock.tend(...(await joined(lock, [ben])))

    expect(await lock.deadline(gone)).toBeUndefined()
    expect(await lock.deadline(alive)).toBeDefined()
  })
})

describe('a waiter that is missing from the queue', () => {
  test('I3: joins again with its old ticket, ahead of waiters that came later', async ({ lock }) => {
    await lock.grant(ada)
    const [first, second] = await joined(lock, [ben, ben2])
    await lock.enqueue(cyd)
    const order = await lock.order()
    await lock.leave(ben)

    expect((await lock.tend(first!, second!)).places).toEqual([1, 2])
    expect(await lock.order()).toEqual(order)
  })

  test('I2: moves the clock to at least its ticket, so that every later token is larger', async ({ lock }) => {
    await lock.given({ holder: ada })
    const future = (await lock.micros()) + 3_600_000_000
    await lock.tend([ben, future])
    await lock.leave(ben)
    await lock.release(ada)

    expect(await lock.grant(cyd)).toBeGreaterThan(future)
  })

  test('I3: after FLUSHALL, the waiters of two clients get their old order, whichever client tends first', async () => {
    const lock = await lockOnOwnServer()
    await lock.grant(ada)
    const [first] = await joined(lock, [ben])
    const [second] = await joined(lock, [cyd])
    const [third] = await joined(lock, [ben2])
    const [fourth] = await joined(lock, [caller('cyd2', { client: cyd.client })])
    await lock.redis.flushall()

    // FLUSHALL has removed the holder as well as the queue. So the first waiter of the first heartbeat gets the lock,
    // and the others queue by their tickets.
    const { places } = await lock.tend(second!, fourth!)
    expect(places).toEqual([[expect.any(String), cyd.lease, 'handoff'], 1])
    expect((await lock.tend(first!, third!)).places).toEqual([1, 2])
    expect(await lock.order()).toEqual([ben.id, ben2.id, fourth![0].id])
  })
})

describe('a grant', () => {
  test('I4: is found after its message was lost', async ({ lock }) => {
    await lock.grant(ada)
    const waiters = await joined(lock, [ben, ben2])
    await lock.listen(ben)
    await lock.release(ada)
    const { token } = await lock.hash()

    const { places } = await lock.tend(...waiters)
    expect(places).toEqual([[token, expect.any(Number), 'handoff'], 1])
    expect(await lock.order()).toEqual([ben2.id])
  })

  test('I1: does not count if it lapsed before it was found: the waiter has its old place, and gets a new grant', async () => {
    const lock = await sharedLock()
    const ticket = await lock.micros()
    await lock.given({ holder: ben, endsIn: -1 })
    const { token } = await lock.hash()

    const [place] = (await lock.tend([ben, ticket])).places as [[string, number, string]]
    expect(Number(place[0])).toBeGreaterThan(Number(token))
    expect(place.slice(1)).toEqual([ben.lease, 'expiry'])
  })
})

describe.each([
  { state: 'free', how: 'handoff', given: {} },
  { state: 'lapsed', how: 'expiry', given: { holder: ada, reentries: [again(ada)], endsIn: -1 } },
] as const)('a heartbeat that finds the lock $state', ({ how, given }) => {
  test('I4: grants it to the first waiter; if that waiter is of its own client, by the reply instead of a message', async () => {
    const lock = await sharedLock()
    await lock.given(given)
    const heard = await lock.listen(ben)
    const tickets = await lock.micros()

    const reply = await lock.tend([ben, tickets - 2], [ben2, tickets - 1])
    const { owner, hold, token, holds } = await lock.hash()
    expect(reply).toMatchObject({ label: 'ben', ttl: ben.lease, places: [[token, ben.lease, how], 1] })
    expect([owner, hold, holds]).toEqual([ben.owner, ben.id, undefined])
    expect(await heard()).toEqual([])
  })

  // A waiter of the same client may have joined a moment ago, or its wait may be over for its client. Then it is not in
  // this call, so the reply does not report its grant. The second case fails if `if granted and granted:sub(1, CLIENT_END)
  // == client then` becomes `if false then` in lua/mutex/tend.lua: nobody learns of the grant.
  test.each([
    ['of another client', cyd],
    ['of the same client that is not in the call', ben2],
  ])('I3 I4: grants it to the waiter ahead %s, with a message', async (_, ahead) => {
    const lock = await sharedLock()
    await lock.given({ ...given, waiters: [ahead] })
    const heard = await lock.listen(ben, ahead)

    const reply = await lock.tend([ben, await lock.micros()])
    expect(reply).toMatchObject({ label: ahead.name, places: [1] })
    const token = Number((await lock.hash())['token'])
    expect(await heard()).toEqual([lock.grantMessage(how, ahead, token)])
  })

  test('I4: passes over waiters ahead that have expired or have no subscriber', async ({ lock }) => {
    await lock.given({ ...given, waiters: [caller('expired', { joinedAgo: 6_000 }), caller('unheard')] })

    expect((await lock.tend([ben, await lock.micros()])).places).toEqual([[expect.any(String), ben.lease, how]])
  })
})

describe('the server', () => {
  test('reports the places of 500 waiters in one call', async ({ lock }) => {
    await lock.given({ holder: ada })
    const many = Array.from({ length: 500 }, () => again(ben))
    const first = (await lock.micros()) - 1_000_000

    const { places } = await lock.tend(...many.map((who, i) => [who, first + i] as const))
    expect(places).toEqual(many.map((_, i) => i + 1))
    expect(await lock.order()).toEqual(many.map(({ id }) => id))
  })

  testAlone('I9: needs one ZRANK for each waiter, and otherwise the same commands for any number', async ({ lock }) => {
    await lock.grant(ada)
    const waiters = await joined(lock, [ben, ben2])
    // The first heartbeat may also have to move the expiry of the lock's key. So only the second one is counted.
    await lock.tend(...waiters)

    const calls = await lock.callsInside(() => lock.tend(...waiters))
    const usual = ['HMGET', 'HSET', 'PEXPIREAT', 'PEXPIREAT', 'TIME', 'ZADD', 'ZADD', 'ZCOUNT', 'ZRANK', 'ZRANK']
    expect(calls).toEqual([...usual, 'ZREMRANGEBYSCORE'])
  })

  testAlone('I4: out of memory, lets a waiter join again, and grants the lock', async ({ lock }) => {
    const lapsed = lock.another()
    await lock.given({ holder: ada })
    await lapsed.given({ holder: ada, endsIn: -1 })
    await lock.exhaustMemory()
    const ticket = await lock.micros()

    expect((await lock.tend([ben, ticket])).places).toEqual([1])
    expect((await lapsed.tend([ben, ticket])).places).toEqual([[expect.any(String), ben.lease, 'expiry']])
  })
})

describe('waiters of a holder that has several holds', () => {
  const first = caller('first', { lease: 10_000 })
  const inner = again(first)

  test('I4: a waiter that has re-entered, but lost the reply, gets the end of its lease', async ({ lock }) => {
    await lock.given({ holder: first, reentries: [inner] })
    const { places } = await lock.tend([inner, await lock.micros()])

    expect(places).toEqual([[(await lock.hash())['token'], expect.any(Number), 'reentry']])
    expect(await lock.order()).toEqual([])
  })

  test('I1: the waiter of the first hold, whose own lease has lapsed, holds nothing, and is queued', async () => {
    const lock = await sharedLock()
    await lock.given({ holder: first, reentries: [inner] })
    await lock.redis.zadd(lock.names.deadlines, 1, first.id)

    expect(await lock.tend([first, await lock.micros()])).toMatchObject({ owner: first.owner, places: [1] })
    expect(await lock.acquire(first, { queue: true })).toMatchObject({ status: 'reentered', ttl: first.lease })
    expect(await lock.order()).toEqual([])
  })

  test('I7: a waiter that asks to queue after it has re-entered leaves no entry in the queue', async ({ lock }) => {
    await lock.given({ holder: first, reentries: [inner], waiters: [inner] })

    expect(await lock.acquire(inner, { queue: true })).toMatchObject({ status: 'reentered' })
    expect(await lock.order()).toEqual([])
  })
})

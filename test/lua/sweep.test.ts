/**
 * Tests a queue in which many dead waiters are ahead of a live waiter. Each script call passes over a limited number of
 * dead waiters. Then lua/mutex/sweep.lua, or another call, continues.
 */
import { describe, expect } from 'vitest'
import { again, anonymous, caller } from './callers.ts'
import { type TestLock, test, testAlone, WAITER } from './test-lock.ts'

/** The number of dead waiters. One call passes over at most 250 waiters, so three calls are needed for all of them. */
const DEAD = 600

const ada = anonymous('ada')
const ben = anonymous('ben')
/** Waiters of dead processes: their inboxes have no subscriber. */
const dead = Array.from({ length: DEAD }, () => anonymous('dead', { joinedAgo: 1_000 }))

/** Calls `sweep` until it is done, and returns the number of calls. */
async function sweep(lock: TestLock): Promise<number> {
  for (let calls = 1; ; calls++) if ((await lock.sweep()) === 'swept') return calls
}

describe.each([
  { what: 'a release', end: (lock: TestLock) => lock.release(ada).then(({ status }) => status) },
  { what: 'a caller that leaves', end: (lock: TestLock) => lock.leave(ada, { queued: false }) },
  { what: 'a forced release', end: (lock: TestLock) => lock.forceRelease() },
])('I4: after $what', ({ end }) => {
  test('further calls give the lock to the first live waiter', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [...dead, ben] })
    await lock.listen(ben)

    expect(await end(lock)).toBe('unfinished')
    expect(await lock.hash()).not.toHaveProperty('owner')
    expect(await sweep(lock)).toBe(2)
    expect(await lock.holder()).toBe(ben.id)
    expect(await lock.order()).toEqual([])
  })

  test('the lock becomes free if no waiter is alive', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: dead })
    const heard = await lock.listen()
    await end(lock)
    await sweep(lock)

    expect((await heard()).map(({ text }) => text.split(' ', 1)[0])).toEqual(['free'])
    expect(await lock.acquire(ben)).toMatchObject({ status: 'granted' })
  })
})

describe('between two calls', () => {
  test('I3: a newcomer is not granted the lock, but continues the search', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [...dead, ben] })
    await lock.listen(ben)
    await lock.release(ada)
    const cyd = anonymous('cyd')

    expect(await lock.acquire(cyd)).toEqual({ status: 'unfinished' })
    expect(await lock.acquire(cyd)).toMatchObject({ status: 'refused', label: 'ben' })
    expect(await sweep(lock)).toBe(1)
    expect(await lock.holder()).toBe(ben.id)
  })

  test('I3: a waiter that joins the queue keeps its place, however often it asks', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: dead })
    const [cyd, dee] = [anonymous('cyd'), anonymous('dee')]
    await lock.listen(cyd, dee)
    await lock.release(ada)

    expect(await lock.acquire(cyd, { queue: true })).toEqual({ status: 'unfinished' })
    expect(await lock.acquire(dee, { queue: true })).toMatchObject({ status: 'refused', position: 1 })
    expect(await lock.acquire(cyd, { queue: true })).toMatchObject({ status: 'granted' })
  })

  test('I5: a repeated release finds no hold, and changes nothing', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: dead })
    await lock.release(ada)
    const before = await lock.snapshot()

    expect(await lock.release(ada)).toEqual({ status: 'ended' })
    expect(await lock.snapshot()).toEqual(before)
  })
})

describe('nothing to do', () => {
  test.for([
    { what: 'for a held lock', given: { holder: ada, waiters: [ben] } },
    { what: 'for a free lock without a queue', given: {} },
  ])('$what: nothing changes', async ({ given }, { lock }) => {
    await lock.given(given)
    const before = await lock.snapshot()

    expect(await lock.sweep()).toBe('swept')
    expect(await lock.snapshot()).toEqual(before)
  })
})

describe('the work of one call (I9)', () => {
  const pops = (calls: string[]) => calls.filter(call => call === 'ZPOPMIN').length

  testAlone('passes over 250 waiters at most', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: dead })
    expect(pops(await lock.callsInside(() => lock.release(ada)))).toBe(250)
    expect(pops(await lock.callsInside(() => lock.sweep()))).toBe(250)
    expect(pops(await lock.callsInside(() => lock.acquire(caller('cyd'))))).toBe(DEAD - 500 + 1)
  })

  test('removes 500 passed deadlines at most, in a heartbeat', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [ben] })
    const over = Array.from({ length: 1_200 }, (_, i) => [WAITER + i + 1, anonymous('over').id]).flat()
    await lock.redis.zadd(lock.names.deadlines, ...over)
    await lock.tend([ben, await lock.micros()])

    expect(await lock.redis.zcard(lock.names.deadlines)).toBe(701)
  })

  testAlone('sends messages for 1,000 holds at most, in a forced release', async ({ lock }) => {
    const many = Array.from({ length: 2_000 }, () => again(ada))
    await lock.given({ holder: ada, reentries: many })
    const calls = await lock.callsInside(() => lock.forceRelease())

    // 1,000 messages are about lost holds, and one says that the lock is free.
    expect(calls.filter(call => call === 'PUBLISH')).toHaveLength(1_001)
  })

  test('does not depend on the number of re-entrant holds, which has no limit', async ({ lock }) => {
    // On a slow machine, writing so many holds may take longer than the usual lease, and than a waiter's usual expiry.
    const long = 60_000
    const many = Array.from({ length: 20_000 }, () => again(ada))
    const [holder, waiter] = [
      { ...ada, lease: long },
      { ...ben, ttl: long },
    ]
    await lock.given({ holder, endsIn: long, reentries: many, waiters: [waiter] })
    await lock.listen(ben)

    expect(await lock.forceRelease()).toBe('released')
    expect(await lock.holder()).toBe(ben.id)
    expect(await lock.redis.exists(lock.names.deadlines)).toBe(0)
  })
})

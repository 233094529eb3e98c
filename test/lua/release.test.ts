/**
 * Tests lua/mutex/release.lua, which ends one hold. If it is the last hold, the script hands the lock off or leaves the
 * lock free.
 */
import { describe, expect } from 'vitest'
import { again, anonymous, caller } from './callers.ts'
import { freedBy, lockOnOwnServer, MEMORY, sharedLock, test, testAlone } from './test-lock.ts'

describe('a release that finds no such hold', () => {
  const [ada, ben] = [caller('ada'), caller('ben')]
  const dan = caller('dan')

  test.for([
    { what: 'of a lock nobody knows', given: {}, who: dan },
    { what: 'of a foreign id', given: { holder: ada, waiters: [ben] }, who: dan },
    { what: 'of a foreign id of the same owner', given: { holder: ada, reentries: [again(ada)] }, who: again(ada) },
    { what: 'of a waiter', given: { holder: ada, waiters: [ben] }, who: ben },
  ])('I5: $what says so and changes nothing', async ({ given, who }, { lock }) => {
    await lock.given(given)
    const heard = await lock.listen(ada, ben)
    const before = await lock.snapshot()

    expect(await lock.release(who)).toEqual({ status: 'ended' })
    expect(await lock.snapshot()).toEqual(before)
    expect(await heard()).toEqual([])
  })

  test('I5: because it is repeated, reports that and changes nothing', async ({ lock }) => {
    await lock.grant(ada)
    await lock.release(ada)
    const heard = await lock.listen()
    const before = await lock.snapshot()

    expect(await lock.release(ada)).toEqual({ status: 'ended' })
    expect(await lock.snapshot()).toEqual(before)
    expect(await heard()).toEqual([])
  })

  test('I5: because another owner has taken the lapsed lock, changes nothing', async ({ lock }) => {
    await lock.grant(ada)
    await lock.lapse()
    await lock.grant(ben)
    const before = await lock.snapshot()

    expect(await lock.release(ada)).toEqual({ status: 'ended' })
    expect(await lock.snapshot()).toEqual(before)
  })
})

describe('the last hold', () => {
  test('leaves the lock free: the holder is removed, the clock stays, and unfair waiters get a message', async () => {
    const lock = await sharedLock()
    const ada = caller('ada')
    const token = await lock.grant(ada)
    const heard = await lock.listen()

    expect(await lock.release(ada)).toEqual({ status: 'released' })
    const after = await lock.hash()
    expect(after).toMatchObject({ clock: String(token) })
    expect(after).not.toHaveProperty('owner')
    expect(after).not.toHaveProperty('hold')
    expect(await heard()).toEqual([freedBy(ada)])
  })

  test.each([
    [1, 0],
    [10, 0],
    [10, 1],
  ])(
    'I2 I7: lets the key live only as long as its clock is needed (lease: %s times as long, re-entries: %s)',
    async (times, reentries) => {
      const lock = await sharedLock()
      const ada = caller('ada', { lease: times * MEMORY })
      const token = await lock.grant(ada)
      const nested = Array.from({ length: reentries }, () => again(ada))
      for (const who of nested) await lock.acquire(who)
      for (const who of [...nested, ada]) await lock.release(who)
      const life = await lock.redis.pttl(lock.names.lock)
      expect(life).toBeGreaterThan(0.9 * MEMORY)
      expect(life).toBeLessThanOrEqual(1.1 * MEMORY + 5_000)
      expect(await lock.grant(ada)).toBeGreaterThan(token)
      expect(await lock.redis.pttl(lock.names.lock)).toBeGreaterThan(times * MEMORY)
    },
  )

  test('can be released even after its lease has lapsed, if nobody has taken the lock', async ({ lock }) => {
    const ada = caller('ada')
    await lock.given({ holder: ada, endsIn: -1 })
    const heard = await lock.listen()

    expect(await lock.release(ada)).toEqual({ status: 'released' })
    expect(await heard()).toEqual([freedBy(ada)])
  })
})

describe('the message that the lock is free', () => {
  const ada = caller('ada')

  test.each([
    { which: 'the only hold', given: { holder: ada } },
    { which: 'the last of several', given: { holder: ada, reentries: [again(ada)] } },
    { which: 'a hold whose waiters are all gone', given: { holder: ada, waiters: [caller('unheard')] } },
  ])('after $which: names the client', async ({ given }) => {
    for (const ears of [0, 1, 3]) {
      const lock = await sharedLock()
      await lock.given(given)
      const listening = await Promise.all(Array.from({ length: ears }, () => lock.listen()))
      for (const { id } of given.reentries ?? []) await lock.release({ ...ada, id })

      expect(await lock.release(ada)).toEqual({ status: 'released' })
      for (const heard of listening) expect((await heard())[0]).toEqual(freedBy(ada))
    }
  })
})

describe('re-entrant holds', () => {
  test.for([
    { first: 'the outer', outerFirst: true },
    { first: 'the inner', outerFirst: false },
  ])('I5: the lock is held until both are released, $first one first', async ({ outerFirst }, { lock }) => {
    const outer = caller('ada')
    const inner = again(outer)
    await lock.grant(outer)
    await lock.acquire(inner)
    const { until, token } = await lock.hash()
    const heard = await lock.listen()
    const [first, second] = outerFirst ? [outer, inner] : [inner, outer]

    expect(await lock.release(first)).toEqual({ status: 'released' })
    const live = await lock.deadlines()
    expect(Object.keys(live)).toEqual([second.id])
    expect(await lock.hash()).toMatchObject({ owner: outer.owner, until: String(live[second.id]), token })
    expect(Number(until)).toBeGreaterThanOrEqual(live[second.id]!)
    expect(await lock.acquire(caller('ben'))).toMatchObject({ status: 'refused' })
    expect(await heard()).toEqual([])

    expect(await lock.release(second)).toEqual({ status: 'released' })
    const fields = Object.keys(await lock.hash()).sort()
    expect(fields).toEqual(['clock', 'keep'])
    expect(await heard()).toEqual([freedBy(outer)])
  })

  test('I1: no waiter gets the lock while one of the holds is left', async ({ lock }) => {
    const [outer, ben] = [caller('ada'), caller('ben')]
    await lock.given({ holder: outer, reentries: [again(outer)], waiters: [ben] })
    const heard = await lock.listen(ben)
    await lock.release(outer)

    expect(await lock.order()).toEqual([ben.id])
    expect(await heard()).toEqual([])
  })
})

describe('the cost of a release (I9)', () => {
  const ada = anonymous('ada')
  const own = anonymous('own', { client: ada.client })
  const many = Array.from({ length: 300 }, () => anonymous('ben'))

  test.each([
    { to: 'nobody', given: { holder: ada }, calls: ['HDEL', 'HMGET', 'PUBLISH'] },
    {
      to: 'a waiter of another client, however many there are',
      given: { holder: ada, waiters: many },
      calls: ['HMGET', 'HSET', 'PUBLISH', 'TIME', 'ZPOPMIN'],
    },
    {
      to: 'a waiter of the same client',
      given: { holder: ada, waiters: [own] },
      calls: ['HMGET', 'HSET', 'TIME', 'ZPOPMIN'],
    },
  ])('to $to', async ({ given, calls }) => {
    const lock = await lockOnOwnServer()
    await lock.given(given)
    await lock.listen(many[0]!)
    expect(await lock.callsInside(() => lock.release(ada))).toEqual(calls)
  })

  testAlone('that passes over dead waiters: a pop and a message for each client', async ({ lock }) => {
    const ben = anonymous('ben')
    await lock.given({ holder: ada, waiters: [caller('dead'), caller('dead'), ben] })
    await lock.listen(ben)
    const calls = await lock.callsInside(() => lock.release(ada))
    const thrice = (command: string) => [command, command, command]
    expect(calls).toEqual(['HMGET', 'HSET', ...thrice('PUBLISH'), 'TIME', ...thrice('ZPOPMIN')])
  })
})

describe('out of memory (I4)', () => {
  const [ada, ben] = [caller('ada'), caller('ben')]

  test.each([
    { what: 'a release', given: { holder: ada }, holder: undefined },
    { what: 'a hand-off', given: { holder: ada, waiters: [ben] }, holder: ben.id },
    { what: 'the release of one of two', given: { holder: ada, reentries: [again(ada)] }, holder: undefined },
  ])('$what works', async ({ given, holder }) => {
    const lock = await lockOnOwnServer()
    await lock.given(given)
    await lock.listen(ben)
    await lock.exhaustMemory()

    expect(await lock.release(ada)).toEqual({ status: 'released' })
    expect(await lock.holder()).toBe(holder)
  })
})

describe('a server that refuses to publish (ACL)', () => {
  const [ada, ben] = [caller('ada'), caller('ben')]

  test.each([
    { what: 'the next waiter has the lock', waiters: [ben], holder: ben.id },
    { what: 'the lock is free', waiters: [], holder: undefined },
  ])('I4: does not break a release half-way: $what', async ({ waiters, holder }) => {
    const lock = await lockOnOwnServer()
    await lock.given({ holder: ada, waiters })
    await lock.redis.call('ACL', 'SETUSER', 'default', 'resetchannels')

    expect(await lock.release(ada)).toEqual({ status: 'released' })
    expect(await lock.holder()).toBe(holder)
  })
})

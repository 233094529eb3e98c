/**
 * Tests lua/mutex/acquire.lua without a queue: a caller takes a free lock, is refused, takes over a lock whose lease
 * has lapsed, or re-enters.
 */
import { describe, expect } from 'vitest'
import { sleep } from '../kit/time.ts'
import { again, anonymous, type Caller, caller } from './callers.ts'
import { MEMORY, sharedLock, test, testAlone } from './test-lock.ts'

/** An upper bound, in ms, for the time between the run of a script and a check of the server's time. */
const SLACK = 2_000

describe('a free lock', () => {
  test('is granted on a new key, which then has all fields of its holder', async ({ lock }) => {
    const ada = caller('ada')
    const before = await lock.micros()
    const reply = await lock.acquire(ada)

    expect(reply).toEqual({ status: 'granted', token: expect.any(Number), ttl: 10_000 })
    expect(reply.token).toBeGreaterThanOrEqual(before)
    const { until, keep, ...fields } = await lock.hash()
    const token = String(reply.token)
    expect(fields).toEqual({ owner: ada.owner, hold: ada.id, label: 'ada', token, clock: token })
    expect(Number(until)).toBe(Math.floor(reply.token! / 1000) + 10_000)
    expect(Number(keep)).toBe(await lock.redis.call('PEXPIRETIME', lock.names.lock))
  })

  test('is not granted on a key of another type, which is left unchanged', async ({ lock }) => {
    await lock.redis.set(lock.names.lock, 'not a lock')
    const before = await lock.snapshot()

    await expect(lock.acquire(caller('ada'))).rejects.toMatchObject({ cause: { message: /WRONGTYPE/ } })
    expect(await lock.snapshot()).toEqual(before)
  })
})

describe('fencing tokens', () => {
  test('I2: each grant has a larger token than the one before', async ({ lock }) => {
    let last = 0
    for (let i = 0; i < 50; i++) {
      const ada = caller('ada')
      const token = await lock.grant(ada)
      expect(token).toBeGreaterThan(last)
      last = token
      await lock.release(ada)
    }
  })

  test('I2: the token is larger even after the lock was deleted', async ({ lock }) => {
    const token = await lock.grant(caller('ada'))
    await lock.redis.del(lock.names.lock)

    expect(await lock.grant(caller('ben'))).toBeGreaterThan(token)
  })

  test("I2: after the server's clock was ahead for a while, tokens continue from its largest value", async () => {
    const lock = await sharedLock()
    const excursion = (await lock.micros()) + 3_600_000_000
    await lock.given({ clock: excursion })
    const [ada, ben] = [caller('ada'), caller('ben')]

    expect(await lock.grant(ada)).toBe(excursion + 1)
    await lock.release(ada)
    expect(await lock.grant(ben)).toBe(excursion + 2)
  })

  test('I2: the key outlives the largest token that it has issued, however far in the future', async ({ lock }) => {
    await lock.given({ clock: (await lock.micros()) + 3_600_000_000 })
    await lock.grant(caller('ada'))

    const life = await lock.redis.pttl(lock.names.lock)
    expect(life).toBeGreaterThan(3_600_000 + MEMORY - SLACK)
    expect(life).toBeLessThanOrEqual(3_600_000 + 1.1 * MEMORY + 1) // µs are rounded up to ms
  })

  test('I2: the clock in a refusal is below every later token', async ({ lock }) => {
    const ada = caller('ada')
    const token = await lock.grant(ada)
    const { clock } = await lock.acquire(caller('ben'))
    await lock.release(ada)

    expect(clock).toBeGreaterThanOrEqual(token)
    expect(await lock.grant(caller('cyd'))).toBeGreaterThan(clock!)
  })
})

describe('a held lock', () => {
  test('I1: is refused to another owner; the reply names the holder and its times, and nothing is written', async () => {
    const lock = await sharedLock()
    await lock.given({ holder: caller('ada') })
    await lock.amendHolder({ token: (await lock.micros()) - 3_000_000 })
    const before = await lock.snapshot()
    const reply = await lock.acquire(caller('ben'))

    expect(reply).toMatchObject({ status: 'refused', position: 0, ticket: 0, label: 'ada' })
    expect(reply.ttl).toBeGreaterThan(10_000 - SLACK)
    expect(reply.ttl).toBeLessThanOrEqual(10_000)
    expect(reply.heldFor).toBeGreaterThanOrEqual(3_000)
    expect(reply.heldFor).toBeLessThan(3_000 + SLACK)
    expect(await lock.snapshot()).toEqual(before)
  })

  test('I5: gives a repeated request of its holder the same grant, and changes nothing', async ({ lock }) => {
    const ada = caller('ada')
    const token = await lock.grant(ada)
    const before = await lock.snapshot()

    const repeat = await lock.acquire(ada)
    expect(repeat).toMatchObject({ status: 'granted', token })
    expect(repeat.ttl).toBeLessThanOrEqual(10_000)
    expect(await lock.snapshot()).toEqual(before)
  })

  test('I1: is taken over with a larger token once its lease has lapsed', async ({ lock }) => {
    const [ada, ben] = [caller('ada'), caller('ben')]
    const token = await lock.grant(ada)
    await lock.lapse()

    const reply = await lock.acquire(ben)
    expect(reply).toMatchObject({ status: 'succeeded', ttl: 10_000 })
    expect(reply.token).toBeGreaterThan(token)
    expect(await lock.hash()).toMatchObject({ owner: ben.owner, hold: ben.id })
  })

  test('I5: is taken over without the re-entrant holds of the lapsed holder', async ({ lock }) => {
    const [ada, ben] = [caller('ada'), caller('ben')]
    await lock.given({ holder: ada, reentries: [again(ada), again(ada)], endsIn: -1 })
    await lock.grant(ben)

    const fields = Object.keys(await lock.hash()).sort()
    expect(fields).toEqual(['clock', 'hold', 'keep', 'label', 'owner', 'token', 'until'])
  })
})

describe('re-entry', () => {
  test('with a longer lease moves the end of the lease, and the expiry of the key', async ({ lock }) => {
    const ada = caller('ada')
    await lock.grant(ada)

    expect(await lock.acquire(again(ada, { lease: 100_000 }))).toMatchObject({ ttl: 100_000 })
    expect(await lock.redis.pttl(lock.names.lock)).toBeGreaterThan(100_000 + 5_000 - SLACK)
  })

  test('with a longer lease prolongs the first hold, if it is of the same client, but no other hold', async () => {
    const lock = await sharedLock()
    const ada = caller('ada')
    const [between, longer] = [again(ada, { lease: 1_000 }), again(ada, { lease: 100_000 })]
    await lock.grant(ada)
    await lock.acquire(between)
    const before = await lock.deadlines()
    await lock.acquire(longer)
    const { until } = await lock.hash()

    const now = { [ada.id]: Number(until), [between.id]: before[between.id], [longer.id]: Number(until) }
    expect(await lock.deadlines()).toEqual(now)
    await lock.acquire(caller('elsewhere', { owner: ada.owner, lease: 200_000 }))
    expect(await lock.deadlines()).toMatchObject(now)
  })

  test('with a longer lease does not revive a first hold that has ended', async ({ lock }) => {
    const ada = caller('ada')
    const inner = again(ada)
    await lock.grant(ada)
    await lock.acquire(inner)
    await lock.release(ada)
    const longer = again(ada, { lease: 100_000 })
    await lock.acquire(longer)

    expect(Object.keys(await lock.deadlines()).sort()).toEqual([inner.id, longer.id].sort())
  })

  test('I4: a hold that is never released ends with its own lease, however often its owner re-enters', async () => {
    const lock = await sharedLock()
    const dead = caller('dead', { lease: 300 })
    await lock.grant(dead)
    const deadline = Number((await lock.hash())['until'])
    const [once, twice] = ['once', 'twice'].map(name => caller(name, { owner: dead.owner })) as [Caller, Caller]
    await lock.acquire(once)
    await lock.acquire(twice)
    await lock.release(once)
    await lock.release(twice)

    expect(await lock.hash()).toMatchObject({ until: String(deadline) })
    await lock.acquire(once)
    await sleep(310)
    expect(await lock.release(once)).toMatchObject({ status: 'released' })
    expect(await lock.hash()).not.toHaveProperty('owner')
  })

  test('I5: repeated with the same id changes nothing', async ({ lock }) => {
    const ada = caller('ada')
    const inner = again(ada)
    const token = await lock.grant(ada)
    await lock.acquire(inner)
    const before = await lock.snapshot()

    expect(await lock.acquire(inner)).toMatchObject({ status: 'reentered', token })
    expect(await lock.snapshot()).toEqual(before)
  })

  test('is not possible after the lease has lapsed: the owner gets a new grant with a larger token (I2)', async () => {
    const lock = await sharedLock()
    const ada = caller('ada')
    const token = await lock.grant(ada)
    await lock.lapse()

    const reply = await lock.acquire(again(ada))
    expect(reply.status).toBe('succeeded')
    expect(reply.token).toBeGreaterThan(token)
  })

  test('removes its own request from the queue, where it waited before its owner got the lock', async ({ lock }) => {
    const [ada, ben] = [caller('ada'), caller('ben')]
    const waiting = again(ada)
    await lock.given({ holder: ada, waiters: [waiting, ben] })

    expect(await lock.acquire(waiting, { queue: true })).toMatchObject({ status: 'reentered' })
    expect(await lock.order()).toEqual([ben.id])
  })
})

describe('an owner with a name (I4)', () => {
  test('is announced on the unlock channel when it gets the lock, so that its other waiters re-enter', async () => {
    const lock = await sharedLock()
    const ada = caller('ada', { owner: 'öwner 1 4 €' })
    const heard = await lock.listenToEverything()
    await lock.grant(ada)
    await lock.acquire(again(ada))

    expect(await heard()).toEqual([{ to: 'unlock', text: 'entered öwner 1 4 €' }])
  })

  test('is named in refusals', async ({ lock }) => {
    await lock.given({ holder: caller('läbel 1', { owner: 'öwner 1 4 €' }) })
    expect(await lock.acquire(caller('ben'))).toMatchObject({ owner: 'öwner 1 4 €', label: 'läbel 1' })
  })
})

describe('the cost of an attempt (I9)', () => {
  testAlone('a new key: the usual three, EXISTS for a queue that was left, and PEXPIREAT', async ({ lock }) => {
    const calls = await lock.callsInside(() => lock.grant(anonymous('ada')))
    expect(calls).toEqual(['EXISTS', 'HMGET', 'HSET', 'PEXPIREAT', 'TIME'])
  })

  testAlone('a free known key: HMGET, TIME, HSET', async ({ lock }) => {
    const ada = caller('ada')
    await lock.grant(ada)
    await lock.release(ada)
    expect(await lock.callsInside(() => lock.grant(anonymous('ben')))).toEqual(['HMGET', 'HSET', 'TIME'])
  })

  testAlone('a held lock: HMGET, TIME', async ({ lock }) => {
    await lock.grant(caller('ada'))
    expect(await lock.callsInside(() => lock.acquire(caller('ben')))).toEqual(['HMGET', 'TIME'])
  })
})

testAlone('out of memory, a lock is refused and nothing is written', async ({ lock }) => {
  await lock.exhaustMemory()

  await expect(lock.acquire(caller('ada'))).rejects.toMatchObject({ cause: { message: /OOM/ } })
  expect(await lock.redis.dbsize()).toBe(0)
})

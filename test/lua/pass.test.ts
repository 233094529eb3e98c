/** Tests lua/mutex/pass.lua, which records that a client has passed its lock to another of its own waiters. */
import { describe, expect } from 'vitest'
import { again, anonymous, caller } from './callers.ts'
import { test as base, testAlone as baseAlone, MEMORY, type TestLock } from './test-lock.ts'

const BLOCK = 1_000
const ada = anonymous('ada')
const own = anonymous('own', { client: ada.client })
const ben = caller('ben')

const granted = ({ lock }: { lock: TestLock }) => lock.grant(ada)
/** Declares a test, which receives a lock that `ada` holds, and the token of that hold. */
const test = base.extend('token', granted)
const testAlone = baseAlone.extend('token', granted)

describe('a record', () => {
  test('names the new holder: token, owner and label change, the hold stays', async ({ lock, token }) => {
    expect(await lock.pass(ada, own, token + 1)).toEqual({ status: 'recorded', ttl: own.lease, queued: false })
    expect(await lock.hash()).toMatchObject({
      token: String(token + 1),
      owner: own.owner,
      label: 'own',
      hold: ada.id,
      clock: String(token + 1),
    })
  })

  test('begins the new lease now, and moves the expiry of the key accordingly', async ({ lock, token }) => {
    const before = Math.floor((await lock.micros()) / 1000)

    expect(await lock.pass(ada, { ...own, lease: 10 * MEMORY }, token + 1)).toMatchObject({ ttl: 10 * MEMORY })
    const { until, keep } = await lock.hash()
    expect(Number(until)).toBeGreaterThanOrEqual(before + 10 * MEMORY)
    expect(Number(until)).toBeLessThan(before + 10 * MEMORY + 2_000)
    expect(Number(keep)).toBeGreaterThan(Number(until))
    expect(Number(keep)).toBe(await lock.redis.call('PEXPIRETIME', lock.names.lock))
  })

  test('with a shorter lease never shortens the hold', async ({ lock, token }) => {
    const { until } = await lock.hash()

    expect((await lock.pass(ada, { ...own, lease: 100 }, token + 1)).ttl).toBeGreaterThan(8_000)
    expect(await lock.hash()).toMatchObject({ until, token: String(token + 1) })
  })

  test.for([
    { waiters: [], queued: false },
    { waiters: [ben], queued: true },
  ])('reports whether a waiter is queued: $queued', async ({ waiters, queued }, { lock }) => {
    await lock.given({ holder: ada, waiters })
    const token = Number((await lock.hash())['token'])

    expect(await lock.pass(ada, own, token + 1)).toMatchObject({ status: 'recorded', queued })
    expect(await lock.order()).toEqual(waiters.map(({ id }) => id))
  })

  test('I1: excludes another owner, which sees the new holder', async ({ lock, token }) => {
    await lock.pass(ada, own, token + 1)

    expect(await lock.acquire(ben)).toMatchObject({ status: 'refused', label: 'own' })
  })

  test('I5: keeps the id of the hold: only that id ends it, not the id of the new holder', async ({ lock, token }) => {
    await lock.pass(ada, own, token + 1)

    expect(await lock.release(own)).toEqual({ status: 'ended' })
    expect(await lock.release(ada)).toMatchObject({ status: 'released' })
  })
})

describe('fencing (I2)', () => {
  test.for([
    { what: 'is not recorded', recorded: false },
    { what: 'is recorded', recorded: true },
  ])('a grant to another owner is above the whole block if the last hand-off $what', async ({ recorded }, { lock }) => {
    await lock.given({ clock: (await lock.micros()) + 3_600_000_000 })
    const token = await lock.grant(ada)
    if (recorded) await lock.pass(ada, own, token + 5)
    await lock.lapse()

    expect(await lock.grant(ben)).toBe(token + BLOCK + (recorded ? 5 : 0) + 1)
  })

  test.for([{ named: 5 }, { named: undefined }])(
    'a grant to another owner is above the recorded token if the release reports $named',
    async ({ named }, { lock }) => {
      await lock.given({ clock: (await lock.micros()) + 3_600_000_000 })
      const token = await lock.grant(ada)
      await lock.pass(ada, own, token + 5)
      await lock.release(ada, named && token + named)

      expect(await lock.grant(ben)).toBe(token + 6)
    },
  )
})

describe('late, twice, or out of order (I5)', () => {
  test('repeated changes nothing', async ({ lock, token }) => {
    await lock.pass(ada, own, token + 1)
    const before = await lock.snapshot()

    expect(await lock.pass(ada, own, token + 1)).toMatchObject({ status: 'recorded', queued: false })
    expect(await lock.snapshot()).toEqual(before)
  })

  test('an older record never overwrites a newer one, nor prolongs it', async ({ lock, token }) => {
    await lock.pass(ada, { ...own, name: 'third' }, token + 3)
    const before = await lock.snapshot()

    expect(await lock.pass(ada, { ...own, lease: 99_000 }, token + 2)).toMatchObject({ status: 'recorded' })
    expect(await lock.pass(ada, ada, token)).toMatchObject({ status: 'recorded' })
    expect(await lock.snapshot()).toEqual(before)
  })

  test('a later hand-off is recorded even if earlier ones never were', async ({ lock, token }) => {
    await lock.pass(ada, own, token + 2)
    await lock.pass(ada, { ...own, name: 'ninth' }, token + 9)

    expect(await lock.hash()).toMatchObject({ token: String(token + 9), label: 'ninth' })
  })
})

describe('a hold that is gone', () => {
  test.for([
    { what: 'of a lock that does not exist', given: undefined },
    { what: 'of a lock that is free', given: {} },
    { what: "that is another's", given: { holder: ben } },
    { what: 'that is a re-entrant hold', given: { holder: again(ada), reentries: [ada] } },
    { what: 'whose lease has lapsed: it is not revived', given: { holder: ada, endsIn: -1 } },
    { what: 'that is a waiter', given: { holder: ben, waiters: [ada] } },
  ])('I1, I5: $what: nothing changes', async ({ given }, { lock }) => {
    if (given) await lock.given(given)
    const before = await lock.snapshot()
    const token = (await lock.micros()) + 60_000_000

    expect(await lock.pass(ada, own, token)).toEqual({ status: 'gone' })
    expect(await lock.snapshot()).toEqual(before)
  })

  test('I1, I5: even while a re-entrant hold of its owner lives, is not changed', async ({ lock }) => {
    await lock.given({ holder: ada, reentries: [again(ada)] })
    await lock.release(ada)
    const before = await lock.snapshot()

    expect(await lock.pass(ada, own, (await lock.micros()) + 60_000_000)).toEqual({ status: 'gone' })
    expect(await lock.snapshot()).toEqual(before)
  })
})

describe('the server', () => {
  testAlone('I9: does HMGET, TIME, PEXPIREAT, HSET; for a late record only HMGET, TIME', async ({ lock, token }) => {
    const record = () => lock.pass(ada, own, token + 1)

    expect(await lock.callsInside(record)).toEqual(['HMGET', 'HSET', 'PEXPIREAT', 'TIME'])
    expect(await lock.callsInside(record)).toEqual(['HMGET', 'TIME'])
  })

  testAlone('I8: out of memory, still records', async ({ lock, token }) => {
    await lock.exhaustMemory()

    expect(await lock.pass(ada, own, token + 1)).toMatchObject({ status: 'recorded' })
    expect(await lock.hash()).toMatchObject({ token: String(token + 1), owner: own.owner })
  })
})

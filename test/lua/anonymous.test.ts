/**
 * Tests calls that name no owner. Each of these calls is an owner of its own. The tests show which later calls may
 * re-enter the hold of such a call, and what Redis records about an owner after the owner's first hold has ended.
 */
import { describe, expect } from 'vitest'
import { renewed } from '../kit/names.ts'
import { again, anonymous, caller } from './callers.ts'
import { sharedLock, type TestLock, test } from './test-lock.ts'

const ada = anonymous('ada')
/** A call by another client than that of `ada`, but with the same owner. */
const foreign = caller('foreign', { owner: ada.owner })

/** Reads the holder's claim from Redis. */
async function recorded(lock: TestLock): Promise<string> {
  return (await lock.redis.hget(lock.names.lock, 'holder'))!.slice(34)
}

describe('an owner without a name', () => {
  test('is recorded as an empty owner, because the id is in the claim already', async ({ lock }) => {
    await lock.grant(ada)

    expect(await recorded(lock)).toBe(`${ada.id} 0 10000 5000 0 ada`)
    expect(await lock.hash()).toMatchObject({ owner: ada.id, label: 'ada' })
  })

  test('may re-enter through its own client', async ({ lock }) => {
    const token = await lock.grant(ada)

    expect(await lock.acquire(again(ada))).toMatchObject({ status: 'reentered', token })
  })

  test('I1: does not re-enter through another client, which cannot know whether the lock was passed on', async () => {
    const lock = await sharedLock()
    await lock.grant(ada)
    const before = await lock.snapshot()

    expect(await lock.acquire(foreign)).toMatchObject({ status: 'refused', label: 'ada' })
    expect(await lock.snapshot()).toEqual(before)
  })

  test('I3: joins the queue like any other owner if another client uses its name', async ({ lock }) => {
    await lock.grant(ada)

    expect(await lock.acquire(foreign, { queue: true })).toMatchObject({ status: 'refused', position: 1 })
  })

  test('may re-enter after the lock was passed to it; the previous owner may not', async ({ lock }) => {
    const own = anonymous('own', { client: ada.client })
    const token = (await lock.acquire(ada)).token!
    await lock.pass(ada, own, token + 1)

    expect(await lock.acquire(again(ada))).toMatchObject({ status: 'refused', label: 'own' })
    expect(await lock.acquire(caller('foreign', { owner: own.owner }))).toMatchObject({ status: 'refused' })
    expect(await lock.acquire(again(own))).toMatchObject({ status: 'reentered', token: token + 1 })
  })
})

describe('an owner with a name', () => {
  test('may re-enter from any client, even if the lock was passed to it within one', async ({ lock }) => {
    const named = caller('named', { client: ada.client })
    const token = (await lock.acquire(ada)).token!
    await lock.pass(ada, named, token + 1)

    const elsewhere = caller('elsewhere', { owner: named.owner })
    expect(await lock.acquire(elsewhere)).toMatchObject({ status: 'reentered', token: token + 1 })
  })

  test('never re-enters a lock that an owner without a name holds', async ({ lock }) => {
    await lock.grant(ada)

    expect(await lock.acquire(caller('named', { client: ada.client }))).toMatchObject({ status: 'refused' })
  })
})

describe('after the first hold has ended, while other holds of its owner live', () => {
  test.for([
    { whose: 'with a name', first: caller('läbel 2 3\n%s', { owner: 'öwner 1\n4 €', headStart: 7 }) },
    { whose: 'without a name', first: ada },
  ])('an owner $whose is kept byte by byte, with token and lease', async ({ first }, { lock }) => {
    const token = await lock.grant(first)
    await lock.acquire(again(first))
    const { until } = await lock.hash()
    await lock.release(first)

    const fields = { owner: first.owner, label: first.name, token: String(token), until }
    expect(await lock.hash()).toMatchObject(fields)
    expect(await lock.hash()).not.toHaveProperty('hold')
  })

  test('I5: the first hold can no longer be ended or prolonged', async ({ lock }) => {
    const inner = again(ada)
    await lock.given({ holder: ada, reentries: [inner] })
    await lock.release(ada)
    const before = await lock.snapshot()

    expect(await lock.release(ada)).toEqual({ status: 'ended' })
    expect(await lock.leave(ada)).toBe('absent')
    const asked = [ada.id, 9e15, 30_000, inner.id, 9e15, 0]
    const { lock: name } = lock.names
    const { values } = await lock.scripts.run('renew', renewed(name, name), asked)
    expect(values).toEqual([null, expect.any(Number)])
    expect(await lock.snapshot()).toEqual(before)
  })

  test('an owner without a name may re-enter through its own client, and through no other', async ({ lock }) => {
    const inner = again(ada)
    const token = await lock.grant(ada)
    await lock.acquire(inner)
    await lock.release(ada)

    expect(await lock.acquire(foreign)).toMatchObject({ status: 'refused', label: 'ada' })
    const later = again(ada)
    expect(await lock.acquire(later)).toMatchObject({ status: 'reentered', token })
    expect(await lock.hash()).toMatchObject({ owner: ada.id })
    expect(Object.keys(await lock.deadlines()).sort()).toEqual([inner.id, later.id].sort())
    await lock.release(inner)
    expect(await lock.hash()).toMatchObject({ owner: ada.id })
    expect(await lock.release(later)).toMatchObject({ status: 'released' })
    expect(Object.keys(await lock.hash()).sort()).toEqual(['clock', 'keep'])
  })

  test('an owner with a name may still re-enter from any client', async ({ lock }) => {
    const cyd = caller('cyd')
    await lock.given({ holder: cyd, reentries: [again(cyd)] })
    await lock.release(cyd)

    expect(await lock.acquire(caller('elsewhere', { owner: cyd.owner }))).toMatchObject({ status: 'reentered' })
  })
})

/** Blocks of tokens, for hand-offs within a client: lua/mutex/acquire.lua reserves them, lua/mutex/release.lua takes back the rest. */
import { describe, expect, test } from 'vitest'
import { again, anonymous, caller } from './callers.ts'
import { lockOnOwnServer, MEMORY, sharedLock } from './test-lock.ts'

/** µs: a minute, so that whatever happens in a test happens before the reserved tokens are in the past. */
const BLOCK = 60_000_000

const ada = anonymous('ada')
const ben = caller('ben')

describe('a grant that reserves', () => {
  test('I2: leaves the clock where it is, and gives the key a life that goes beyond the block', async () => {
    const lock = await sharedLock()
    const reply = await lock.acquire(ada, { reserve: BLOCK })

    expect(reply).toMatchObject({ status: 'granted', ttl: ada.lease })
    const { clock, reserved, token } = await lock.hash()
    expect([token, clock, reserved]).toEqual([reply.token, reply.token, reply.token! + BLOCK].map(String))
    expect(await lock.redis.pttl(lock.names.lock)).toBeGreaterThan(BLOCK / 1000 + MEMORY - 2_000)
  })

  test.each([
    { what: 'a free lock', given: {}, status: 'granted' },
    { what: 'a lapsed one', given: { holder: ben, endsIn: -1 }, status: 'succeeded' },
    { what: 'one whose waiters are gone', given: { waiters: [ben] }, status: 'granted' },
    {
      what: 'a lapsed one whose waiters are gone',
      given: { holder: ben, endsIn: -1, waiters: [{ ...ben, joinedAgo: 6_000 }] },
      status: 'succeeded',
    },
  ])('I2: of $what: every grant that is reported has its block', async ({ given, status }) => {
    const lock = await sharedLock()
    await lock.given(given)
    const reply = await lock.acquire(ada, { reserve: BLOCK })

    expect(reply.status).toBe(status)
    expect(await lock.hash()).toMatchObject({ hold: ada.id, reserved: String(reply.token! + BLOCK) })
  })

  test('I2: of a lock whose key was lost and whose queue is dead has its block', async () => {
    const lock = await sharedLock()
    await lock.given({ waiters: [ben] })
    await lock.redis.del(lock.names.lock)
    const { token } = await lock.acquire(ada, { reserve: BLOCK })

    expect((await lock.hash())['reserved']).toBe(String(token! + BLOCK))
  })

  test('I5: repeated gets the same grant, and reserves nothing more', async () => {
    const lock = await sharedLock()
    const { token } = await lock.acquire(ada, { reserve: BLOCK })
    const before = await lock.snapshot()

    expect(await lock.acquire(ada, { reserve: BLOCK })).toMatchObject({ status: 'granted', token })
    expect(await lock.snapshot()).toEqual(before)
  })

  test.each([
    { what: 'a refused attempt', who: ben, status: 'refused' },
    { what: 're-entry', who: again(ada), status: 'reentered' },
  ])('$what reserves nothing', async ({ who, status }) => {
    const lock = await sharedLock()
    await lock.given({ holder: ada })
    const { clock } = await lock.hash()

    expect(await lock.acquire(who, { reserve: BLOCK })).toMatchObject({ status })
    expect(await lock.hash()).toMatchObject({ clock })
    expect(await lock.order()).toEqual([])
  })
})

describe('tokens after a block (I2)', () => {
  test.each([
    { what: 'it lapsed', end: 'lapse' },
    { what: 'it was taken away', end: 'force' },
    { what: 'its release says nothing of the block', end: 'release' },
  ])('are above the whole of it when $what', async ({ end }) => {
    const lock = await sharedLock()
    const token = (await lock.acquire(ada, { reserve: BLOCK })).token!
    if (end === 'lapse') await lock.lapse()
    else if (end === 'force') await lock.forceRelease()
    else await lock.release(ada)

    expect(await lock.grant(ben)).toBe(token + BLOCK + 1)
  })

  test.each([{ issued: 0 }, { issued: 7 }])('go on after the $issued that were used', async ({ issued }) => {
    const lock = await sharedLock()
    const token = (await lock.acquire(ada, { reserve: BLOCK })).token!
    await lock.release(ada, token + issued)

    expect((await lock.hash())['clock']).toBe(String(token + issued))
    const next = await lock.grant(ben)
    expect(next).toBeGreaterThan(token + issued)
    expect(next).toBeLessThan(token + BLOCK)
  })

  test('go on after the last that was used, also when all of them were', async () => {
    const lock = await sharedLock()
    const token = (await lock.acquire(ada, { reserve: BLOCK })).token!
    await lock.release(ada, token + BLOCK)

    expect(await lock.grant(ben)).toBe(token + BLOCK + 1)
  })

  test('are not taken back when the clock has moved since', async () => {
    const lock = await sharedLock()
    const clock = (await lock.micros()) + BLOCK
    await lock.given({ holder: ada, clock })
    await lock.release(ada, clock - BLOCK)

    expect(await lock.grant(ben)).toBe(clock + 1)
  })

  test('are above those that were used, and above the tickets, when a waiter has joined: the clock keeps time', async () => {
    const lock = await sharedLock()
    const token = (await lock.acquire(ada, { reserve: BLOCK })).token!
    const ticket = await lock.enqueue(ben)
    await lock.listen(ben)
    await lock.release(ada, token + 1)

    expect(ticket).toBeLessThan(token + BLOCK)
    const { token: next, clock, hold } = await lock.hash()
    expect(hold).toBe(ben.id)
    expect(Number(next)).toBeGreaterThan(Math.max(ticket, token + 1))
    expect(Number(next)).toBeLessThanOrEqual(await lock.micros())
    expect(clock).toBe(next)
  })

  test('are above the tickets also of a waiter that has left', async () => {
    const lock = await sharedLock()
    const token = (await lock.acquire(ada, { reserve: BLOCK })).token!
    const ticket = await lock.enqueue(ben)
    await lock.leave(ben)
    await lock.release(ada, token + 1)

    expect(await lock.grant(caller('cyd'))).toBeGreaterThan(ticket)
  })

  test('are above what a refusal said in between, though the rest was given back', async () => {
    const lock = await sharedLock()
    const token = (await lock.acquire(ada, { reserve: BLOCK })).token!
    const { clock } = await lock.acquire(ben)
    await lock.release(ada, token)

    expect(clock).toBeGreaterThanOrEqual(token)
    expect(await lock.grant(ben)).toBeGreaterThan(clock!)
  })

  test('are not touched by a release that is too late, or repeated (I5)', async () => {
    const lock = await sharedLock()
    const token = (await lock.acquire(ada, { reserve: BLOCK })).token!
    const block = token
    await lock.release(ada, block)
    await lock.acquire(ben, { reserve: BLOCK })
    const before = await lock.snapshot()

    expect(await lock.release(ada, block)).toEqual({ status: 'ended' })
    expect(await lock.snapshot()).toEqual(before)
  })
})

describe('the server', () => {
  test('I9: does no more for a grant with a block, and one HSET more for a release that tells of hand-offs', async () => {
    const lock = await lockOnOwnServer()
    await lock.grant(ada)
    await lock.release(ada)
    let token = 0
    const grant = async () => {
      token = (await lock.acquire(ada, { reserve: 1_000 })).token!
    }

    expect(await lock.callsInside(grant)).toEqual(['HMGET', 'HSET', 'TIME'])
    expect(await lock.callsInside(() => lock.release(ada, token))).toEqual(['HDEL', 'HMGET', 'PUBLISH'])
    await grant()
    expect(await lock.callsInside(() => lock.release(ada, token + 1))).toEqual(['HDEL', 'HMGET', 'HSET', 'PUBLISH'])
  })

  test('I4: out of memory, a release gives back all the same', async () => {
    const lock = await lockOnOwnServer()
    const token = (await lock.acquire(ada, { reserve: BLOCK })).token!
    await lock.exhaustMemory()

    expect(await lock.release(ada, token)).toMatchObject({ status: 'released' })
    expect((await lock.hash())['clock']).toBe(String(token))
  })
})

/**
 * When a holder hands the lock to another waiter of its client, the holder issues the new token itself. It may use the
 * block of 1,000 tokens that follows its own token. These tests check which token Redis issues next. If the release
 * reports the last token that was used, the next token only has to be larger than that one (lua/mutex/release.lua). If
 * the hold ends without a release, for example because the lease lapses, the next token has to be larger than the whole
 * block (lua/holder.lua).
 */
import { describe, expect } from 'vitest'
import { again, anonymous, caller } from './callers.ts'
import { sharedLock, type TestLock, test, testAlone } from './test-lock.ts'

const BLOCK = 1_000

const ada = anonymous('ada')
const ben = caller('ben')
const cyd = caller('cyd')

/**
 * Makes a lock whose last token is an hour ahead of the server's time. Redis uses the server's time as the next token
 * only if the time is past the lock's clock (lua/lock.lua). Here it is not, so each new token is the clock
 * plus 1, and a test can predict each token exactly.
 */
async function lockAhead(): Promise<TestLock> {
  const lock = await sharedLock()
  await lock.given({ clock: (await lock.micros()) + 3_600_000_000 })
  return lock
}

describe('a grant', () => {
  test('I2: sets the clock to its own token, not to the end of the block', async ({ lock }) => {
    const token = await lock.grant(ada)

    expect(await lock.hash()).toMatchObject({ token: String(token), clock: String(token) })
  })

  test.for([
    { what: 'a refused attempt', who: ben, status: 'refused' },
    { what: 're-entry', who: again(ada), status: 'reentered' },
  ])('$what leaves the clock unchanged', async ({ who, status }, { lock }) => {
    await lock.given({ holder: ada })
    const { clock } = await lock.hash()

    expect(await lock.acquire(who)).toMatchObject({ status })
    expect(await lock.hash()).toMatchObject({ clock })
    expect(await lock.order()).toEqual([])
  })
})

describe('tokens after a holder (I2)', () => {
  test.each([
    { what: 'it lapsed', next: 'acquire', end: (lock: TestLock) => lock.lapse() },
    { what: 'it was taken away', next: 'acquire', end: (lock: TestLock) => lock.forceRelease() },
    {
      what: 'it lapsed, and a sweep has found that',
      next: 'acquire',
      async end(lock: TestLock) {
        await lock.lapse()
        await lock.redis.hset(lock.names.lock, 'queued', Date.now() + 60_000)
        expect(await lock.sweep()).toBe('swept')
        expect(await lock.hash()).not.toHaveProperty('token')
      },
    },
  ])('are above its whole block when $what', async ({ end }) => {
    const lock = await lockAhead()
    const token = await lock.grant(ada)
    await end(lock)

    expect(await lock.grant(ben)).toBe(token + BLOCK + 1)
  })

  test.each([
    {
      what: 'an attempt finds the lapsed lease',
      find: async (lock: TestLock) => expect((await lock.acquire(cyd)).status).toBe('refused'),
    },
    { what: 'it is taken away', find: (lock: TestLock) => lock.forceRelease() },
    { what: 'a sweep finds the lapsed lease', find: (lock: TestLock) => lock.sweep() },
    {
      what: 'a heartbeat finds the lapsed lease',
      find: async (lock: TestLock) => expect((await lock.tend([ben, 1])).places).toHaveLength(1),
    },
  ])('are above its whole block when $what, and a waiter follows', async ({ what, find }) => {
    const lock = await lockAhead()
    const token = await lock.grant(ada)
    await lock.listen(ben)
    const ticket = await lock.enqueue(ben)
    if (what !== 'it is taken away') await lock.lapse()
    await find(lock)

    const { hold, token: next } = await lock.hash()
    expect(hold).toBe(ben.id)
    expect(Number(next)).toBe(Math.max(ticket, token + BLOCK) + 1)
  })

  test('are above the block after the last recorded hand-off', async () => {
    const lock = await lockAhead()
    const token = await lock.grant(ada)
    await lock.pass(ada, anonymous('eve'), token + 5)
    await lock.lapse()

    expect(await lock.grant(ben)).toBeGreaterThan(token + BLOCK)
  })

  test.each([{ issued: 0 }, { issued: 7 }, { issued: BLOCK }])(
    'continue after the $issued that a release reports as used',
    async ({ issued }) => {
      const lock = await lockAhead()
      const token = await lock.grant(ada)
      await lock.release(ada, token + issued)

      expect((await lock.hash())['clock']).toBe(String(token + issued))
      expect(await lock.grant(ben)).toBe(token + issued + 1)
    },
  )

  test('are above those that a release reports, if it hands the lock to a waiter', async () => {
    const lock = await lockAhead()
    const token = await lock.grant(ada)
    await lock.enqueue(ben)
    await lock.listen(ben)
    await lock.release(ada, token + 7)

    expect(await lock.hash()).toMatchObject({ hold: ben.id, token: String(token + 8) })
  })

  test('are above those that a release reports, if all waiters are dead', async () => {
    const lock = await lockAhead()
    const token = await lock.grant(ada)
    await lock.enqueue(ben)
    await lock.release(ada, token + 7)

    expect(await lock.grant(cyd)).toBeGreaterThan(token + 7)
  })

  test('follow the time of day after a waiter has joined: above the tokens used and the tickets', async ({ lock }) => {
    const token = await lock.grant(ada)
    const ticket = await lock.enqueue(ben)
    await lock.listen(ben)
    await lock.release(ada, token + 1)

    const { token: next, clock, hold } = await lock.hash()
    expect(hold).toBe(ben.id)
    expect(Number(next)).toBeGreaterThan(Math.max(ticket, token + 1))
    expect(Number(next)).toBeLessThanOrEqual(await lock.micros())
    expect(clock).toBe(next)
  })
})

describe('the server', () => {
  testAlone('I9: needs one more HSET for a release that reports hand-offs', async ({ lock }) => {
    await lock.grant(ada)
    await lock.release(ada)
    let token = 0
    const grant = async () => {
      token = await lock.grant(ada)
    }

    expect(await lock.callsInside(grant)).toEqual(['HMGET', 'HSET', 'TIME'])
    expect(await lock.callsInside(() => lock.release(ada))).toEqual(['HDEL', 'HMGET', 'PUBLISH'])
    await grant()
    expect(await lock.callsInside(() => lock.release(ada, token + 1))).toEqual(['HDEL', 'HMGET', 'HSET', 'PUBLISH'])
  })

  testAlone('I4: out of memory, still accepts a release that reports hand-offs', async ({ lock }) => {
    const token = await lock.grant(ada)
    await lock.exhaustMemory()

    expect(await lock.release(ada, token + 7)).toMatchObject({ status: 'released' })
    expect((await lock.hash())['clock']).toBe(String(token + 7))
  })
})

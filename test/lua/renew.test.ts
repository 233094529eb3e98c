/** Tests lua/mutex/renew.lua, which prolongs holds that still exist, and reports which holds are gone. */
import { describe, expect } from 'vitest'
import { renewed } from '../kit/names.ts'
import { again, type Caller, caller } from './callers.ts'
import { lockOnOwnServer, MEMORY, sharedLock, type TestLock, test, testAlone } from './test-lock.ts'

type Asked = readonly [lock: TestLock, hold: Caller, ms: number, token?: number]

/**
 * A token that is larger than any token in Redis, for tests in which the token does not matter. If the token in Redis
 * is larger than the token in the request, the script reports that the hold's id was granted the lock again. With `ANY`
 * in the request, the script never reports this.
 */
const ANY = 9e15

/** Renews the holds. Returns the reply: the time left for each hold, or null if the hold is gone. */
async function renew(...asked: Asked[]): Promise<unknown[]> {
  const { values } = await asked[0]![0].scripts.run(
    'renew',
    renewed(...asked.map(([lock]) => lock.names.lock)),
    asked.flatMap(([, { id }, ms, token = ANY]) => [id, token, ms]),
  )
  return values
}

describe('a live hold', () => {
  test('is prolonged to the lease asked for, from now', async ({ lock }) => {
    const ada = caller('ada')
    await lock.given({ holder: ada, endsIn: 500 })
    const before = Math.floor((await lock.micros()) / 1000)

    expect(await renew([lock, ada, 30_000])).toEqual([30_000])
    const until = Number((await lock.hash())['until'])
    expect(until).toBeGreaterThanOrEqual(before + 30_000)
    expect(until).toBeLessThan(before + 32_000)
  })

  test.for([
    { ms: 2_000, what: 'is never shortened by a shorter lease' },
    { ms: 0, what: 'is only confirmed by 0 ms' },
  ])('$what', async ({ ms }, { lock }) => {
    const ada = caller('ada')
    await lock.given({ holder: ada })
    const before = await lock.snapshot()
    const [left] = await renew([lock, ada, ms])

    expect(left).toBeGreaterThan(8_000)
    expect(left).toBeLessThanOrEqual(10_000)
    expect(await lock.snapshot()).toEqual(before)
  })

  test('may be a re-entrant one, even after the first hold has ended', async ({ lock }) => {
    const ada = caller('ada')
    const inner = again(ada)
    await lock.given({ holder: ada, reentries: [inner] })

    expect(await renew([lock, inner, 20_000])).toEqual([20_000])
    await lock.release(ada)
    expect(await renew([lock, inner, 30_000])).toEqual([30_000])
  })

  test('I2: moves the expiry of the key with it', async ({ lock }) => {
    const ada = caller('ada')
    await lock.grant(ada)
    await renew([lock, ada, 10 * MEMORY])

    const life = await lock.redis.pttl(lock.names.lock)
    expect(life).toBeGreaterThan(10 * MEMORY)
    expect(life).toBeLessThanOrEqual(10.1 * MEMORY + 5_000)
    expect((await lock.hash())['keep']).toBe(String(await lock.redis.call('PEXPIRETIME', lock.names.lock)))
  })

  testAlone('I8: is prolonged even if the server is out of memory', async ({ lock }) => {
    const ada = caller('ada')
    await lock.given({ holder: ada })
    await lock.exhaustMemory()

    expect(await renew([lock, ada, 30_000])).toEqual([30_000])
  })
})

describe('a hold that is gone', () => {
  const ada = caller('ada')

  test.for([
    { what: 'of a lock that does not exist', given: {}, hold: ada },
    { what: 'of a foreign id', given: { holder: caller('ben') }, hold: ada },
    { what: 'of the same owner, but another id', given: { holder: ada }, hold: again(ada) },
    { what: 'whose lease has lapsed: it is not revived', given: { holder: ada, endsIn: -1 }, hold: ada },
    { what: 'that is a waiter', given: { holder: caller('ben'), waiters: [ada] }, hold: ada },
  ])('I5: $what: nothing changes', async ({ given, hold }, { lock }) => {
    await lock.given(given)
    const before = await lock.snapshot()

    expect(await renew([lock, hold, 30_000])).toEqual([null])
    expect(await lock.snapshot()).toEqual(before)
  })

  test('I2: is reported differently from a later grant to the same id', async ({ lock }) => {
    const first = await lock.grant(ada)
    await lock.release(ada)
    const second = await lock.grant(ada)
    const before = await lock.snapshot()

    expect(await renew([lock, ada, 30_000, first])).toEqual([-1])
    expect(await lock.snapshot()).toEqual(before)
    expect(await renew([lock, ada, 30_000, second])).toEqual([30_000])
  })

  test('is not a hold whose last hand-off within its client is not recorded yet', async ({ lock }) => {
    const token = await lock.grant(ada)

    expect(await renew([lock, ada, 30_000, token + 1])).toEqual([30_000])
  })
})

describe('several locks in one call', () => {
  test('each gets its own answer, in order', async () => {
    const first = await sharedLock()
    const [second, third] = [first.another(), first.another()]
    const [ada, ben, cyd] = [caller('ada'), caller('ben'), caller('cyd')]
    await first.given({ holder: ada })
    await third.given({ holder: cyd })

    expect(await renew([first, ada, 20_000], [second, ben, 30_000], [third, cyd, 40_000])).toEqual([
      20_000,
      null,
      40_000,
    ])
  })

  test('I4: two holds of one lock: each has its own lease, and the lock has the longer', async ({ lock }) => {
    const ada = caller('ada')
    const inner = again(ada)
    await lock.given({ holder: ada, reentries: [inner] })

    const [first, second] = await renew([lock, ada, 40_000], [lock, inner, 20_000])
    expect([first, second]).toEqual([40_000, 20_000])
    const [one, two] = [(await lock.deadlines())[ada.id]!, (await lock.deadlines())[inner.id]!]
    expect(one - two).toBe(20_000)
    expect(await lock.hash()).toMatchObject({ until: String(one) })
  })

  test('I8: a key of another type affects only its own lock', async () => {
    const broken = await sharedLock()
    const sound = broken.another()
    const [ada, ben] = [caller('ada'), caller('ben')]
    await broken.redis.set(broken.names.lock, 'not a lock')
    await sound.given({ holder: ben })

    expect(await renew([broken, ada, 30_000], [sound, ben, 30_000])).toEqual([null, 30_000])
  })

  test('I9: cost one TIME, and for each hold HMGET, PEXPIREAT, HSET', async () => {
    const first = await lockOnOwnServer()
    const second = first.another()
    const [ada, ben] = [caller('ada'), caller('ben')]
    await first.given({ holder: ada })
    await second.given({ holder: ben })

    const calls = await first.callsInside(() => renew([first, ada, 30_000], [second, ben, 30_000]))
    expect(calls).toEqual(['HMGET', 'HMGET', 'HSET', 'HSET', 'PEXPIREAT', 'PEXPIREAT', 'TIME'])
  })
})

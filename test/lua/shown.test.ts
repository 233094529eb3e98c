/** Tests under which hold a lock is shown: the first one of its holder, or another one once that has ended. */
import { describe, expect } from 'vitest'
import { decodeHolder } from '../../src/kinds/claim.ts'
import { again, anonymous, type Caller, caller } from './callers.ts'
import { sharedLock, type TestLock, test, testAlone } from './test-lock.ts'

/** Returns the hold under which the lock is shown, by `inspect`, to a caller that is refused, and to a waiter. */
async function shownIn(lock: TestLock) {
  const { values } = await lock.scripts.run('inspect', lock.keys, [])
  const { id, owner, label, lease } = decodeHolder(values[1] as string)!.claim
  const other = caller('other')
  const ticket = (await lock.acquire(other, { queue: true })).ticket!
  const tended = await lock.tend([other, ticket])
  await lock.leave(other)
  for (const seen of [await lock.acquire(caller('third')), tended]) expect(seen).toMatchObject({ label })
  return { id, owner, label, lease }
}

function shown({ id, owner, name: label, lease }: Caller) {
  return { id, owner, label, lease }
}

/** Makes an entry of a call by the same owner, through another client. */
function elsewhere(first: Caller, name: string, traits: Partial<Caller> = {}): Caller {
  return caller(name, { owner: first.owner, ...traits })
}

async function enter(lock: TestLock, ...callers: readonly Caller[]) {
  for (const who of callers) expect((await lock.acquire(who)).status).toMatch(/^(granted|reentered)$/)
}

describe('a lock whose holder has re-entered', () => {
  test('is shown under the first hold, and then under the oldest re-entry that lives', async ({ lock }) => {
    const first = caller('first')
    const [second, third, fourth] = ['', ' 28 of 3\n ', 'é 9'].map(name => elsewhere(first, name)) as [
      Caller,
      Caller,
      Caller,
    ]
    await enter(lock, first, second, third, fourth)
    expect(await shownIn(lock)).toEqual(shown(first))
    await lock.release(first)
    expect(await shownIn(lock)).toEqual(shown(second))
    // A request that is repeated, and a hold that is released between others.
    await enter(lock, second)
    await lock.release(third)
    expect(await shownIn(lock)).toEqual(shown(second))
    await lock.redis.zadd(lock.names.deadlines, 1, second.id)
    expect(await shownIn(lock)).toEqual(shown(fourth))
    await lock.release(fourth)
    await lock.release(second)
    expect(Object.keys(await lock.hash()).sort()).toEqual(['clock', 'keep'])
  })

  test('keeps the owner, the token and the `minHold` of the grant', async ({ lock }) => {
    const first = anonymous('first', { minHold: 60_000 })
    const inner = again(first, { name: 'inner' })
    const token = await lock.grant(first)
    await enter(lock, inner)
    await lock.release(first)
    expect(await shownIn(lock)).toEqual({ ...shown(inner), owner: first.id, lease: 60_000 })
    // Calls inside the first hold still re-enter, and those of other clients do not.
    expect(await lock.acquire(again(first))).toMatchObject({ status: 'reentered', token })
    expect(await lock.acquire(caller('foreign', { owner: first.id }))).toMatchObject({ status: 'refused' })
  })

  test('is taken by force under the hold that is shown, and under no other', async ({ lock }) => {
    const first = caller('first')
    const second = elsewhere(first, 'second')
    await enter(lock, first, second)
    expect(await lock.forceRelease('one', second.id)).toBe('free')
    await lock.release(first)
    expect(await lock.forceRelease('two', first.id)).toBe('free')
    expect(await lock.forceRelease('three', second.id)).toBe('released')
    expect((await lock.acquire(caller('next'))).status).toBe('granted')
  })

  test('is shown under its first hold if a client of an earlier version has entered, which lists nothing', async () => {
    const lock = await sharedLock()
    const [first, listed] = [caller('first'), caller('listed')]
    const old = elsewhere(first, 'old')
    await lock.given({ holder: first, reentries: [old] })
    await lock.release(first)
    expect(await shownIn(lock)).toEqual(shown(first))
    const next = { ...listed, owner: first.owner }
    await enter(lock, next)
    expect(await shownIn(lock)).toEqual(shown(next))
  })

  test('lists a limited number of re-entries: the newest', async ({ lock }) => {
    const first = caller('first')
    const others = Array.from({ length: 30 }, (_, i) => elsewhere(first, `${i}`.padStart(1_000, 'x')))
    await enter(lock, first, ...others)
    await lock.release(first)
    const { label } = await shownIn(lock)
    expect(others.slice(-4).map(({ name }) => name)).toContain(label)
    expect((await lock.redis.hget(lock.names.lock, 'holds'))!.length).toBeLessThanOrEqual(4_000)
    for (const who of others) await lock.release(who)
    expect((await lock.acquire(caller('next'))).status).toBe('granted')
  })
})

describe('the cost (I9)', () => {
  testAlone('is one more ZSCORE for a refusal, and nothing for a re-entry and its release', async ({ lock }) => {
    const first = caller('first')
    const [second, third] = [elsewhere(first, 'second'), elsewhere(first, 'third')]
    await enter(lock, first)
    const entering = ['HMGET', 'HSET', 'PEXPIREAT', 'TIME', 'ZADD', 'ZADD', 'ZREMRANGEBYSCORE']
    expect(await lock.callsInside(() => lock.acquire(second))).toEqual(entering)
    await enter(lock, third)
    expect(await lock.callsInside(() => lock.acquire(caller('other')))).toEqual(['HMGET', 'TIME', 'ZSCORE', 'ZSCORE'])
    const releasing = ['HMGET', 'HSET', 'TIME', 'ZCOUNT', 'ZRANGE', 'ZREM', 'ZSCORE']
    expect(await lock.callsInside(() => lock.release(second))).toEqual(releasing)
  })
})

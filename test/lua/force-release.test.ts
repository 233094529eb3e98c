/** Tests lua/mutex/force-release.lua, which takes the lock from its holder. */
import { describe, expect } from 'vitest'
import { again, type Caller, caller } from './callers.ts'
import { lockOnOwnServer, type Message, type TestLock, test, testAlone } from './test-lock.ts'

const ada = caller('ada')
const ben = caller('ben')

/** Returns the message that a client receives when a hold was taken away. */
function lostMessage(lock: TestLock, { name, id }: Caller, token: number): Message {
  return { to: name, text: `lost ${id} ${token} ${lock.names.lock}` }
}

describe('the holder', () => {
  test('I4, I8: loses the lock and gets a message; the unfair waiters are woken', async ({ lock }) => {
    const token = await lock.grant(ada)
    const heard = await lock.listen(ada)

    expect(await lock.forceRelease()).toBe('released')
    const after = await lock.hash()
    expect(after).not.toHaveProperty('owner')
    expect(after).not.toHaveProperty('hold')
    // For hand-offs within its client, the holder may have issued 1,000 more tokens itself. The script advances `clock`
    // to the last of these tokens. So the next token that Redis issues is larger than each of them (I2).
    expect(after).toMatchObject({ clock: String(token + 1_000) })
    expect(await heard()).toEqual([{ to: 'unlock', text: 'free' }, lostMessage(lock, ada, token)])
  })

  test('I4: is followed by the first live waiter, which gets a message', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [caller('unheard'), ben, caller('cyd')] })
    const seen = Number((await lock.hash())['token'])
    const heard = await lock.listen(ada, ben)
    await lock.forceRelease()

    const { hold, token } = await lock.hash()
    expect(hold).toBe(ben.id)
    expect(await heard()).toEqual([lock.grantMessage('handoff', ben, Number(token)), lostMessage(lock, ada, seen)])
  })

  test('I8: loses every hold, and the client of each gets a message', async ({ lock }) => {
    const inner = again(ada)
    const elsewhere = caller('elsewhere', { owner: ada.owner })
    await lock.given({ holder: ada, reentries: [inner, elsewhere] })
    const token = Number((await lock.hash())['token'])
    const heard = await lock.listen(ada, elsewhere)
    await lock.forceRelease()

    expect(Object.keys(await lock.hash()).sort()).toEqual(['clock', 'forced', 'keep'])
    expect(await lock.redis.exists(lock.names.deadlines)).toBe(0)
    const told = (await heard()).filter(({ to }) => to !== 'unlock').map(({ text }) => text)
    const expected = [ada, inner, elsewhere].map(hold => lostMessage(lock, hold, token).text)
    expect(told.sort()).toEqual(expected.sort())
  })

  test('I8: whose first hold had ended loses the remaining one', async ({ lock }) => {
    const inner = again(ada)
    await lock.given({ holder: ada, reentries: [inner] })
    const token = Number((await lock.hash())['token'])
    await lock.release(ada)
    const heard = await lock.listen(ada)
    await lock.forceRelease()

    expect(await heard()).toEqual([{ to: 'unlock', text: 'free' }, lostMessage(lock, inner, token)])
    expect(await lock.release(inner)).toEqual({ status: 'ended' })
  })
})

describe('a lock that nobody holds', () => {
  test.for([
    { what: 'because it is new', given: undefined },
    { what: 'because it is free', given: {} },
    { what: 'because its lease has lapsed', given: { holder: ada, endsIn: -1, waiters: [ben] } },
  ])('I5: $what: nothing changes', async ({ given }, { lock }) => {
    if (given) await lock.given(given)
    const heard = await lock.listen(ada, ben)
    const before = await lock.snapshot()

    expect(await lock.forceRelease()).toBe('free')
    expect(await lock.snapshot()).toEqual(before)
    expect(await heard()).toEqual([])
  })
})

describe('a request that is repeated after its answer was lost', () => {
  test('I5: gets the same answer, and does not take the lock from the next holder', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [ben] })
    await lock.listen(ben)
    await lock.forceRelease('request 1')
    const before = await lock.snapshot()

    expect(await lock.forceRelease('request 1')).toBe('released')
    expect(await lock.holder()).toBe(ben.id)
    expect(await lock.snapshot()).toEqual(before)
  })
})

describe('a request about one holder', () => {
  test('I5: takes the lock from that holder and from no other, even if repeated', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [ben] })
    await lock.listen(ben)
    expect(await lock.forceRelease('request 1', ben.id)).toBe('free')
    expect(await lock.holder()).toBe(ada.id)
    expect(await lock.forceRelease('request 2', ada.id)).toBe('released')
    expect(await lock.forceRelease('request 2', ada.id)).toBe('released')
    expect(await lock.forceRelease('request 3', ada.id)).toBe('free')
    expect(await lock.holder()).toBe(ben.id)
  })
})

describe('the server', () => {
  test('I9: does HMGET twice, TIME, HDEL, HSET, and a PUBLISH for the hold and for the waiters', async () => {
    const lock = await lockOnOwnServer()
    await lock.grant(ada)
    const calls = await lock.callsInside(() => lock.forceRelease())
    expect(calls).toEqual(['HDEL', 'HMGET', 'HMGET', 'HSET', 'PUBLISH', 'PUBLISH', 'TIME'])
  })

  testAlone('I4: out of memory, still hands the lock off', async ({ lock }) => {
    await lock.given({ holder: ada, waiters: [ben] })
    await lock.listen(ben)
    await lock.exhaustMemory()

    expect(await lock.forceRelease()).toBe('released')
    expect(await lock.holder()).toBe(ben.id)
  })
})

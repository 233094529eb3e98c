/** Tests lua/mutex/leave.lua, which withdraws a request that is queued, or that was granted the lock. */
import { describe, expect } from 'vitest'
import { again, caller } from './callers.ts'
import { sharedLock, test, testAlone } from './test-lock.ts'

describe('a waiter that leaves', () => {
  test('I7: is removed from the queue with its deadline; the others keep their order', async ({ lock }) => {
    const [ben, cyd, dan] = [caller('ben'), caller('cyd', { deadlineIn: 4_000 }), caller('dan', { deadlineIn: 4_000 })]
    await lock.given({ holder: caller('ada'), waiters: [ben, cyd, dan] })

    expect(await lock.leave(cyd)).toBe('left')
    expect(await lock.order()).toEqual([ben.id, dan.id])
    expect(await lock.deadline(cyd)).toBeUndefined()
    expect(await lock.deadline(dan)).toBeDefined()
  })

  test('I7: leaves no key of the queue if it was the only one', async ({ lock }) => {
    const ben = caller('ben', { deadlineIn: 4_000 })
    await lock.given({ holder: caller('ada'), waiters: [ben] })
    await lock.leave(ben)

    expect(await lock.redis.exists(lock.names.queue, lock.names.deadlines)).toBe(0)
  })

  test('I5: does not touch the holder', async ({ lock }) => {
    const ben = caller('ben')
    await lock.given({ holder: caller('ada'), waiters: [ben] })
    const before = await lock.hash()
    await lock.leave(ben)

    expect(await lock.hash()).toEqual(before)
  })
})

describe('a waiter that was granted the lock before it left', () => {
  test('I4: gives it back: the next waiter gets it and a message', async ({ lock }) => {
    const [ada, ben] = [caller('ada'), caller('ben')]
    await lock.given({ holder: ada, waiters: [ben] })
    const heard = await lock.listen(ben)

    expect(await lock.leave(ada)).toBe('returned')
    const { hold, token } = await lock.hash()
    expect(hold).toBe(ben.id)
    expect(await heard()).toEqual([lock.grantMessage('handoff', ben, Number(token))])
  })

  test('I4: passes over waiters whose inbox has no subscriber', async ({ lock }) => {
    const [ada, ben, cyd] = [caller('ada'), caller('ben'), caller('cyd')]
    await lock.given({ holder: ada, waiters: [ben, cyd] })
    await lock.listen(cyd)
    await lock.leave(ada)

    expect(await lock.holder()).toBe(cyd.id)
  })

  test('I4: sends a message to a waiter of its own client too, because the reply has no grant', async ({ lock }) => {
    const ada = caller('ada')
    const own = caller('own', { client: ada.client })
    await lock.given({ holder: ada, waiters: [own] })
    const heard = await lock.listen(own)
    await lock.leave(ada)

    expect((await heard()).map(({ to }) => to)).toEqual(['own'])
  })

  test.each([{ queued: true }, { queued: false }])('I4: leaves the lock free if nobody is queued (%o)', async how => {
    const lock = await sharedLock()
    const ada = caller('ada')
    await lock.grant(ada)
    const heard = await lock.listen()

    expect(await lock.leave(ada, how)).toBe('returned')
    expect(await lock.hash()).not.toHaveProperty('owner')
    expect(await heard()).toEqual([{ to: 'unlock', text: 'free' }])
  })

  test('I5: gives back only its own hold if it has re-entered', async ({ lock }) => {
    const ada = caller('ada')
    const inner = again(ada)
    await lock.given({ holder: ada, reentries: [inner] })

    expect(await lock.leave(inner)).toBe('returned')
    expect(await lock.hash()).toMatchObject({ owner: ada.owner, hold: ada.id, holds: '1' })
  })
})

describe('a request that neither waits nor holds', () => {
  const [ada, ben] = [caller('ada'), caller('ben', { deadlineIn: 4_000 })]

  test.for([
    { what: 'on a lock that does not exist', given: {} },
    { what: 'on a lock that another holds', given: { holder: ada, waiters: [ben] } },
    { what: 'on a lock that is free', given: { waiters: [ben] } },
  ])('I5: $what: nothing changes', async ({ given }, { lock }) => {
    await lock.given(given)
    const heard = await lock.listen(ada, ben)
    const before = await lock.snapshot()

    expect(await lock.leave(caller('eve'))).toBe('absent')
    expect(await lock.snapshot()).toEqual(before)
    expect(await heard()).toEqual([])
  })
})

describe('the server', () => {
  testAlone('I9: does HMGET, ZREM, ZREM for a waiter that leaves', async ({ lock }) => {
    const ben = caller('ben')
    await lock.given({ holder: caller('ada'), waiters: [ben] })
    expect(await lock.callsInside(() => lock.leave(ben))).toEqual(['HMGET', 'ZREM', 'ZREM'])
  })

  testAlone('I9: does HMGET for a request that was never queued and holds nothing', async ({ lock }) => {
    await lock.given({ holder: caller('ada') })
    expect(await lock.callsInside(() => lock.leave(caller('ben'), { queued: false }))).toEqual(['HMGET'])
  })

  testAlone('I4: out of memory, lets a waiter leave, and a granted one give the lock back', async ({ lock }) => {
    const [ada, ben, cyd] = [caller('ada'), caller('ben'), caller('cyd')]
    await lock.given({ holder: ada, waiters: [ben, cyd] })
    await lock.listen(cyd)
    await lock.exhaustMemory()

    expect(await lock.leave(ben)).toBe('left')
    expect(await lock.leave(ada)).toBe('returned')
    expect(await lock.holder()).toBe(cyd.id)
  })
})

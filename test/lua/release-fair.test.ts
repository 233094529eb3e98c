/** Tests lua/mutex/release.lua with a queue: the lock is handed off. */
import { describe, expect } from 'vitest'
import { caller } from './callers.ts'
import { freedBy, sharedLock, test } from './test-lock.ts'

describe('a hand-off', () => {
  test('I3: makes the first waiter the holder, with its own lease and a larger token; only it gets a message', async () => {
    const lock = await sharedLock()
    const [ada, ben, cyd] = [caller('ada'), caller('ben', { lease: 4_000 }), caller('cyd')]
    await lock.given({ holder: ada, waiters: [ben, cyd] })
    const heard = await lock.listen(ada, ben, cyd)
    const { clock } = await lock.hash()
    const before = Math.floor((await lock.micros()) / 1000)

    expect(await lock.release(ada)).toEqual({ status: 'released' })
    const after = await lock.hash()
    expect(after).toMatchObject({ owner: ben.owner, hold: ben.id, label: 'ben', clock: after['token'] })
    expect(Number(after['token'])).toBeGreaterThan(Number(clock))
    const lease = Number(after['until']) - before
    expect(lease).toBeGreaterThanOrEqual(4_000)
    expect(lease).toBeLessThan(6_000)
    expect(await heard()).toEqual([lock.grantMessage('handoff', ben, Number(after['token']))])
    expect(await lock.order()).toEqual([cyd.id])
  })

  test('I3: follows the order of the tickets, whatever the order of joining', async ({ lock }) => {
    const waiters = [300, 100, 500, 200, 400].map(joinedAgo => caller(`${joinedAgo}`, { joinedAgo }))
    let holder = caller('ada')
    await lock.given({ holder, waiters })
    await lock.listen(...waiters)

    const granted: string[] = []
    for (let i = 0; i < waiters.length; i++) {
      await lock.release(holder)
      const { hold } = await lock.hash()
      holder = waiters.find(({ id }) => id === hold)!
      granted.push(holder.name)
    }
    expect(granted).toEqual(['500', '400', '300', '200', '100'])
  })

  test('I4: passes over waiters that have expired or have no subscriber, and removes them', async ({ lock }) => {
    const expired = caller('expired', { joinedAgo: 6_000 })
    const unheard = caller('unheard', { joinedAgo: 100 })
    const [ada, ben] = [caller('ada'), caller('ben')]
    await lock.given({ holder: ada, waiters: [expired, unheard, ben] })
    const heard = await lock.listen(expired, ben)
    await lock.release(ada)

    expect(await lock.holder()).toBe(ben.id)
    expect(await lock.order()).toEqual([])
    expect((await heard()).map(({ to }) => to)).toEqual(['ben'])
  })

  test('I3: counts the expiry of a waiter from when it joined, not from its ticket with a head start', async () => {
    const lock = await sharedLock()
    const [ada, ben] = [caller('ada'), caller('ben', { headStart: 60_000_000 })]
    await lock.given({ holder: ada, waiters: [ben] })
    await lock.listen(ben)
    await lock.release(ada)

    expect(await lock.holder()).toBe(ben.id)
  })

  test('I4: leaves the lock free if no waiter is alive, and records that nobody is queued', async ({ lock }) => {
    const ada = caller('ada')
    await lock.given({ holder: ada, waiters: [caller('ben'), caller('cyd', { joinedAgo: 6_000 })] })
    const heard = await lock.listen()

    expect(await lock.release(ada)).toEqual({ status: 'released' })
    expect(await lock.hash()).not.toHaveProperty('owner')
    expect(await lock.hash()).not.toHaveProperty('queued')
    expect(await heard()).toEqual([freedBy(ada)])
  })

  test('if the release finds the queue empty, it records that nobody is queued', async ({ lock }) => {
    const [ada, ben] = [caller('ada'), caller('ben')]
    await lock.given({ holder: ada, waiters: [ben] })
    const heard = await lock.listen(ben)
    await lock.release(ada)
    await lock.release(ben)

    expect(await lock.hash()).not.toHaveProperty('queued')
    expect((await heard()).map(({ to }) => to)).toEqual(['ben', 'unlock'])
  })

  test('to a waiter of the same client is in the reply, without a message', async ({ lock }) => {
    const ada = caller('ada')
    const own = caller('own', { client: ada.client, lease: 4_000 })
    await lock.given({ holder: ada, waiters: [own, caller('ben')] })
    const heard = await lock.listen(ada)

    const reply = await lock.release(ada)
    const { hold, token } = await lock.hash()
    expect(reply).toEqual({ status: 'passed', id: own.id, token: Number(token), ttl: 4_000 })
    expect(hold).toBe(own.id)
    expect(await heard()).toEqual([])
  })

  test('I3: does not prefer a waiter of the same client', async ({ lock }) => {
    const [ada, ben] = [caller('ada'), caller('ben')]
    const own = caller('own', { client: ada.client })
    await lock.given({ holder: ada, waiters: [ben, own] })
    await lock.listen(ada, ben)

    expect(await lock.release(ada)).toEqual({ status: 'released' })
    expect(await lock.holder()).toBe(ben.id)
    expect(await lock.order()).toEqual([own.id])
  })
})

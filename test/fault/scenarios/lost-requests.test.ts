/** Requests whose request or reply is lost on the way are sent again, and what they did is done once (I5). */
import { describe, expect, test } from 'vitest'
import { park } from '../../kit/parking.ts'
import { client, freshKey, nothingLeft, plainRedis } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { increment } from '../../kit/witness.ts'
import { clientOnTwoWays, reconnect } from './two-ways.ts'

describe('a release', () => {
  test('whose reply is lost reports success once, and does not end the hold of the next', async () => {
    const key = freshKey()
    const { locks, commands } = await clientOnTwoWays()
    const lease = await locks.lock(key)
    commands.swallow('down')
    const released = lease.release()
    const next = await client().lock(key)
    reconnect(commands)

    expect(await released).toBe(true)
    expect(await lease.release()).toBe(false)
    expect(next.held).toBe(true)
    expect(await client().inspect(key)).toMatchObject({ locked: true, owner: next.owner, holds: 1 })
    expect(await next.release()).toBe(true)
  })

  test('that never arrived is sent again, and reports success once', async () => {
    const key = freshKey()
    const { locks, commands } = await clientOnTwoWays()
    const lease = await locks.lock(key)
    commands.swallow('up')
    const released = lease.release()
    await sleep(50)
    expect(await client().tryLock(key)).toBeNull()
    reconnect(commands)

    expect(await released).toBe(true)
    expect(await lease.release()).toBe(false)
    await nothingLeft(plainRedis(), locks, key)
  })

  test('whose reply is lost still hands the lock to the waiter of the same client', async () => {
    const key = freshKey()
    const { locks, commands } = await clientOnTwoWays({ waiterTtl: 60_000 })
    const lease = await locks.lock(key)
    const { lease: wait } = await park(locks, key, { fair: true })
    commands.swallow('down')
    const released = lease.release()
    const granted = await eventually(async () => {
      const { fencingToken } = await client().inspect(key)
      return fencingToken !== lease.fencingToken && fencingToken
    })
    reconnect(commands)

    expect((await wait).fencingToken).toBe(granted)
    expect(await released).toBe(true)
    expect(await client().inspect(key)).toMatchObject({ fencingToken: granted, holds: 1, waiters: [] })
    expect(await (await wait).release()).toBe(true)
  })
})

describe.each([true, false])('an acquire (fair: %s)', fair => {
  test('whose reply is lost is granted once, and succeeds after the reconnect', async () => {
    const key = freshKey()
    const { locks, commands } = await clientOnTwoWays()
    commands.swallow('down')
    const wait = locks.lock(key, { fair })
    const fencingToken = await eventually(async () => (await client().inspect(key)).fencingToken)
    reconnect(commands)

    const lease = await wait
    expect(lease.fencingToken).toBe(fencingToken)
    expect(await client().inspect(key)).toMatchObject({ locked: true, owner: lease.owner, holds: 1, waiters: [] })
    expect(await lease.release()).toBe(true)
    await nothingLeft(plainRedis(), locks, key)
  })

  test('whose refusal is lost waits once', async () => {
    const key = freshKey()
    const { locks, commands } = await clientOnTwoWays({ waiterTtl: 60_000 })
    const held = await client().lock(key)
    commands.swallow('down')
    const wait = locks.lock(key, { fair })
    if (fair) await eventually(async () => (await client().inspect(key)).waiters.length > 0)
    else await sleep(50)
    reconnect(commands)
    await eventually(async () => (await locks.inspect(key)).waiters.length === (fair ? 1 : 0))
    await held.release()

    expect(await (await wait).release()).toBe(true)
    await nothingLeft(plainRedis(), locks, key)
  })
})

test.each([true, false])('counts come out right while connections are dropped all the time (fair: %s)', async fair => {
  const key = freshKey()
  const redis = plainRedis()
  const ways = await Promise.all(Array.from({ length: 3 }, () => clientOnTwoWays()))
  let working = true
  const breaking = (async () => {
    for (let i = 0; working; i++) {
      await sleep(40)
      const { commands, messages } = ways[i % 3]!
      ;(i % 2 === 0 ? commands : messages).cut()
    }
  })()
  const work = async ({ locks }: (typeof ways)[number]) => {
    for (let round = 0; round < 100; round++) {
      await locks.using(key, { fair }, () => increment(redis, `${key}:counter`))
    }
  }
  await Promise.all(ways.map(work))
  working = false
  await breaking
  expect(await redis.get(`${key}:counter`)).toBe('300')
})

/**
 * Tests that waiters notice the end of a lease even if no message announces the end (I4), and that the hold leaves
 * nothing in Redis (I7).
 */
import { describe, expect } from 'vitest'
import { calls } from '../../kit/command-stats.ts'
import { park, ways } from '../../kit/parking.ts'
import { Peer } from '../../kit/peer.ts'
import { client, freshKey, keysWith, ownServer, plainRedis, test } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'

/** How soon after the end of a lease a waiter must get the lock, in ms. */
const PROMPTLY = 150

/** Returns the earliest and the latest moment at which the current lease may end. */
async function leaseEnd(key: string): Promise<{ earliest: number; latest: number }> {
  const before = performance.now()
  const { ttl = 0 } = await client().inspect(key)
  return { earliest: before + ttl - 1, latest: performance.now() + ttl }
}

describe.each(ways)('a lease that ends without a message wakes its waiter within 150 ms (fair: %s)', fair => {
  // The holder's process is killed. A live client would release the lock when its lease ends, perhaps before Redis
  // itself ends the hold.
  test.each([
    ['a fixed lease', { lease: 1_200 }, 0],
    ['a renewed lease', {}, 1_500],
  ])('%s of a process that is killed', async (_, options, lived) => {
    const key = freshKey()
    const peer = await Peer.start({ lease: 1_200 })
    const held = await peer.lock(key, options)
    const { lease: wait } = await park(client(), key, { fair })
    await sleep(lived)
    await peer.kill()
    const { earliest, latest } = await leaseEnd(key)
    const lease = await wait
    const now = performance.now()
    expect(lease.via).toBe('expiry')
    expect(lease.fencingToken).toBeGreaterThan(held.token)
    expect(now).toBeGreaterThan(earliest)
    expect(now - latest).toBeLessThan(PROMPTLY)
  })
})

describe.each(ways)('a lock that is released at once after its grant (fair: %s)', fair => {
  const lease = 500

  test('three leases later, has left no key and is not renewed', async () => {
    const server = await ownServer()
    const redis = plainRedis(server.url)
    const locks = client({ lease, tokenMemory: 100, waiterTtl: 300, fair }, server.url)
    for (let i = 0; i < 20; i++) expect(await (await locks.lock(freshKey())).release()).toBe(true)
    const before = await calls(redis)
    await sleep(3 * lease)
    expect(await keysWith(redis, '')).toEqual([])
    expect(await calls(redis, before)).toEqual({})
    expect(locks.stats()).toMatchObject({ renewed: 0, lost: 0, holding: 0, released: 20 })
  })

  test('leaves no key, even after waiters were served', async ({ key }) => {
    const redis = plainRedis()
    const locks = client({ lease, tokenMemory: 100, waiterTtl: 300, fair })
    await Promise.all(Array.from({ length: 10 }, () => locks.using(key, () => sleep(5))))
    await sleep(3 * lease)
    expect(await keysWith(redis, key)).toEqual([])
  })
})

/** Tests that one client renews 4,000 leases in time. Few programs hold so many leases in one process. */
import { expect, test } from 'vitest'
import type { Lease } from '../../../src/index.ts'
import { client, ownServer, plainRedis } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'

test('4,000 renewed locks of one client all stay held for two leases', { timeout: 90_000 }, async () => {
  // A lease is renewed when a third of its time has passed. That makes a few thousand renewals per second.
  const lease = 5_000
  const count = 4_000
  const { url } = await ownServer()
  const locks = client({ lease }, url)
  const lost: unknown[] = []
  locks.on('lost', event => lost.push(event))

  const leases: Lease[] = []
  while (leases.length < count) {
    const some = Array.from({ length: 500 }, (_, i) => locks.lock(`lock ${leases.length + i}`))
    leases.push(...(await Promise.all(some)))
  }
  const end = performance.now() + 2 * lease
  while (performance.now() < end) {
    await sleep(100)
    expect(leases.filter(({ held }) => !held)).toHaveLength(0)
  }
  expect(lost).toEqual([])

  const redis = plainRedis(url)
  const asked = redis.pipeline()
  for (const { key } of leases) asked.hget(`lock:{${key}}`, 'holder')
  const states = (await asked.exec()) as [null, string][]
  const [seconds] = await redis.time()
  const held = states.filter(([, holder], i) => {
    const [, until, id] = holder.split(' ')
    return id === leases[i]?.id && Number(until) >= Number(seconds) * 1000
  })
  expect(held).toHaveLength(count)
  expect(new Set(leases.map(({ signal }) => signal.aborted))).toEqual(new Set([false]))
})

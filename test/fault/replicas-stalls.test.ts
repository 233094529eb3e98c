/**
 * Tests the option `replicas` while the server temporarily refuses commands. The client then asks again whether the
 * replicas have confirmed. The kind of lock makes no difference.
 */
import type { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { outcomeOf, within } from '../kit/outcomes.ts'
import { bluntRedis, client, freshKey, ownServer, plainRedis } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const stalls: Record<string, (redis: Redis, other: Redis) => Promise<unknown>> = {
  async BUSY(redis, other) {
    const busy = outcomeOf(redis.eval('while true do end', 0))
    await sleep(1_500)
    await other.script('KILL')
    await busy
  },
  async LOADING(redis) {
    await redis.mset(Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`filler ${i}`, 'x'.repeat(100)])))
    await redis.config('SET', 'key-load-delay', '1000', 'loading-process-events-interval-bytes', '1024')
    await redis.call('DEBUG', 'RELOAD')
  },
}

// This test fails if `(isReply(error) && !this.#connection.passes(error))` becomes `isReply(error)` in
// src/redis/replication.ts: the renewal rejects.
test.each(Object.entries(stalls))('I6 I8: a renewal waits out -%s, and the hold continues', async (word, begin) => {
  const master = await ownServer('--lua-time-limit', '50', '--enable-debug-command', 'local')
  await ownServer('--replicaof', '127.0.0.1', String(master.port))
  const redis = plainRedis(master.url)
  await eventually(async () => (await redis.wait(1, 500)) === 1, 15_000)
  const looking = bluntRedis(master.url)
  await looking.ping()
  const locks = client({ replicas: { min: 1, timeout: 2_000 } }, master.url)
  const key = freshKey()
  const lease = await locks.lock(key)

  const stalled = begin(redis, looking)
  await eventually(async () => `${(await outcomeOf(looking.ping())).error}`.includes(`${word} `))
  const renewed = await within(10_000, outcomeOf(lease.renew()))
  await stalled
  expect(renewed.error).toBeUndefined()
  expect(lease.held).toBe(true)
  expect(await client({}, master.url).tryLock(key)).toBeNull()
})

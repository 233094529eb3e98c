/**
 * Tests connections in states that ioredis 5 reports differently from ioredis 6. The contract tests run with both
 * versions and cover everything else.
 */
import { Redis } from 'ioredis-5'
import { expect, test } from 'vitest'
import { FaultProxy } from '../kit/fault-proxy.ts'
import { promptly } from '../kit/outcomes.ts'
import { client, freshKey, redisUrl } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

// This test fails if `if (redis.stream?.destroyed) redis.status = 'end'` is removed in src/redis/clients.ts: both
// connections count as ready, so neither reconnects.
test('I6: connections that are lost during their greeting are replaced', async () => {
  const proxy = await FaultProxy.open(redisUrl())
  proxy.swallow('down')
  // A connection name makes the connection wait for a reply before it is ready.
  const redis = new Redis(proxy.url, { connectionName: 'named', lazyConnect: true })
  const locks = client({}, redis)
  const lease = locks.lock(freshKey())
  await eventually(() => proxy.connections === 2)
  proxy.cut()
  await eventually(() => proxy.connections === 0)
  proxy.heal()
  expect((await promptly(lease)).held).toBe(true)
  await locks.close()
  await proxy.close()
})

/** Where ioredis 5 says something else of a connection than 6 does. What is the same is in the contract, which both are run over. */
import { Redis } from 'ioredis-5'
import { expect, test } from 'vitest'
import { FaultProxy } from '../kit/fault-proxy.ts'
import { promptly } from '../kit/outcomes.ts'
import { client, freshKey, redisUrl } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

// Break: `if (redis.stream?.destroyed) redis.status = 'end'` away in src/redis/clients.ts: both connections count as ready, and
// nothing is asked to connect again.
test('I6: connections that are lost during their greeting are made anew', async () => {
  const proxy = await FaultProxy.open(redisUrl())
  proxy.swallow('down')
  // With a name there is something to wait for before it is ready.
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

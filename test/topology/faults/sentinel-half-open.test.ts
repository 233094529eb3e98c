/**
 * Tests connections to sentinels that become half-open. A client that only listens on such a connection receives
 * nothing, and cannot know why. A client follows the sentinels in the same way for all kinds of lock, so the test uses
 * a mutex.
 */
import { expect, test } from 'vitest'
import { faultProxy } from '../../kit/proxies.ts'
import { freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { freeze, patient, scene } from './sentinel-scene.ts'

// This test fails if `if (sentinel.up)` becomes `if (false)` in src/redis/sentinels.ts: the client sends nothing on these
// connections. So they stay open for ever, and the client stays with its old master.
test('I1: a client with half-open connections to the sentinels leaves a stale master, too', {
  timeout: 60_000,
}, async () => {
  const { servers, master, make, connections, allAt } = await scene()
  const proxies = await Promise.all(servers.sentinels.map(({ url }) => faultProxy(url)))
  const ports = proxies.map(({ url }) => Number(new URL(url).port))
  const idle = make(
    patient,
    servers.sentinels.map((sentinel, i) => ({ ...sentinel, port: ports[i]! })),
  )
  const key = freshKey()
  expect(await idle.isLocked(key)).toBe(false)
  for (const sentinel of servers.sentinels) {
    await eventually(async () => String(await servers.direct(sentinel).client('LIST')).includes('sub=1'))
  }
  await servers.inSync()

  for (const proxy of proxies) {
    proxy.refuse()
    proxy.swallow('up')
    proxy.swallow('down')
  }
  const goOn = freeze(master)
  const next = await servers.movedFrom(master)
  // The client does not learn of the failover. The client leaves the half-open connections only because its probes are
  // not answered. The time limit is more than twice as long as the probes take.
  await eventually(() => proxies.every(proxy => proxy.connections === 0), 20_000)
  for (const proxy of proxies) {
    proxy.heal()
    proxy.accept()
  }
  await allAt(next)
  const held = await make().lock(key)
  await servers.linger(12_000)
  goOn()
  await eventually(async () => /role:master/.test(await servers.direct(master).info('replication')))
  expect(await idle.tryLock(key)).toBeNull()
  expect(await connections(master)).toBe(0)
  expect(await held.release()).toBe(true)
})

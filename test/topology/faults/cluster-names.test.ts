/**
 * Tests a cluster whose addresses are host names. A client connects in the same way for all kinds of lock, so the test
 * uses a mutex.
 */
import { lookup } from 'node:dns'
import { Cluster } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { LockClient } from '../../../src/index.ts'
import { within } from '../../kit/outcomes.ts'
import { freshKey } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { ownCluster } from './cluster-crowd.ts'

/**
 * With this outageTimeout, the client gives up a connection attempt after 3 s. The first lookup of the host name takes
 * `LATE` ms. So the name is resolved only after the client has given up the first attempt.
 */
const patience = { outageTimeout: 9_000 }
const LATE = 4_500

// This test fails if `if (mute) this.#ended()` is removed in src/redis/uplink.ts: the client never connects
// again, and the lock is not granted.
test('I4 I6: one name resolves slowly while connecting: the client connects again', async () => {
  const { port } = (await ownCluster()).addresses[0]!
  let asked = 0
  let late = 0
  const source = new Cluster([{ host: 'localhost', port }], {
    lazyConnect: true,
    dnsLookup: async (name, callback) => {
      asked += 1
      if (asked === 1) {
        await sleep(LATE)
        late += 1
      }
      lookup(name, 4, callback)
    },
  })
  const locks = new LockClient(source, patience)
  onTestFinished(() => locks.close())
  const lease = await within(patience.outageTimeout, locks.lock(freshKey()))
  expect(asked).toBeGreaterThan(1)
  // The late answer of the lookup arrives, and has no effect.
  await eventually(() => late === 1)
  expect(await lease.release()).toBe(true)
  const again = await Promise.all(Array.from({ length: 6 }, () => locks.lock(freshKey())))
  for (const each of again) expect(await each.release()).toBe(true)
})

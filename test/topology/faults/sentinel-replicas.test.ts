/**
 * Tests `replicas` with sentinels. The client asks over a separate connection to the master whether replicas confirm a
 * grant. The kind of lock makes no difference, so the test uses a mutex.
 */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { within } from '../../kit/outcomes.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { mistaken, scene } from './sentinel-scene.ts'

// This test fails if `'cannot be used with replica': 'demoted',` is removed in src/redis/refusals.ts: the client keeps asking
// the replica for confirmations. The replica refuses the command WAIT, so each grant is undone and retried, without
// success.
test('I4 I6: a sentinel names a replica: calls wait until it names the master, which confirms them', async () => {
  const at = await scene()
  const { servers, master } = at
  const { replica, options, putRight } = await mistaken(at)
  const connectionName = `of-${randomUUID()}`
  const locks = client({ replicas: { min: 1, timeout: 2_000 } }, { ...options, connectionName })
  const asked = locks.lock(freshKey())
  asked.catch(() => {})
  // Wait until the client has all of its three connections to the replica: for commands, for messages and for
  // confirmations. All are constantly replaced, so there are three only for moments, which become rarer as the pauses
  // grow. A slow machine may miss them. The test then goes on without, and does not notice the line above. The one for
  // confirmations has not been used yet.
  const connections = async () => String(await servers.direct(replica).client('LIST')).split(connectionName).length - 1
  await eventually(async () => (await connections()) === 3, 10_000).catch(() => {})
  await putRight()
  const lease = await within(10_000, asked)
  expect(await servers.direct(master).exists(`lock:{${lease.key}}`)).toBe(1)
  expect(await lease.release()).toBe(true)
})

/**
 * `replicas` with sentinels: confirmations have a connection of their own to the master, for every kind of lock; here,
 * a mutex.
 */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { within } from '../../kit/outcomes.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { mistaken, scene } from './sentinel-scene.ts'

// Break: `|\bcannot be used with replica\b` away in src/redis/refusals.ts: the client keeps asking the replica for
// confirmations. The replica refuses to wait for replicas, so each grant is undone and retried, without success.
test('I4 I6: a sentinel that names a replica: calls wait it out, and the master confirms them', async () => {
  const at = await scene()
  const { servers, master } = at
  const { replica, options, putRight } = await mistaken(at)
  const connectionName = `of-${randomUUID()}`
  const locks = client({ replicas: { min: 1, timeout: 2_000 } }, { ...options, connectionName })
  const asked = locks.lock(freshKey())
  asked.catch(() => {})
  // Connections for commands, messages and confirmations. The first is replaced all the time; nothing has been asked on
  // the last yet.
  const connections = async () => String(await servers.direct(replica).client('LIST')).split(connectionName).length - 1
  await eventually(async () => (await connections()) === 3)
  await putRight()
  const lease = await within(10_000, asked)
  expect(await servers.direct(master).exists(`lock:{${lease.key}}`)).toBe(1)
  expect(await lease.release()).toBe(true)
})

/**
 * `replicas` where sentinels say which server is the master: confirmations have a connection of their own to it, whatever kind of lock they are
 * of; here, a mutex.
 */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { within } from '../../kit/outcomes.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { mistaken, scene } from './sentinel-scene.ts'

// Break: `|\bcannot be used with replica\b` away in src/redis/refusals.ts: confirmations go on being asked of the
// replica, which refuses to wait for replicas, so each grant is undone and tried again, in vain.
test('I4 I6: a sentinel that names a replica: calls ride it out, and are confirmed by the master', async () => {
  const at = await scene()
  const { servers, master } = at
  const { replica, options, putRight } = await mistaken(at)
  const connectionName = `of-${randomUUID()}`
  const locks = client({ replicas: { min: 1, timeout: 2_000 } }, { ...options, connectionName })
  const asked = locks.lock(freshKey())
  asked.catch(() => {})
  // For commands, messages and confirmations: the first is made anew all the time, nothing is asked of the last yet.
  const connections = async () => String(await servers.direct(replica).client('LIST')).split(connectionName).length - 1
  await eventually(async () => (await connections()) === 3)
  await putRight()
  const lease = await within(10_000, asked)
  expect(await servers.direct(master).exists(`lock:{${lease.key}}`)).toBe(1)
  expect(await lease.release()).toBe(true)
})

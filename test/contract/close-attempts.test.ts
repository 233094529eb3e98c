/** Tests `close` while the first attempt of a call is under way. */
import { expect, test } from 'vitest'
import { type LockClient, LockClosedError } from '../../src/index.ts'
import { promptly, rejection } from '../kit/outcomes.ts'
import { place } from '../kit/place.ts'
import { client, freshKey } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

test.each<[string, (locks: LockClient, key: string) => Promise<unknown>]>([
  ['tryLock', (locks, key) => locks.tryLock(key)],
  ['tryLock, fair', (locks, key) => locks.tryLock(key, { fair: true })],
  ['lock without patience', (locks, key) => locks.lock(key, { timeout: 0 })],
  ['lock of a named owner', (locks, key) => locks.lock(key, { owner: 'me' })],
])('I7: close releases a lock that the first attempt of a call was granted: %s', async (_, call) => {
  const { source, proxy } = await place().proxied()
  const [locks, other] = [client({}, source), client()]
  const key = freshKey()
  // Make one grant first, so that Redis knows the script and the client is connected.
  await (await locks.lock(key)).release()
  proxy.hold('down')
  const outcome = rejection(call(locks, key), LockClosedError)
  await eventually(() => other.isLocked(key))
  const closed = locks.close()
  await promptly(outcome)
  proxy.heal()
  await promptly(closed)
  expect(await other.isLocked(key)).toBe(false)
})

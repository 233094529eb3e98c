/** The message of a grant that was taken away by force arrives after the heartbeat that was granted the lock anew. */
import { expect, test } from 'vitest'
import { client, freshKey } from '../support/redis.ts'
import { eventually } from '../support/time.ts'
import { clientBehindProxy, parkQuietly, within } from './support/steps.ts'

// Break: `const older = lease.fencingToken < token` to `const older = false` in
// src/lease/holding.ts: the lease lives on with the old token, renewed by the grant that came after it.
test('I2 I8: a lease with the old token is lost, and the new grant goes back', async () => {
  const key = freshKey()
  const { locks, proxy } = await clientBehindProxy({ waiterTtl: 900 })
  const other = client()
  const held = await other.lock(key)
  const { wait } = await parkQuietly(locks, key, { fair: true })
  const asked = proxy.rule({ direction: 'up', name: 'tend' }, 'hold')
  const answered = proxy.rule({ direction: 'down', name: 'tend' }, 'hold')
  const late = proxy.rule({ direction: 'down', name: 'handoff' }, 'hold')
  await held.release()
  await late.happened
  const { fencingToken: granted } = await other.inspect(key)
  expect(await other.forceRelease(key)).toBe(true)
  const between = await other.lock(key)
  await between.release()
  asked.lift()
  await answered.happened
  expect((await other.inspect(key)).fencingToken).toBeGreaterThan(between.fencingToken)

  late.lift()
  const lease = await within(5_000, wait)
  expect(lease.fencingToken).toBe(granted)
  answered.lift()
  await eventually(() => !lease.held)
  expect(locks.stats().lost).toBe(1)
  const next = await within(5_000, other.lock(key))
  expect(next.fencingToken).toBeGreaterThan(between.fencingToken)
})

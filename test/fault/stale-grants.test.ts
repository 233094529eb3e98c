/**
 * Tests late messages about revoked grants. A waiter's grant is revoked, and the waiter joins the queue again. The
 * message of the first grant arrives only after the waiter has got a second grant under the same id.
 */
import { expect } from 'vitest'
import type { LockClient } from '../../src/index.ts'
import { kinds } from '../kit/kinds.ts'
import { within } from '../kit/outcomes.ts'
import { parkQuietly } from '../kit/parking.ts'
import { plainRedis, test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

/** Ways to revoke a grant. A forced release sends a message to the client, and a deletion of the data sends none. */
const takings: Record<string, (other: LockClient, key: string, lock: string) => Promise<unknown>> = {
  'by forceRelease': (other, key) => other.forceRelease(key),
  'with the data of the lock': (_, __, lock) => plainRedis().del(lock),
}
/** The ways in which the waiter learns of the second grant. */
const tellings = ['reply', 'message'] as const
const stories = kinds.flatMap(each =>
  Object.keys(takings).flatMap(taking => tellings.map(telling => ({ ...each, taking, telling }))),
)

// This test fails if `s.token + 0 > known` becomes `false` in lua/mutex/renew.lua: the client renews the lease with the
// old token, because the later grant has the same id. It also fails if `this.#withdrawals.releaseLater(hold)` is
// removed in src/key/holds.ts: the new grant is never given back. It also fails if `else if (token !== undefined)
// hold.keeper.doubt(hold, token)` is removed in src/key/requests.ts: if the data of the lock is deleted and the new
// grant comes by a reply, the lease with the old token lasts until its next renewal. It also fails if `return
// this.keeper.onGrant(this, grant)` becomes `return true` in src/key/hold.ts: if the data of the lock is deleted and
// the new grant comes by a message, the lease with the old token lasts until its next renewal. It also fails if `if
// record:sub(1, TOKEN_END) + 0 > known then return GRANTED_ANEW end` is removed in lua/permits/renew.lua: the lease
// with the old token is confirmed.
test.for(stories)(
  'revoked $taking, granted again by $telling: I2 I8, the lease is lost, and the new grant is given back ($kind)',
  async ({ taking, telling, client, clientBehindProxy, nameOf }, { key }) => {
    const { locks, proxy } = await clientBehindProxy({ waiterTtl: 900 })
    const other = client()
    const held = await other.lock(key)
    const { lease: wait } = await parkQuietly(locks, key, { fair: true })
    const asked = proxy.rule({ direction: 'up', name: 'tend' }, 'hold')
    const answered = proxy.rule({ direction: 'down', name: 'tend' }, 'hold')
    const late = proxy.rule({ direction: 'down', name: 'handoff' }, 'hold')
    await held.release()
    await late.happened
    const { fencingToken: granted } = await other.inspect(key)
    await takings[taking]?.(other, key, nameOf(key))
    const between = await other.lock(key)
    // If the waiter's heartbeat arrives after `between` has been released, the reply to the heartbeat grants the lock.
    // If it arrives earlier, the waiter queues, and a message grants the lock when `between` is released.
    if (telling === 'reply') await between.release()
    asked.lift()
    await answered.happened
    if (telling === 'message') await between.release()
    expect((await other.inspect(key)).fencingToken).toBeGreaterThan(between.fencingToken)

    late.lift()
    const lease = await within(5_000, wait)
    expect(lease.fencingToken).toBe(granted)
    answered.lift()
    await eventually(() => !lease.held)
    expect(locks.stats().lost).toBe(1)
    const next = await within(5_000, other.lock(key))
    expect(next.fencingToken).toBeGreaterThan(between.fencingToken)
  },
)

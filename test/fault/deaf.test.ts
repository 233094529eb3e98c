/**
 * Tests a client that can send requests but receives no messages: its waiters must still get the lock, and the
 * outageTimeout of one call must not end another call.
 */
import { describe, expect, test } from 'vitest'
import { LockConnectionError } from '../../src/index.ts'
import { kindsAndWays } from '../kit/kinds.ts'
import { outcomeOf, within } from '../kit/outcomes.ts'
import { clientBehindProxy, type FrameProxy } from '../kit/proxies.ts'
import { freshKey } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const outages: Record<string, (proxy: FrameProxy) => unknown> = {
  'is half-open': proxy => proxy.halfOpen('up', 'messages'),
  async 'cannot be made'(proxy) {
    proxy.refuse()
    proxy.cut('messages')
    await eventually(() => proxy.connections('messages') === 0)
  },
}

describe.each(Object.entries(outages))('the connection for messages %s', (_, begin) => {
  // This test fails if `const timer = this.#clock.after(limit, ` becomes `const timer = this.#clock.after(60_000, ` in
  // src/key/requests.ts: until its subscription is confirmed, or a minute has passed, the waiter sends at most one
  // request.
  test.each(kindsAndWays)(
    'I4: new waiters are granted by their own requests ($kind, fair: $fair)',
    async ({ fair, client, clientBehindProxy }) => {
      // With this outageTimeout, the waiters are granted long before the client would give up a silent connection.
      const { locks, proxy } = await clientBehindProxy({ outageTimeout: 15_000, waiterTtl: 900 })
      const [free, key] = [freshKey('free'), freshKey()]
      const held = await client().lock(key)
      await begin(proxy)
      const waits = [locks.lock(free, { fair }), locks.lock(key, { fair })]
      await sleep(100)
      await held.release()
      for (const lease of await within(3_000, Promise.all(waits))) expect(lease.held).toBe(true)
    },
  )
})

// This test fails if `if (error.cause === undefined || isRefusal(error)) reject(error)` becomes `reject(error)` in
// src/key/requests.ts: the later call fails when the subscription that both calls share fails.
test('I6: a fair call outlasts an outage, although an earlier call has given up', async () => {
  const { locks, proxy } = await clientBehindProxy({ outageTimeout: 3_000, waiterTtl: 15_000 })
  proxy.refuse()
  proxy.cut()
  await eventually(() => proxy.connections() === 0)
  const first = outcomeOf(locks.lock(freshKey(), { fair: true }))
  await sleep(2_000)
  const second = outcomeOf(locks.lock(freshKey(), { fair: true }))
  expect((await within(3_000, first)).error).toBeInstanceOf(LockConnectionError)
  proxy.refuse(false)
  const { error, value } = await within(3_000, second)
  expect(error).toBeUndefined()
  expect(value?.held).toBe(true)
})

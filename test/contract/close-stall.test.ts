/** Tests close while the event loop is blocked for so long that the client cannot read the replies in time. */
import { expect } from 'vitest'
import { queueOf } from '../kit/parking.ts'

import { client, test } from '../kit/redis.ts'

// Closing a client with 50,000 waiters blocks its event loop for about 3 s. This test has only 50 waiters, so the test
// itself blocks the event loop for 3 s.
test('I7: all waiters have left, however long the event loop was blocked meanwhile', async ({ own, key }) => {
  const [holder, locks] = [client({}, own.source()), client({ waiterTtl: 60_000 }, own.source())]
  await holder.lock(key)
  const waiting = Promise.allSettled(Array.from({ length: 50 }, () => locks.lock(key, { fair: true })))
  await queueOf(holder, key, 50)
  // After a callback of `setImmediate`, the event loop first runs due timers, and then reads from sockets. So the test
  // calls `close` right after such a callback. When the 3 s are over, the timers of `close` fire before any reply is
  // read.
  await new Promise(resolve => setImmediate(resolve))
  const closed = locks.close()
  const end = performance.now() + 3_000
  while (performance.now() < end);
  await closed
  expect((await holder.inspect(key)).waiters).toEqual([])
  await waiting
})

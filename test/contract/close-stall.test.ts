/** Tests close while the event loop is blocked for so long that the client cannot read the replies in time. */
import { expect, test } from 'vitest'
import { queueOf } from '../kit/parking.ts'
import { ownPlace } from '../kit/place.ts'
import { client, freshKey } from '../kit/redis.ts'

// When 50,000 waiters leave, that blocks the event loop for about 3 s. This test makes only 50 waiters leave, and
// blocks the event loop for that time by a busy loop.
test('I7: all waiters have left, however long the event loop was blocked meanwhile', async () => {
  const own = await ownPlace()
  const [holder, locks] = [client({}, own.source()), client({ waiterTtl: 60_000 }, own.source())]
  const key = freshKey()
  await holder.lock(key)
  const waiting = Promise.allSettled(Array.from({ length: 50 }, () => locks.lock(key, { fair: true })))
  await queueOf(holder, key, 50)
  // After a callback of `setImmediate`, the event loop runs due timers before it reads from sockets. So the test calls
  // `close` in such a callback.
  await new Promise(resolve => setImmediate(resolve))
  const closed = locks.close()
  const end = performance.now() + 3_000
  while (performance.now() < end);
  await closed
  expect((await holder.inspect(key)).waiters).toEqual([])
  await waiting
})

/** Tests close while the event loop is blocked for so long that the client cannot read the replies in time. */
import { expect, test } from 'vitest'
import { queueOf } from '../kit/parking.ts'
import { ownPlace } from '../kit/place.ts'
import { client, freshKey } from '../kit/redis.ts'

// The test blocks the event loop for as long as 50,000 waiters would, without creating them.
test('I7: all waiters have left, however long the event loop was blocked meanwhile', async () => {
  const own = await ownPlace()
  const [holder, locks] = [client({}, own.source()), client({ waiterTtl: 60_000 }, own.source())]
  const key = freshKey()
  await holder.lock(key)
  const waiting = Promise.allSettled(Array.from({ length: 50 }, () => locks.lock(key, { fair: true })))
  await queueOf(holder, key, 50)
  // From here on, the event loop runs due timers before it reads from sockets.
  await new Promise(resolve => setImmediate(resolve))
  const closed = locks.close()
  const end = performance.now() + 3_000
  while (performance.now() < end);
  await closed
  expect((await holder.inspect(key)).waiters).toEqual([])
  await waiting
})

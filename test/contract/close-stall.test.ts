/** `close` of a client with so much to give back that its own process cannot read the answers in time. */
import { expect, test } from 'vitest'
import { queueOf } from '../kit/parking.ts'
import { ownPlace } from '../kit/place.ts'
import { client, freshKey } from '../kit/redis.ts'

// Blocks the event loop for as long as 50,000 waiters would, without creating them.
test('I7: all waiters have left, however long the event loop was blocked meanwhile', async () => {
  const own = await ownPlace()
  const [holder, locks] = [client({}, own.source()), client({ waiterTtl: 60_000 }, own.source())]
  const key = freshKey()
  await holder.lock(key)
  const waiting = Promise.allSettled(Array.from({ length: 50 }, () => locks.lock(key, { fair: true })))
  await queueOf(holder, key, 50)
  // From here on, the event loop runs timers before it reads from sockets.
  await new Promise(resolve => setImmediate(resolve))
  const closed = locks.close()
  const end = performance.now() + 3_000
  while (performance.now() < end);
  await closed
  expect((await holder.inspect(key)).waiters).toEqual([])
  await waiting
})

/** I1: the server's clock stands back for a moment, and is then set right. */
import { expect, test } from 'vitest'
import { client, freshKey } from '../support/redis.ts'
import { sleep } from '../support/time.ts'
import { steppedServer } from './support/stepped-server.ts'

/**
 * While the clock stands back by a minute, a lease seems to last for a minute more. A holder that planned its next
 * renewal by that would ask long after the clock was right again and its lease had lapsed.
 *
 * Fails without the bound of a third of the length in `Renewal.#learn`: then both hold, for as long as the step.
 */
test('a holder that is renewed goes on asking at its own pace, and keeps the lock', async () => {
  const { url, step } = await steppedServer()
  const [holder, other] = [client({ lease: 1_500 }, url), client({ lease: 1_500, waiterTtl: 900 }, url)]
  const key = freshKey()
  const lease = await holder.lock(key)
  await step(-60_000)
  await sleep(700) // one automatic renewal at least
  await step(0)

  const second = await other.tryLock(key, { fair: true, timeout: 4_000 })
  expect([lease.held, second]).toEqual([true, null])
})

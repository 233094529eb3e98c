/**
 * Tests that the client sends all requests of one turn of the event loop in a few writes. Each write costs the client
 * and the server a system call.
 */
import { expect, test } from 'vitest'
import { client, ownServer, plainRedis } from '../../kit/redis.ts'

const CALLS = 1_000

test('a thousand lock calls of one turn, and then their releases, reach the server in few reads', async () => {
  const { url } = await ownServer()
  const [admin, locks] = [plainRedis(url), client({}, url)]
  await (await locks.lock('first')).release()
  const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await admin.info('stats'))![1])

  const before = await reads()
  const leases = await Promise.all(Array.from({ length: CALLS }, (_, i) => locks.lock(`key:${i}`)))
  const between = await reads()
  expect(await Promise.all(leases.map(lease => lease.release()))).toEqual(leases.map(() => true))
  const after = await reads()
  expect(Math.max(between - before, after - between)).toBeLessThan(CALLS / 10)
})

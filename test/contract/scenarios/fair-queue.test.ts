/** Tests that all fair waiters are served in the order in which they joined the queue (I3), however long they wait. */
import { expect, test } from 'vitest'
import type { Lease } from '../../../src/index.ts'
import { park, parkMany } from '../../kit/parking.ts'
import { client, freshKey, nothingLeft, plainRedis } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'

/** Releases each lease as soon as it is granted. Returns the leases in the order of their grants. */
async function serve(waits: Promise<Lease>[]): Promise<Lease[]> {
  const served: Lease[] = []
  await Promise.all(
    waits.map(async wait => {
      const lease = await wait
      served.push(lease)
      await lease.release()
    }),
  )
  return served
}

test('500 fair waiters of one client are all served, in order', async () => {
  const key = freshKey()
  const locks = client()
  const first = await locks.lock(key)
  const waits = await parkMany(locks, key, 500, { fair: true })
  await first.release()
  const served = await serve(waits)
  expect(served).toEqual(await Promise.all(waits))
  await nothingLeft(plainRedis(), locks, key)
})

test('500 fair waiters of five clients are all served, in the order of the queue', async () => {
  const key = freshKey()
  const clients = Array.from({ length: 5 }, () => client())
  const first = await client().lock(key)
  const waits: Promise<Lease>[] = []
  for (let round = 0; round < 20; round++) {
    for (const locks of clients) waits.push(...(await parkMany(locks, key, 5, { fair: true })))
  }
  const queue = (await clients[0]!.inspect(key)).waiters.map(({ id }) => id)
  await first.release()
  const served = await serve(waits)
  expect(served.map(({ id }) => id)).toEqual(queue)
  expect(queue).toEqual((await Promise.all(waits)).map(({ id }) => id))
  const tokens = served.map(({ fencingToken }) => fencingToken)
  expect(tokens).toEqual([...tokens].sort((a, b) => a - b))
})

test('a waiter that waits longer than waiterTtl keeps its place while its process lives', async () => {
  const key = freshKey()
  const waiterTtl = 800
  const first = await client().lock(key)
  const { lease: old } = await park(client({ waiterTtl }), key, { fair: true })
  await sleep(3.5 * waiterTtl)
  const { lease: young } = await park(client(), key, { fair: true })
  expect((await client().inspect(key)).waiters).toHaveLength(2)

  const order: string[] = []
  const note = (name: string) => async (lease: Lease) => {
    order.push(name)
    await lease.release()
  }
  await first.release()
  await Promise.all([old.then(note('old')), young.then(note('young'))])
  expect(order).toEqual(['old', 'young'])
})

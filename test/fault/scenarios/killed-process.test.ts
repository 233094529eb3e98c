/** Waiters of a process that was killed cost the others nothing: the next release passes them over (I4, I7). */
import { expect, test } from 'vitest'
import { within } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { client, freshKey, nothingLeft, plainRedis } from '../../kit/redis.ts'
import { Agent } from './agent.ts'

/** Far more than a test lasts, so that no expiry of a waiter can be what lets the next one through. */
const options = { waiterTtl: 60_000, lease: 60_000 }

test.each([1, 50])(
  'the next is granted at the very release after a process at the head died, with %i waiters',
  async count => {
    const key = freshKey()
    const locks = client(options)
    const held = await locks.lock(key)
    const agent = new Agent(options)
    await agent.queue(key, count, { fair: true })
    const { lease: wait } = await park(client(options), key, { fair: true })
    expect((await locks.inspect(key)).waiters).toHaveLength(count + 1)

    await agent.kill()
    await held.release()
    const value = await within(1_000, wait)
    expect(value.via).toBe('handoff')
    expect((await locks.inspect(key)).waiters).toEqual([])
    expect(await value.release()).toBe(true)
    await nothingLeft(plainRedis(), locks, key)
  },
)

test('an unfair caller gets the lock at once when all that were queued have died', async () => {
  const key = freshKey()
  const held = await client(options).lock(key)
  const agent = new Agent(options)
  await agent.queue(key, 50, { fair: true })
  await agent.kill()
  await held.release()
  const value = await within(1_000, client(options).lock(key))
  expect(await value.release()).toBe(true)
})

test('dead waiters between living ones are passed over, and the living keep their order', async () => {
  const key = freshKey()
  const held = await client(options).lock(key)
  const doomed = [new Agent(options), new Agent(options)]
  const waits = []
  for (const agent of doomed) {
    waits.push((await park(client(options), key, { fair: true })).lease)
    await agent.queue(key, 5, { fair: true })
  }
  waits.push((await park(client(options), key, { fair: true })).lease)
  await Promise.all(doomed.map(agent => agent.kill()))

  const order: number[] = []
  const served = waits.map(async (wait, i) => {
    const lease = await wait
    order.push(i)
    await lease.release()
  })
  await held.release()
  await within(1_000, Promise.all(served))
  expect(order).toEqual([0, 1, 2])
})

/** A Redis that comes back empty: waiters queue again in their old order, tokens go on, and who held is told (I2, I3, I8). */
import { expect, test } from 'vitest'
import { LockLostError } from '../../../src/index.ts'
import { park } from '../../kit/parking.ts'
import { client, freshKey, ownServer } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'
import { Agent } from './agent.ts'

test('fair waiters of two clients keep their order over a restart without data', { timeout: 40_000 }, async () => {
  const server = await ownServer()
  const key = freshKey()
  const [holder, ...clients] = [client({}, server.url), client({}, server.url), client({}, server.url)]
  const held = await holder!.lock(key)
  const { signal } = held
  const back = clients.map(locks => new Promise(resolve => locks.once('reconnected', resolve)))

  const granted: { place: number; token: number }[] = []
  const places = 8
  let hold = true
  const served: Promise<void>[] = []
  for (let place = 0; place < places; place++) {
    const { lease: wait } = await park(clients[place % 2]!, key, { fair: true })
    served.push(
      wait.then(async lease => {
        granted.push({ place, token: lease.fencingToken })
        await eventually(() => !hold, 20_000)
        await lease.release()
      }),
    )
  }

  await server.restart()
  await eventually(() => signal.aborted, 5_000)
  expect(signal.reason).toBeInstanceOf(LockLostError)
  expect(held.held).toBe(false)
  expect(await held.release()).toBe(false)

  // One of the two is back first, and its first waiter gets the lock; by the time it releases, all have joined again, and
  // both clients hear: one whose commands get through before its messages do would be passed over, and join once more.
  await Promise.all(back)
  await eventually(async () => (await holder!.inspect(key)).waiters.length === places - 1, 10_000)
  hold = false
  await Promise.all(served)
  const [first = -1, ...rest] = granted.map(({ place }) => place)
  expect([0, 1]).toContain(first)
  expect(rest).toEqual([0, 1, 2, 3, 4, 5, 6, 7].filter(place => place !== first))
  const tokens = [held.fencingToken, ...granted.map(({ token }) => token)]
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
})

test('fair waiters of one client keep their order, and unfair ones are served, too', { timeout: 40_000 }, async () => {
  const server = await ownServer()
  const key = freshKey()
  const [holder, fair, unfair] = [client({}, server.url), client({}, server.url), client({}, server.url)]
  await holder.lock(key)
  const order: string[] = []
  const served: Promise<void>[] = []
  for (const name of ['1', '2', '3', '4']) {
    const { lease: wait } = await park(fair, key, { fair: true })
    served.push(
      wait.then(async lease => {
        order.push(name)
        await lease.release()
      }),
    )
  }
  const { lease: wait } = await park(unfair, key)
  await server.restart()
  await Promise.all([...served, wait.then(lease => lease.release())])
  expect(order).toEqual(['1', '2', '3', '4'])
})

test('the holder in another process is told, and the next token is larger', { timeout: 40_000 }, async () => {
  const server = await ownServer()
  const key = freshKey()
  const agent = new Agent({ url: server.url })
  const hold = await agent.lock(key)
  await server.restart()
  const lease = await client({}, server.url).lock(key)
  expect(lease.fencingToken).toBeGreaterThan(hold.token)
  await eventually(async () => (await agent.state(hold.id)).aborted, 5_000)
  expect(await agent.state(hold.id)).toEqual({ held: false, aborted: true })
  expect(await agent.release(hold.id)).toBe(false)
  expect(lease.held).toBe(true)
})

/** Tests that calls and waiters survive a server that crashes and restarts without its data. */
import { expect } from 'vitest'
import { LockConnectionError } from '../../src/index.ts'
import { rejection } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'

import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { expectIncreasing } from '../kit/witness.ts'

test('calls made during the outage succeed afterwards', async ({ own }) => {
  const locks = client({}, own.source())
  await locks.isLocked(freshKey())
  await own.kill()
  const patient = { timeout: 15_000 }
  const calls = [locks.lock(freshKey()), locks.lock(freshKey(), { fair: true }), locks.tryLock(freshKey(), patient)]
  const state = locks.inspect(freshKey())
  await sleep(300)
  await own.restart()
  for (const lease of await Promise.all(calls)) expect(lease?.held).toBe(true)
  expect((await state).locked).toBe(false)
})

test('a client can be created before its server runs', async ({ own }) => {
  await own.kill()
  const lease = client({}, own.source()).lock(freshKey())
  await sleep(300)
  await own.restart()
  expect((await lease).held).toBe(true)
})

test('I4: waiters survive a restart that loses all data, and are granted', async ({ own }) => {
  const [holder, fair, unfair] = [1, 2, 3].map(() => client({}, own.source()))
  const [a, b] = [freshKey('a'), freshKey('b')]
  const leases = [await holder!.lock(a), await holder!.lock(b)]
  const queued = await park(fair!, a, { fair: true })
  const parked = await park(unfair!, b)
  await own.restart()
  expect((await queued.lease).fencingToken).toBeGreaterThan(leases[0]!.fencingToken)
  expect((await parked.lease).fencingToken).toBeGreaterThan(leases[1]!.fencingToken)
})

test('I3: fair waiters of several clients keep their order across the restart', async ({ own, key }) => {
  const all = [1, 2, 3, 4].map(() => client({}, own.source()))
  await all[0]!.lock(key, { renew: false })
  // All clients must have reconnected before the first release. Otherwise Redis would pass over a client that cannot
  // receive messages yet, and the waiters of that client would have to join the queue again.
  const back = Promise.all(all.map(locks => new Promise(resolve => locks.once('reconnected', resolve))))
  const order: number[] = []
  const served: Promise<unknown>[] = []
  for (let i = 1; i <= 6; i++) {
    const { lease } = await park(all[1 + (i % 3)]!, key, { fair: true })
    served.push(
      lease.then(async each => {
        // The first client that reconnects takes the lock for its first waiter. That waiter keeps the lock until all
        // other waiters have joined the queue again.
        if (order.push(i) === 1) {
          await back
          await sleep(1_500)
        }
        await each.release()
      }),
    )
  }
  await own.restart()
  await Promise.all(served)
  expect(order).toHaveLength(6)
  expect(order.slice(1)).toEqual([...order.slice(1)].sort())
})

test('a client is usable again after an outage that was longer than its outageTimeout', async ({ own }) => {
  const locks = client({ outageTimeout: 500 }, own.source())
  await own.kill()
  await rejection(locks.lock(freshKey()), LockConnectionError)
  await own.restart()
  const lease = await eventually(() => locks.lock(freshKey()).catch(() => undefined))
  expect(lease?.held).toBe(true)
})

test('I2: tokens rise across FLUSHALL and a restart with empty data', async ({ own, key }) => {
  const locks = client({}, own.source())
  const first = await locks.lock(key)
  await own.admin().each(redis => redis.flushall())
  const second = await locks.lock(key)
  await own.restart()
  const third = await locks.lock(key, { timeout: 15_000 })
  expectIncreasing([first, second, third].map(lease => lease.fencingToken))
})

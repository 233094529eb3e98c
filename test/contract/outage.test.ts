/** A Redis out of reach: how long calls wait for it, and that they survive a short outage. */
import { beforeAll, describe, expect, test } from 'vitest'
import { LockClient, LockConnectionError } from '../../src/index.ts'
import { FaultProxy } from '../support/proxy.ts'
import { client, freshKey, ownServer, redisUrl } from '../support/redis.ts'
import { eventually, sleep } from '../support/time.ts'
import { collect, deadUrl, park, promptly, queueUp, rejection } from './support.ts'

/** A call of a client with the default patience, begun before all other tests because it takes so long. */
let defaultPatience: Promise<number>

beforeAll(async () => {
  const locks = new LockClient(await deadUrl())
  const begin = performance.now()
  const call = rejection(locks.lock(freshKey()), LockConnectionError)
  defaultPatience = call.then(() => performance.now() - begin).finally(() => locks.close())
  defaultPatience.catch(() => {})
})

describe('outageTimeout', () => {
  test('I6: every call rejects with LockConnectionError after it, not before', async () => {
    const locks = client({ outageTimeout: 500 }, await deadUrl())
    const key = freshKey()
    const calls: Record<string, () => PromiseLike<unknown>> = {
      lock: () => locks.lock(key),
      'fair lock': () => locks.lock(key, { fair: true }),
      'lock with a longer timeout': () => locks.lock(key, { timeout: 60_000 }),
      tryLock: () => locks.tryLock(key),
      'tryLock with timeout': () => locks.tryLock(key, { timeout: 60_000 }),
      using: () => locks.using(key, () => 'ran'),
      wrap: () => locks.wrap(key, async () => 'ran')(),
      inspect: () => locks.inspect(key),
      isLocked: () => locks.isLocked(key),
      forceRelease: () => locks.forceRelease(key),
    }
    await Promise.all(
      Object.entries(calls).map(async ([name, call]) => {
        const begin = performance.now()
        const error = await rejection(call(), LockConnectionError)
        const waited = performance.now() - begin
        expect([name, error.key]).toEqual([name, key])
        expect([name, (error.cause as NodeJS.ErrnoException).code]).toEqual([name, 'ECONNREFUSED'])
        expect(waited).toBeGreaterThanOrEqual(480)
        expect(waited).toBeLessThan(4_000)
      }),
    )
    await promptly(rejection(collect(locks.list()), LockConnectionError))
  })

  test('I6: a server that is there but does not answer is an outage, too', async () => {
    const proxy = await FaultProxy.before(redisUrl())
    const locks = client({ outageTimeout: 600 }, proxy.url)
    const key = freshKey()
    await locks.isLocked(key)
    proxy.swallow('down')
    const calls = [locks.lock(key), locks.lock(key, { fair: true }), locks.tryLock(key)]
    const errors = await promptly(
      Promise.all(calls.map((call: Promise<unknown>) => rejection(call, LockConnectionError))),
    )
    for (const error of errors) expect(error).toMatchObject({ key, cause: expect.any(Error) })
    proxy.heal()
    expect((await client().lock(key, { timeout: 15_000 })).held).toBe(true)
  })

  test('I6: bounds parked and queued waiters, too, from when Redis went', async () => {
    const server = await ownServer()
    const [holder, locks] = [client({}, server.url), client({ outageTimeout: 500 }, server.url)]
    const key = freshKey()
    await holder.lock(key)
    const calls = [(await park(locks, key)).lease, (await queueUp(locks, key, 1)).lease]
    await sleep(800)
    expect(locks.stats().waiting).toBe(2)
    await server.kill()
    await promptly(Promise.all(calls.map(call => rejection(call, LockConnectionError))))
    expect(locks.stats().waiting).toBe(0)
  })

  test('a client is usable again afterwards', async () => {
    const server = await ownServer()
    const locks = client({ outageTimeout: 500 }, server.url)
    await server.kill()
    await rejection(locks.lock(freshKey()), LockConnectionError)
    await server.restart()
    const lease = await eventually(() => locks.lock(freshKey()).catch(() => undefined))
    expect(lease?.held).toBe(true)
  })
})

describe('a short outage', () => {
  test('I4, I6: a connection whose greeting is never answered is made anew', async () => {
    const proxy = await FaultProxy.before(redisUrl())
    const [locks, other] = [client({ outageTimeout: 1_000 }, proxy.url), client()]
    const key = freshKey()
    await locks.isLocked(key)
    proxy.swallow('down')
    proxy.cut()
    await sleep(500)
    proxy.heal()
    const lease = await eventually(() => locks.tryLock(key).catch(() => undefined), 15_000)
    expect(lease?.held).toBe(true)
    const queued = await queueUp(locks, key, 1)
    await lease?.release()
    await (await promptly(queued.lease)).release()
    expect((await other.tryLock(key))?.held).toBe(true)
  })

  test('calls begun in it succeed when it is over', async () => {
    const server = await ownServer()
    const locks = client({}, server.url)
    await locks.isLocked(freshKey())
    await server.kill()
    const calls = [locks.lock(freshKey()), locks.lock(freshKey(), { fair: true }), locks.tryLock(freshKey())]
    const state = locks.inspect(freshKey())
    await sleep(300)
    await server.restart()
    for (const lease of await Promise.all(calls)) expect(lease?.held).toBe(true)
    expect((await state).locked).toBe(false)
  })

  test('a client may be made before its server is there', async () => {
    const server = await ownServer()
    await server.kill()
    const lease = client({}, server.url).lock(freshKey())
    await sleep(300)
    await server.restart()
    expect((await lease).held).toBe(true)
  })

  test('I4: waiters survive a restart that loses all data, and are granted', async () => {
    const server = await ownServer()
    const [holder, fair, unfair] = [1, 2, 3].map(() => client({}, server.url))
    const [a, b] = [freshKey('a'), freshKey('b')]
    const leases = [await holder!.lock(a), await holder!.lock(b)]
    const queued = await queueUp(fair!, a, 1)
    const parked = await park(unfair!, b)
    await server.restart()
    expect((await queued.lease).fencingToken).toBeGreaterThan(leases[0]!.fencingToken)
    expect((await parked.lease).fencingToken).toBeGreaterThan(leases[1]!.fencingToken)
  })

  test('I3: fair waiters of several clients keep their order over it', async () => {
    const server = await ownServer()
    const all = [1, 2, 3, 4].map(() => client({}, server.url))
    const key = freshKey()
    await all[0]!.lock(key, { lease: 60_000 })
    const order: number[] = []
    const served: Promise<unknown>[] = []
    for (let i = 1; i < 4; i++) {
      const { lease } = await queueUp(all[i]!, key, i)
      served.push(
        lease.then(async each => {
          order.push(i)
          await sleep(1_500)
          await each.release()
        }),
      )
    }
    await server.restart()
    await Promise.all(served)
    expect(order).toHaveLength(3)
    expect(order.slice(1)).toEqual([...order.slice(1)].sort())
  })
})

test('outageTimeout is 15 s by default', async () => {
  const waited = await defaultPatience
  expect(waited).toBeGreaterThanOrEqual(14_900)
  expect(waited).toBeLessThan(25_000)
}, 30_000)

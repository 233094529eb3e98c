/** Tests how long calls wait while Redis is out of reach, and that they survive a short outage. */
import { beforeAll, describe, expect } from 'vitest'
import { LockClient, LockConnectionError, LockTimeoutError } from '../../src/index.ts'
import { collect, promptly, rejection } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { expectNobodyThere, reasonsOf } from './refused.ts'

/** Time in ms that a call with the default outageTimeout takes. The call is slow, so it starts before all tests. */
let defaultPatience: Promise<number>

beforeAll(async () => {
  const locks = new LockClient(place().sourceToNobody())
  const begin = performance.now()
  const call = rejection(locks.lock(freshKey()), LockConnectionError)
  defaultPatience = call.then(() => performance.now() - begin).finally(() => locks.close())
  defaultPatience.catch(() => {})
})

describe('outageTimeout', () => {
  test('I6: every call rejects with LockConnectionError after outageTimeout, not before', async ({ key }) => {
    const locks = client({ outageTimeout: 500 }, place().sourceToNobody())
    const calls: Record<string, () => PromiseLike<unknown>> = {
      lock: () => locks.lock(key),
      'fair lock': () => locks.lock(key, { fair: true }),
      'lock with a longer timeout': () => locks.lock(key, { timeout: 60_000 }),
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
        expectNobodyThere(error)
        expect(waited).toBeGreaterThanOrEqual(480)
        expect(waited).toBeLessThan(4_000)
      }),
    )
    await promptly(rejection(collect(locks.list()), LockConnectionError))
  })

  test('I6: a server that accepts connections but does not answer is an outage, too', async ({ key }) => {
    const { source, proxy } = await place().proxied()
    const locks = client({ outageTimeout: 600 }, source)
    // Connect before the simulated outage. On a busy machine, connecting may take longer than the outage.
    await eventually(() =>
      locks.isLocked(key).then(
        () => true,
        () => false,
      ),
    )
    proxy.swallow('down')
    const calls = [locks.lock(key), locks.lock(key, { fair: true }), locks.tryLock(key)]
    const errors = await promptly(
      Promise.all(calls.map((call: Promise<unknown>) => rejection(call, LockConnectionError))),
    )
    for (const error of errors) expect(error).toMatchObject({ key, cause: expect.any(Error) })
    proxy.heal()
    expect((await client().lock(key, { timeout: 15_000 })).held).toBe(true)
  })

  test('I6: bounds parked and queued waiters, too, counted from the start of the outage', async ({ own, key }) => {
    const [holder, locks] = [client({}, own.source()), client({ outageTimeout: 500 }, own.source())]
    await holder.lock(key)
    const calls = [(await park(locks, key)).lease, (await park(locks, key, { fair: true })).lease]
    await sleep(800)
    expect(locks.stats().waiting).toBe(2)
    await own.kill()
    await promptly(Promise.all(calls.map(call => rejection(call, LockConnectionError))))
    expect(locks.stats().waiting).toBe(0)
  })
})

describe('tryLock reports that Redis is out of reach, and not that the lock is held', () => {
  const single: Record<string, (locks: LockClient, key: string) => Promise<unknown>> = {
    'tryLock without timeout': (locks, key) => locks.tryLock(key),
    'tryLock with timeout 0': (locks, key) => locks.tryLock(key, { timeout: 0 }),
    'lock with timeout 0': (locks, key) => locks.lock(key, { timeout: 0 }),
  }

  test.each(Object.keys(single))('%s: at once if the connection is known to be down', async name => {
    const locks = client({}, place().sourceToNobody())
    await new Promise(resolve => locks.once('disconnected', resolve))
    const key = freshKey()
    const attempt = () => promptly(rejection(single[name]?.(locks, key) as Promise<unknown>, LockConnectionError))
    expect((await attempt()).key).toBe(key)
    expect(locks.stats()).toMatchObject({ failed: 1, refused: 0, timedOut: 0, waiting: 0 })
    // The first error of a cluster client may lack the reason, because the client notices that the connection is down
    // before it knows why. So the call is repeated until its error has the reason.
    await eventually(async () => {
      const reasons = reasonsOf(await attempt())
      return place().bySentinels || reasons.every(({ code }) => code === 'ECONNREFUSED')
    })
    expectNobodyThere(await attempt())
  })

  test.each(Object.keys(single))('%s: soon if nothing answers, long before outageTimeout', async name => {
    const { source, proxy } = await place().proxied()
    proxy.hold('down')
    const locks = client({}, source)
    const begin = performance.now()
    await promptly(rejection(single[name]?.(locks, freshKey()) as Promise<unknown>, LockConnectionError))
    expect(performance.now() - begin).toBeGreaterThan(900)
    proxy.heal()
  })

  test('with timeout: after the timeout, with the socket’s error; in the error of lock this is the cause', async () => {
    const locks = client({}, place().sourceToNobody())
    const key = freshKey()
    for (const options of [{ timeout: 300 }, { timeout: 300, fair: true }]) {
      const begin = performance.now()
      const error = await promptly(rejection(locks.tryLock(key, options), LockConnectionError))
      expect(performance.now() - begin).toBeGreaterThan(280)
      expect(error.key).toBe(key)
      expectNobodyThere(error)
      const late = await promptly(rejection(locks.lock(key, options), LockTimeoutError))
      expect(late.message).toMatch(/Redis has been out of reach for \d+ ms: |no majority /)
      expect(late.cause).toBeInstanceOf(Error)
    }
    expect(locks.stats()).toMatchObject({ failed: 2, timedOut: 2 })
  })

  test('with timeout: also behind a caller that was refused before the outage', async ({ own, key }) => {
    const [holder, locks] = [client({}, own.source()), client({}, own.source())]
    await holder.lock(key)
    const parked = (await park(locks, key, { fairAfter: 60_000 })).lease
    parked.catch(() => {})
    expect(await locks.tryLock(key, { timeout: 100 })).toBeNull()
    const down = new Promise(resolve => locks.once('disconnected', resolve))
    await own.kill()
    await down
    await promptly(rejection(locks.tryLock(key, { timeout: 200 }), LockConnectionError))
  })
})

describe('a short outage', () => {
  test('I4, I6: a connection whose greeting is never answered is replaced', async ({ key }) => {
    const { source, proxy } = await place().proxied()
    const [locks, other] = [client({ outageTimeout: 1_000 }, source), client()]
    await locks.isLocked(key)
    proxy.swallow('down')
    proxy.cut()
    await sleep(500)
    proxy.heal()
    const lease = await eventually(() => locks.tryLock(key).catch(() => undefined), 15_000)
    expect(lease?.held).toBe(true)
    const queued = await park(locks, key, { fair: true })
    await lease?.release()
    await (await promptly(queued.lease)).release()
    expect((await other.tryLock(key))?.held).toBe(true)
  })
})

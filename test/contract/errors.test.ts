/** Tests every error class: its name, code, key, cause and further fields. */
import { describe, expect } from 'vitest'
import {
  LockArgumentError,
  type LockClient,
  LockClosedError,
  LockConnectionError,
  LockError,
  LockLostError,
  LockTimeoutError,
} from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { aborted, collect, reasonOf, rejection } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { ownPlace, place } from '../kit/place.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { expectNobodyThere } from './refused.ts'

const classes = { LockTimeoutError, LockLostError, LockConnectionError, LockClosedError, LockArgumentError }

/** Makes one error of each class, as a caller receives it. `hasKey` tells whether the error names a key. */
const specimens: Record<string, { code: string; make: (key: string) => Promise<unknown>; hasKey: boolean }> = {
  LockTimeoutError: {
    code: 'ERR_LOCK_TIMEOUT',
    hasKey: true,
    async make(key) {
      await client().lock(key)
      return reasonOf(client().lock(key, { timeout: 20 }))
    },
  },
  LockLostError: {
    code: 'ERR_LOCK_LOST',
    hasKey: true,
    make: key => reasonOf(client().using(key, { lease: 200 }, () => sleep(300))),
  },
  LockConnectionError: {
    code: 'ERR_LOCK_CONNECTION',
    hasKey: true,
    make: async key => reasonOf(client({ outageTimeout: 300 }, place().sourceToNobody()).lock(key)),
  },
  LockClosedError: {
    code: 'ERR_LOCK_CLOSED',
    hasKey: true,
    async make(key) {
      const locks = client()
      await locks.close()
      return reasonOf(locks.lock(key))
    },
  },
  LockArgumentError: {
    code: 'ERR_LOCK_ARGUMENT',
    hasKey: false,
    make: key => reasonOf(client().lock(key, { lease: -1 })),
  },
}

describe.each(Object.entries(specimens))('%s', (name, { code, make, hasKey }) => {
  test('is a LockError and an Error, with its name, code, key and message', async ({ key }) => {
    const error = (await make(key)) as LockError
    expect(error).toBeInstanceOf(Error)
    expect(error).toBeInstanceOf(LockError)
    expect(error.name).toBe(name)
    expect(error.code).toBe(code)
    expect(error.message).not.toBe('')
    if (hasKey) expect(error.key).toBe(key)
    expect(`${error}`).toBe(`${name}: ${error.message}`)
    expect(error.stack).toContain(name)
    const claimed = Object.entries(classes).filter(([, each]) => error instanceof each)
    expect(claimed.map(([each]) => each)).toEqual([name])
  })
})

/**
 * Options that keep a waiter unfair for its whole wait. With the default `fairAfter` of 1 s, a waiter with a time-out
 * of 1 s may have just joined the queue, and its error then has a position.
 */
const unfair = { fairAfter: Number.POSITIVE_INFINITY }

describe('LockTimeoutError', () => {
  test.for(kindsHere)('of an unfair waiter: waited and holder, no position ($kind)', async ({ client }, { key }) => {
    const [holder, waiter] = [client({ label: 'the holder' }), client()]
    await holder.lock(key)
    await waiter.isLocked(key)
    await sleep(100)
    const error = await rejection(waiter.lock(key, { timeout: 1_000, ...unfair }), LockTimeoutError)
    expect(error.waited).toBeGreaterThanOrEqual(1_000)
    expect(error.waited).toBeLessThan(10_000)
    expect(error.holder).toEqual({ label: 'the holder', heldFor: expect.any(Number) })
    expect(error.holder!.heldFor).toBeGreaterThanOrEqual(95)
    expect(error.holder!.heldFor).toBeLessThan(10_000)
    expect(error.position).toBeUndefined()
    expect(error.message).toContain(key)
    expect(error.message).toContain('the holder')
  })

  test.for(['fair', 'unfair'])(
    'of a %s waiter: shows how long the lock has been held by now, not up to the last reply',
    async (way, { holder, waiter, key }) => {
      const lease = await holder.lock(key)
      const begin = performance.now()
      const call = waiter.lock(key, { timeout: 1_500, fair: way === 'fair', ...unfair })
      const error = await rejection(call, LockTimeoutError)
      expect(lease.held).toBe(true)
      expect(error.holder!.heldFor).toBeGreaterThanOrEqual(1_490)
      expect(error.holder!.heldFor).toBeLessThanOrEqual(performance.now() - begin + 1_000)
      expect(error.message).toContain(`for ${Math.round(error.holder!.heldFor)} ms`)
    },
  )

  test('of a waiter whose own client has taken the lock since the last reply: names that hold', async ({ key }) => {
    const [stranger, locks] = [client({ label: 'the stranger' }), client({ label: 'this client', waiterTtl: 60_000 })]
    const lease = await stranger.lock(key)
    const next = await park(locks, key, { fair: true })
    const { lease: last } = await park(locks, key, { fair: true, timeout: 4_000 })
    await sleep(300)
    await lease.release()
    await next.lease
    const taken = performance.now()
    const error = await rejection(last, LockTimeoutError)
    expect(error.holder?.label).toBe('this client')
    expect(error.holder!.heldFor).toBeLessThanOrEqual(performance.now() - taken + 100)
  })

  test('of a waiter whose own client has released the lock since the last reply: names no holder', async ({ key }) => {
    const [stranger, locks] = [client({ label: 'the stranger' }), client({ label: 'this client', waiterTtl: 60_000 })]
    const lease = await locks.lock(key)
    const next = await park(stranger, key, { fair: true })
    const { lease: last } = await park(locks, key, { fair: true, timeout: 4_000 })
    await lease.release()
    await next.lease
    const error = await rejection(last, LockTimeoutError)
    expect(error.holder).toBeUndefined()
    expect(error.message).not.toContain('held by')
  })

  test('of unfair waiters behind another of the same client: also waited and holder, no position', async ({ key }) => {
    const [holder, waiter] = [client({ label: 'the holder' }), client()]
    await holder.lock(key)
    await park(waiter, key)
    const calls = [1, 2].map(() => waiter.lock(key, { timeout: 1_000, ...unfair }))
    const errors = calls.map(call => rejection(call, LockTimeoutError))
    for (const error of await Promise.all(errors)) {
      expect(error.holder?.label).toBe('the holder')
      expect(error.position).toBeUndefined()
    }
  })

  test.each(kindsHere)('of fair waiters: waited, holder and position 1, 2, … ($kind)', async ({ client, clients }) => {
    const [holder, ...waiters] = [client({ label: 'the holder' }), ...clients(3)]
    const key = freshKey()
    await holder.lock(key)
    const calls = []
    for (const [i, waiter] of waiters.entries()) {
      const { lease } = await park(waiter, key, { fair: true, timeout: 1_500 - 100 * i })
      calls.push(rejection(lease, LockTimeoutError))
    }
    const errors = await Promise.all(calls)
    expect(errors.map(error => error.position)).toEqual([1, 2, 3])
    for (const error of errors) expect(error.holder?.label).toBe('the holder')
  })

  test('of a waiter that joined the queue by fairAfter: its position', async ({ holder, waiter, key }) => {
    await holder.lock(key)
    const error = await rejection(waiter.lock(key, { timeout: 2_000, fairAfter: 50 }), LockTimeoutError)
    expect(error.position).toBe(1)
  })

  if (kindsHere.length > 1) {
    test('says the kind, how much is taken by how many, and the first holder', async ({ key }) => {
      const [holder, waiter] = [client({ label: 'the holder' }), client()]
      const first = await holder.semaphore(key, 3).lock({ permits: 2 })
      await holder.semaphore(key, 3).lock({ label: 'another', lease: 60_000 })
      for (const owner of ['a', 'b', 'c']) await holder.readWrite(key).read.lock({ owner })
      await holder.readWrite(`${key} w`).write.lock()
      const messages = async (fair: boolean) => {
        const locks = [waiter.semaphore(key, 3), waiter.readWrite(key).write, waiter.readWrite(`${key} w`).read]
        const calls = locks.map(lock => rejection(lock.lock({ timeout: 300, fair }), LockTimeoutError))
        return (await Promise.all(calls)).map(({ message }) => message)
      }
      for (const fair of [false, true]) {
        expect(await messages(fair)).toEqual([
          expect.stringMatching(
            /^semaphore .*; 3 of 3 permits are taken by 2 holders, the first is the holder for \d+ ms$/,
          ),
          expect.stringMatching(/^write lock .*; held by 3 readers, the first is the holder for \d+ ms$/),
          expect.stringMatching(/^read lock .*; held by the writer the holder for \d+ ms$/),
        ])
      }
      await first.release()
    })
  }

  test('with Redis out of reach: names no holder', async () => {
    const error = await rejection(
      client({}, place().sourceToNobody()).lock(freshKey(), { timeout: 100 }),
      LockTimeoutError,
    )
    expect([error.holder, error.position]).toEqual([undefined, undefined])
  })
})

test('LockConnectionError has the socket’s own error as its cause', async () => {
  const error = await rejection(
    client({ outageTimeout: 300 }, place().sourceToNobody()).lock(freshKey()),
    LockConnectionError,
  )
  expectNobodyThere(error)
})

test('LockLostError: a forced release and lost data do not read the same', async ({ own }) => {
  const [holder, operator] = [client({ lease: 9_000 }, own.source()), client({}, own.source())]
  const locksOf = (locks: LockClient) =>
    kindsHere.length > 1 ? [locks.mutex('a'), locks.semaphore('a', 2), locks.readWrite('a').read] : [locks.mutex('a')]
  const inCluster = place().way.kind === 'cluster'
  // On a busy machine, the holder's inbox may be subscribed only after the grant.
  await holder.lock('b').then(lease => lease.release())
  if (!inCluster) await eventually(async () => (await own.admin().channels()).length > 0)
  const leases = await Promise.all(locksOf(holder).map(lock => lock.lock()))
  for (const lock of locksOf(operator)) await operator.forceRelease(lock)
  // In a cluster, a client begins to listen for news of a hold only when the hold has lasted for a while. Before that, it
  // learns of the loss by its renewal, which does not say how the hold ended.
  for (const { signal } of leases) {
    await aborted(signal)
    const words = inCluster ? /a forced release|no longer knows this hold/ : /it was taken away by a forced release/
    expect(signal.reason.message).toMatch(words)
  }
  const lease = await holder.lock('a')
  await own.admin().each(redis => redis.flushall())
  await aborted(lease.signal)
  expect(lease.signal.reason.message).toContain('Redis no longer knows this hold')
})

test('LockLostError: Redis out of reach past the lease', async ({ own, key }) => {
  const locks = client({ lease: 600, outageTimeout: 500 }, own.source())
  const run = locks.using(key, async lease => {
    await own.kill()
    await aborted(lease.signal)
    expect(lease.held).toBe(false)
  })
  const lost = expect.stringMatching(/its lease ran out; (Redis has been out of reach for \d+ ms: |no majority )/)
  expect(await rejection(run, LockLostError)).toMatchObject({
    key,
    message: lost,
    cause: expect.any(LockConnectionError),
  })
})

test('LockClosedError of a call without a key has no key', async ({ locks }) => {
  await locks.close()
  const error = await rejection(locks.list()[Symbol.asyncIterator]().next(), LockClosedError)
  expect(error.key).toBeUndefined()
})

/** How a caller may await a call. */
const awaiting: Record<string, (call: () => Promise<unknown>) => Promise<unknown>> = {
  await: async function theCaller(call) {
    await call()
  },
  'stored, and awaited later': async function theCaller(call) {
    const stored = call()
    await null
    await stored
  },
  'Promise.all': async function theCaller(call) {
    await Promise.all([call(), sleep(1)])
  },
  'Promise.allSettled': async function theCaller(call) {
    const [settled] = await Promise.allSettled([call()])
    if (settled.status === 'rejected') throw settled.reason
  },
  'then, catch, finally': async function theCaller(call) {
    const caught = call()
      .then(() => undefined)
      .finally(() => undefined)
      .catch(error => error)
    throw await caught
  },
}

/** Calls that reject, each made from what the test needs. Each may be made several times. */
const rejecting: Record<string, (key: string) => Promise<() => Promise<unknown>>> = {
  'lock: time-out': async key => {
    await client().lock(key)
    const locks = client()
    return () => locks.lock(key, { timeout: 20 })
  },
  'lock: outage': async key => {
    const locks = client({ outageTimeout: 300 }, place().sourceToNobody())
    return () => locks.lock(key)
  },
  'lock: wrong argument': async key => () => client().lock(key, { lease: -1 }),
  'tryLock: outage for as long as its time-out': async key => {
    const locks = client({}, place().sourceToNobody())
    return () => locks.tryLock(key, { timeout: 300 })
  },
  'using: lost': async key => () => client().using(`${key} ${Math.random()}`, { lease: 200 }, () => sleep(300)),
  'using: the function throws the reason of the signal': async key => () =>
    client().using(`${key} ${Math.random()}`, { lease: 200 }, async ({ signal }) => {
      await aborted(signal)
      signal.throwIfAborted()
    }),
  'all: time-out': async key => {
    await client().lock(key)
    const locks = client()
    return () => locks.all([key, freshKey()]).lock({ timeout: 100 })
  },
  'renew: lost meanwhile': async key => {
    const { source, proxy } = await place().proxied()
    const lease = await client({}, source).lock(key, { lease: 1_000 })
    proxy.hold('down')
    return () => lease.renew()
  },
  'release: outage': async key => {
    const own = await ownPlace()
    const locks = client({ outageTimeout: 600 }, own.source())
    await locks.isLocked(key)
    const leases = await Promise.all(Object.keys(awaiting).map((_, i) => locks.lock(`${key} ${i}`)))
    await own.kill()
    return () => leases.pop()!.release()
  },
  ...Object.fromEntries(
    (['inspect', 'isLocked', 'forceRelease'] as const).map(name => [
      `${name}: outage`,
      async (key: string) => {
        const locks = client({ outageTimeout: 300 }, place().sourceToNobody())
        return () => locks[name](key)
      },
    ]),
  ),
  'list: outage': async () => {
    const locks = client({ outageTimeout: 300 }, place().sourceToNobody())
    return () => collect(locks.list())
  },
}

if (kindsHere.length > 1) {
  Object.assign(rejecting, {
    'lock: deadlock': async (key: string) => {
      const { read, write } = client().readWrite(key)
      await read.lock({ owner: 'me' })
      return () => write.lock({ owner: 'me' })
    },
    'semaphore: time-out': async (key: string) => {
      await client().semaphore(key, 1).lock()
      const locks = client()
      return () => locks.semaphore(key, 1).lock({ timeout: 20 })
    },
  })
}

describe.each(Object.entries(rejecting))('the stack of an error of %s', (_, make) => {
  test('names the line that called, however the call is awaited', async () => {
    const call = await make(freshKey())
    const errors = Object.entries(awaiting).map(async ([way, caller]) => {
      const error = await rejection(caller(call), LockError)
      expect.soft(error.stack, way).toMatch(/theCaller.*errors\.test\.ts/)
      expect.soft(error.stack, way).toContain(`: ${error.message}\n`)
    })
    await Promise.all(errors)
  })
})

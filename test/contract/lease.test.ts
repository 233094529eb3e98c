/** Tests every field and method of Lease, and how a lease ends. */
import { describe, expect } from 'vitest'
import { type Lease, LockLostError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { heard, promptly, rejection } from '../kit/outcomes.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

describe('fields', () => {
  test('of a lease that is held', async () => {
    const lease = await client().lock(freshKey('the key'), { owner: 'me', lease: 10_000 })
    expect(lease.key).toMatch(/^the key-/)
    expect(lease.owner).toBe('me')
    expect(lease.id).toBeTypeOf('string')
    expect(Number.isSafeInteger(lease.fencingToken)).toBe(true)
    expect(lease.fencingToken).toBeGreaterThan(0)
    expect(lease.held).toBe(true)
    expect(lease.remaining()).toBeGreaterThan(5_000)
    expect(lease.remaining()).toBeLessThanOrEqual(10_000)
    expect(lease.signal).toBeInstanceOf(AbortSignal)
    expect(lease.signal).toBe(lease.signal)
    expect(lease.signal.aborted).toBe(false)
    expect(lease.waited).toBeGreaterThanOrEqual(0)
    expect(lease.waited).toBeLessThan(5_000)
    expect(lease.via).toBe('immediate')
    await lease.release()
  })

  test('ids are long, and never repeat', async ({ locks }) => {
    const leases = await Promise.all(Array.from({ length: 200 }, () => locks.lock(freshKey())))
    expect(new Set(leases.map(lease => lease.id)).size).toBe(200)
    for (const { id } of leases) expect(id.length).toBeGreaterThanOrEqual(16)
  })

  test('waited is the time between the call and the grant', async ({ one, two, key }) => {
    const lease = await one.lock(key)
    for (const [i, fair] of [true, false].entries()) {
      const holder = i === 0 ? lease : await one.lock(key)
      const begin = performance.now()
      const waits = two.lock(key, { fair })
      await sleep(300)
      await holder.release()
      const next = await waits
      const most = performance.now() - begin
      expect(next.waited).toBeGreaterThanOrEqual(295)
      expect(next.waited).toBeLessThanOrEqual(most + 5)
      await next.release()
    }
  })
})

describe.each(kindsHere)('release ($kind)', ({ client, clients }) => {
  test('resolves to true for the call that ended the hold, then to false', async ({ key }) => {
    const [one, two] = clients(2)
    const lease = await one!.lock(key)
    expect(await lease.release()).toBe(true)
    expect(lease.held).toBe(false)
    expect(lease.remaining()).toBe(0)
    expect(lease.signal.aborted).toBe(false)
    expect(await two!.isLocked(key)).toBe(false)
    expect(await lease.release()).toBe(false)
    expect(await lease.release()).toBe(false)
  })

  test('the lease is no longer held as soon as release is called', async () => {
    const lease = await client().lock(freshKey())
    const released = lease.release()
    expect(lease.held).toBe(false)
    expect(lease.remaining()).toBe(0)
    expect(await released).toBe(true)
  })

  test('of concurrent calls exactly one resolves to true', async () => {
    const locks = client()
    for (let round = 0; round < 20; round++) {
      const lease = await locks.lock(freshKey())
      const results = await Promise.all(Array.from({ length: 5 }, () => lease.release()))
      expect(results.filter(Boolean)).toHaveLength(1)
    }
  })

  test('I5: a late release does not end a later hold', async ({ key }) => {
    const [one, two] = clients(2)
    const expired = await one!.lock(key, { lease: 200 })
    const next = await promptly(two!.lock(key))
    expect(await expired.release()).toBe(false)
    expect(await one!.isLocked(key)).toBe(true)
    expect(await next.release()).toBe(true)
    expect(await next.release()).toBe(false)
  })

  test('I7: after it nothing is renewed', async () => {
    const locks = client({ lease: 300 })
    const renewals = heard(locks, 'renewed')
    const lease = await locks.lock(freshKey())
    await lease.release()
    const before = renewals.length
    await sleep(500)
    expect(renewals.length).toBe(before)
  })

  test('await using releases, whether the block completes or throws', async ({ key }) => {
    const locks = client()
    let leases: Lease[] = []
    {
      await using lease = await locks.lock(key)
      leases.push(lease)
      expect(await locks.isLocked(key)).toBe(true)
    }
    expect(await locks.isLocked(key)).toBe(false)
    const failing = async () => {
      await using lease = await locks.lock(key)
      leases = [...leases, lease]
      throw new Error('mine')
    }
    await expect(failing()).rejects.toThrow('mine')
    expect(await locks.isLocked(key)).toBe(false)
    expect(leases.map(lease => lease.held)).toEqual([false, false])
  })

  test('await using does nothing for a refused tryLock', async ({ key }) => {
    const locks = client()
    await locks.lock(key)
    await using lease = await locks.tryLock(key)
    expect(lease).toBeNull()
  })
})

describe.each(kindsHere)('a lease that runs out ($kind)', ({ client, clients }) => {
  test('I8: is lost, as held, remaining, signal, event, release and renew show', async ({ key }) => {
    const locks = client()
    const losses = heard(locks, 'lost')
    const lease = await locks.lock(key, { lease: 250 })
    const { signal } = lease
    await eventually(() => signal.aborted, 3_000)
    expect(lease.held).toBe(false)
    expect(lease.remaining()).toBe(0)
    expect(signal.reason).toBeInstanceOf(LockLostError)
    expect(signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', key })
    expect(losses).toEqual([{ key, fencingToken: lease.fencingToken, error: signal.reason }])
    expect(await lease.release()).toBe(false)
    expect(await rejection(lease.renew(), LockLostError)).toMatchObject({ key })
  })

  test('I8: its signal is aborted even if it is first read afterwards', async () => {
    const lease = await client().lock(freshKey(), { lease: 200 })
    await sleep(400)
    expect(lease.signal.aborted).toBe(true)
    expect(lease.signal.reason).toBeInstanceOf(LockLostError)
  })

  test.each([true, false])(
    'I1, I8: its signal aborts before another caller can hold the lock (fair: %s)',
    async fair => {
      const [one, two] = clients(2)
      for (let round = 0; round < 5; round++) {
        const key = freshKey()
        const order: string[] = []
        const lease = await one!.lock(key, { lease: 250 })
        lease.signal.addEventListener('abort', () => order.push('lost'))
        const next = two!.lock(key, { fair }).then(async each => {
          expect(lease.held).toBe(false)
          // If the event loop was blocked, Node may serve the grant before timers that are due. It runs them in the order
          // of their times.
          await sleep(0)
          order.push('granted')
          return each
        })
        await (await promptly(next)).release()
        expect(order).toEqual(['lost', 'granted'])
      }
    },
  )

  test('I1: it does not count as held after its end, even while the event loop is blocked', async () => {
    const lease = await client().lock(freshKey(), { lease: 300 })
    const end = performance.now() + 350
    while (performance.now() < end);
    expect(lease.held).toBe(false)
    expect(lease.remaining()).toBe(0)
  })
})

describe.each(kindsHere)('renew ($kind)', ({ client, clients }) => {
  test('prolongs the hold to the full lease time from now', async () => {
    const [one, two] = clients(2)
    const lease = await one!.lock(freshKey(), { lease: 4_000 })
    await sleep(500)
    expect(lease.remaining()).toBeLessThan(3_600)
    await lease.renew()
    expect(lease.remaining()).toBeGreaterThan(3_600)
    expect(lease.remaining()).toBeLessThanOrEqual(4_000)
    expect((await two!.inspect(lease.key)).ttl).toBeGreaterThan(3_000)
  })

  test('prolongs the hold to the given time from now', async () => {
    const [one, two] = clients(2)
    const lease = await one!.lock(freshKey(), { lease: 600 })
    await lease.renew(20_000)
    expect(lease.remaining()).toBeGreaterThan(15_000)
    expect(lease.remaining()).toBeLessThanOrEqual(20_000)
    expect((await two!.inspect(lease.key)).ttl).toBeGreaterThan(15_000)
    await sleep(800)
    expect(lease.held).toBe(true)
    expect(await lease.release()).toBe(true)
  })

  test('never shortens the hold', async () => {
    const [one, two] = clients(2)
    const lease = await one!.lock(freshKey(), { lease: 20_000 })
    await lease.renew(10)
    expect(lease.remaining()).toBeGreaterThan(15_000)
    expect((await two!.inspect(lease.key)).ttl).toBeGreaterThan(15_000)
  })

  test('emits "renewed"', async () => {
    const locks = client()
    const lease = await locks.lock(freshKey())
    // Once its subscription is confirmed, a new client renews every lease once. Wait until that renewal is over.
    await sleep(500)
    const renewals = heard(locks, 'renewed')
    await lease.renew()
    expect(renewals).toEqual([{ key: lease.key, fencingToken: lease.fencingToken }])
  })

  test('rejects with LockLostError after the release', async () => {
    const lease = await client().lock(freshKey())
    await lease.release()
    expect(await rejection(lease.renew(), LockLostError)).toMatchObject({ key: lease.key })
  })

  test('I8: rejects with LockLostError when the hold was taken away, and the lease is lost', async () => {
    const [one, two] = clients(2)
    const lease = await one!.lock(freshKey())
    await two!.forceRelease(lease.key)
    await rejection(lease.renew(), LockLostError)
    expect(lease.held).toBe(false)
    expect(lease.signal.aborted).toBe(true)
  })

  test('I5: does not revive a lease that has ended, even if no other caller has taken the lock', async () => {
    const [one, two] = clients(2)
    const lease = await one!.lock(freshKey(), { lease: 200 })
    await sleep(300)
    await rejection(lease.renew(5_000), LockLostError)
    expect(await two!.isLocked(lease.key)).toBe(false)
  })
})

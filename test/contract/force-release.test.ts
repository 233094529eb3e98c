/** Tests that forceRelease takes the lock from its holder, notifies the holder, and wakes the next waiter. */
import { describe, expect } from 'vitest'
import { LockLostError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { heard, promptly, rejection } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

describe('forceRelease', () => {
  test('is false for a lock that is free, expired or was never held', async ({ one, two, key }) => {
    expect(await two.forceRelease(key)).toBe(false)
    await (await one.lock(key)).release()
    expect(await two.forceRelease(key)).toBe(false)
    await one.lock(key, { lease: 200 })
    await sleep(300)
    expect(await two.forceRelease(key)).toBe(false)
  })

  test.for(kindsHere)('frees a held lock, and is true for one call only ($kind)', async ({ clients }, { key }) => {
    const [one, two] = clients(2)
    await one!.lock(key)
    expect(await two!.forceRelease(key)).toBe(true)
    expect(await two!.isLocked(key)).toBe(false)
    expect(await two!.forceRelease(key)).toBe(false)
  })

  test('I6: settles although the lock changes hands faster than the request travels, and takes it from one holder', async () => {
    const { source, proxy } = await place().proxied()
    const [one, two] = clients(2)
    const three = client({}, source)
    await three.isLocked(freshKey())
    proxy.delay(20)
    const key = freshKey()
    const losses = [one!, two!].map(locks => heard(locks, 'lost'))
    let going = true
    const pass = async (locks: typeof one) => {
      while (going) await (await locks!.lock(key, { fair: true })).release()
    }
    const loops = [one, one, one, two, two, two].map(pass)
    for (let i = 0; i < 20; i++) await promptly(three.forceRelease(key))
    going = false
    await Promise.all(loops)
    await eventually(() => losses.flat().length <= 20)
  })

  test('I8: the holder’s signal aborts promptly, long before its next renewal', async ({ one, two, key }) => {
    const lease = await one.lock(key)
    const { signal } = lease
    const losses = heard(one, 'lost')
    await two.forceRelease(key)
    await eventually(() => signal.aborted, 2_000)
    expect(signal.reason).toBeInstanceOf(LockLostError)
    expect(signal.reason.key).toBe(key)
    expect(lease.held).toBe(false)
    expect(lease.remaining()).toBe(0)
    expect(losses).toEqual([{ key, fencingToken: lease.fencingToken, error: signal.reason }])
    expect(await lease.release()).toBe(false)
    await rejection(lease.renew(), LockLostError)
  })

  test('I8: the holder’s signal aborts even if its client waits for the lock again before it has noticed the loss', async () => {
    const [one, two] = clients(2)
    const key = freshKey()
    await Promise.all([one!.isLocked(key), two!.isLocked(key)])
    const lease = await one!.lock(key, { lease: 30_000 })
    expect(await two!.forceRelease(key)).toBe(true)
    const next = await one!.lock(key, { fair: true })
    await eventually(() => lease.signal.aborted, 2_000)
    expect(next.held).toBe(true)
  })

  test('I8: all holds of a re-entrant holder are lost, in every client', async ({ one, two, other, key }) => {
    const holds = [await one.lock(key, { owner: 'o' }), await two.lock(key, { owner: 'o' })]
    expect(await other.forceRelease(key)).toBe(true)
    expect(await other.isLocked(key)).toBe(false)
    await eventually(() => holds.every(hold => hold.signal.aborted), 2_000)
  })

  test.for(kindsHere)('I4: the fair waiter gets the lock promptly ($kind)', async ({ clients }, { key }) => {
    const [one, two, other] = clients(3)
    const lease = await one!.lock(key)
    const queued = await park(two!, key, { fair: true })
    expect(await other!.forceRelease(key)).toBe(true)
    const next = await promptly(queued.lease)
    expect(next.held).toBe(true)
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken)
  })

  test.for(kindsHere)('I4: an unfair waiter gets the lock promptly ($kind)', async ({ clients }, { key }) => {
    const [one, two, other] = clients(3)
    const lease = await one!.lock(key)
    const parked = await park(two!, key)
    expect(await other!.forceRelease(key)).toBe(true)
    const next = await promptly(parked.lease)
    expect(next.held).toBe(true)
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken)
  })

  test.for(kindsHere)(
    'I4: a fair waiter of the client that forces the release, or of the holder’s client, gets the lock promptly ($kind)',
    async ({ clients }, { key }) => {
      const [one, two] = clients(2)
      await one!.lock(key)
      const first = await park(two!, key, { fair: true })
      const second = await park(one!, key, { fair: true })
      await two!.forceRelease(key)
      await promptly(first.lease)
      await two!.forceRelease(key)
      expect((await promptly(second.lease)).held).toBe(true)
    },
  )

  test.each(kindsHere)('I5: the former holder’s release does not end the next hold ($kind)', async ({ clients }) => {
    const [one, two, other] = clients(3)
    const key = freshKey()
    const lease = await one!.lock(key)
    await other!.forceRelease(key)
    const next = await two!.lock(key)
    expect(await lease.release()).toBe(false)
    expect(await one!.isLocked(key)).toBe(true)
    expect(next.held).toBe(true)
    expect(await next.release()).toBe(true)
  })

  test.for(kindsHere)('I5: several concurrent calls end one hold in total ($kind)', async ({ clients }, { key }) => {
    const all = clients(4)
    await all[0]!.lock(key)
    const results = await Promise.all(all.map(each => each.forceRelease(key)))
    expect(results.filter(Boolean)).toHaveLength(1)
  })
})

describe('of one holder, by its id', () => {
  test('I5: takes a mutex only from that holder, and gives it to the next', async ({ one, two, other, key }) => {
    const lease = await one.lock(key)
    const queued = await park(two, key, { fair: true })
    const [waiter] = (await other.inspect(key)).waiters
    expect(await other.forceRelease(key, waiter!.id)).toBe(false)
    expect(lease.held).toBe(true)
    expect(await other.forceRelease(key, lease.id)).toBe(true)
    const next = await promptly(queued.lease)
    expect(await other.forceRelease(key, lease.id)).toBe(false)
    await eventually(() => lease.signal.aborted, 2_000)
    expect((await other.inspect(key)).holders.map(({ id }) => id)).toEqual([next.id])
    expect(await next.release()).toBe(true)
  })
})

test('I8: deletion of the lock’s key is noticed at the next renewal', async ({ key }) => {
  const locks = client({ lease: 900 })
  const lease = await locks.lock(key)
  const admin = place().admin()
  const names = await admin.keysWith(key)
  await admin.everywhere(redis => redis.del(names))
  await eventually(() => lease.signal.aborted, 2_000)
  expect(lease.signal.reason).toBeInstanceOf(LockLostError)
})

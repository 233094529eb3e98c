/** Tests the counters and histograms that stats returns for one client. */
import { expect } from 'vitest'
import { park } from '../kit/parking.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const none = { count: 0, min: 0, max: 0, mean: 0, p50: 0, p90: 0, p99: 0 }

test('a new client has counted nothing', () => {
  expect(client().stats()).toEqual({
    waiting: 0,
    holding: 0,
    acquired: 0,
    via: { immediate: 0, handoff: 0, wakeup: 0, expiry: 0, reentry: 0 },
    released: 0,
    renewed: 0,
    lost: 0,
    timedOut: 0,
    refused: 0,
    failed: 0,
    wait: none,
    hold: none,
    handoff: none,
  })
})

test('counts grants, releases and current holds', async ({ locks }) => {
  const leases = await Promise.all([1, 2, 3].map(() => locks.lock(freshKey())))
  expect(locks.stats()).toMatchObject({ acquired: 3, holding: 3, released: 0, wait: { count: 3 }, hold: { count: 0 } })
  await leases[0]!.release()
  await leases[0]!.release()
  expect(locks.stats()).toMatchObject({ acquired: 3, holding: 2, released: 1, lost: 0, hold: { count: 1 } })
})

test('counts current waiters, timed-out, refused and failed calls', async ({ holder, waiter, key }) => {
  await holder.lock(key)
  const stop = new AbortController()
  const calls = [waiter.lock(key, { signal: stop.signal }), waiter.lock(key, { fair: true, signal: stop.signal })]
  const ended = Promise.allSettled(calls)
  await eventually(() => waiter.stats().waiting === 2)
  await waiter.tryLock(key)
  await waiter.tryLock(key, { timeout: 20 })
  await waiter.lock(key, { timeout: 20 }).catch(() => {})
  stop.abort()
  await ended
  expect(waiter.stats()).toMatchObject({ waiting: 0, timedOut: 2, refused: 1, failed: 2, acquired: 0, wait: none })
})

test('counts renewals and losses', async () => {
  const locks = client({ lease: 1_500 })
  const [renewed, lost] = [await locks.lock(freshKey()), await locks.lock(freshKey(), { lease: 300 })]
  await eventually(() => lost.signal.aborted && locks.stats().renewed >= 2)
  expect(locks.stats()).toMatchObject({ lost: 1, holding: 1, released: 0, hold: { count: 1 } })
  await renewed.release()
})

test('the histograms hold the times of waits, holds and hand-offs, in ms', async ({ locks, key }) => {
  const first = await locks.lock(key)
  const queued = await park(locks, key, { fair: true })
  await sleep(300)
  await first.release()
  await queued.lease
  const { wait, hold, handoff } = locks.stats()
  expect([wait.count, hold.count, handoff.count]).toEqual([2, 1, 1])
  expect(wait.max).toBeGreaterThanOrEqual(290)
  expect(wait.max).toBeLessThan(10_000)
  expect(hold.max).toBeGreaterThanOrEqual(290)
  expect(hold.max).toBeLessThan(10_000)
  expect(handoff.max).toBeGreaterThan(0)
  expect(handoff.max).toBeLessThan(5_000)
  for (const times of [wait, hold, handoff]) {
    expect(times.min).toBeLessThanOrEqual(times.p50)
    expect(times.p50).toBeLessThanOrEqual(times.p90)
    expect(times.p90).toBeLessThanOrEqual(times.p99)
    expect(times.p99).toBeLessThanOrEqual(times.max * 1.01)
    expect(times.mean).toBeGreaterThanOrEqual(times.min)
    expect(times.mean).toBeLessThanOrEqual(times.max)
  }
})

test('is a snapshot: it does not change, and covers one client only', async ({ one, two }) => {
  const before = one.stats()
  const copy = structuredClone(before)
  await one.lock(freshKey())
  await two.lock(freshKey())
  expect(before).toEqual(copy)
  expect(one.stats().acquired).toBe(1)
})

/** Tests the metrics with the real SDK and a real Redis. */
import { describe, expect } from 'vitest'
import { reasonOf } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { Telemetry, test } from './telemetry.ts'

describe('every count', () => {
  test('exists, at 0, before anything has happened', async ({ telemetry }) => {
    telemetry.client({ attributes: { 'server.address': 'redis.example' } })
    const counts = ['waiters', 'leases', 'grants', 'timeouts', 'losses', 'renewals', 'disconnections']
    for (const name of counts) {
      const { points } = await telemetry.metric(`redis_baton.${name}`)
      expect(points.map(({ value }) => value)).toEqual(name === 'grants' ? [0, 0, 0, 0, 0] : [0])
      for (const { attributes } of points) expect(attributes).toMatchObject({ 'server.address': 'redis.example' })
    }
    const { points } = await telemetry.metric('redis_baton.grants')
    const vias = points.map(({ attributes }) => attributes['redis_baton.via'])
    expect(vias).toEqual(['immediate', 'handoff', 'wakeup', 'expiry', 'reentry'])
  })
})

describe('waiters, leases and grants', () => {
  test('go up and down with the calls, and agree with stats()', async ({ telemetry, traced: locks, key }) => {
    const now = async () => [await telemetry.sum('redis_baton.waiters'), await telemetry.sum('redis_baton.leases')]
    const lease = await locks.lock(key)
    const again = await locks.lock(key, { owner: lease.owner })
    const { lease: fair } = await park(locks, key, { fair: true })
    const unfair = locks.lock(key)
    expect(await now()).toEqual([2, 2])
    expect(locks.stats()).toMatchObject({ waiting: 2, holding: 2 })
    await again.release()
    await lease.release()
    await (await fair).release()
    await (await unfair).release()
    expect(await now()).toEqual([0, 0])

    const { via, acquired } = locks.stats()
    expect(await telemetry.sum('redis_baton.grants')).toBe(acquired)
    for (const [way, count] of Object.entries(via)) {
      expect(await telemetry.sum('redis_baton.grants', { 'redis_baton.via': way })).toBe(count)
      const { count: waits } = await telemetry.times('redis_baton.wait.duration', { 'redis_baton.via': way })
      expect(waits).toBe(count)
    }
  })
})

describe('durations are seconds', () => {
  test('of the wait, by its outcome, and of the hold', async ({ telemetry, traced: locks, key }) => {
    const lease = await client().lock(key)
    const stop = new AbortController()
    const { lease: granted } = await park(locks, key, { fair: true })
    const ends = [
      locks.tryLock(key),
      locks.tryLock(key, { timeout: 100 }),
      reasonOf(locks.lock(key, { timeout: 100 })),
      reasonOf(locks.lock(key, { signal: stop.signal })),
      reasonOf(locks.lock('')),
    ]
    await sleep(300)
    stop.abort()
    await Promise.all(ends)
    await lease.release()
    const held = await granted
    await sleep(300)
    await held.release()

    const wait = 'redis_baton.wait.duration'
    expect((await telemetry.metric(wait)).unit).toBe('s')
    const outcome = (name: string) => telemetry.times(wait, { 'redis_baton.outcome': name })
    const long = { sum: expect.toSatisfy(s => s >= 0.29 && s < 10) }
    expect(await outcome('granted')).toMatchObject({ count: 1, ...long })
    expect(await outcome('refused')).toMatchObject({ count: 1 })
    expect(await outcome('timeout')).toMatchObject({ count: 2, sum: expect.toSatisfy(s => s >= 0.19 && s < 10) })
    expect(await outcome('aborted')).toMatchObject({ count: 1, ...long })
    expect(await outcome('failed')).toMatchObject({ count: 1 })
    expect(await telemetry.times(wait, { 'error.type': 'LockArgumentError' })).toMatchObject({ count: 1 })
    expect(await telemetry.sum('redis_baton.timeouts')).toBe(2)
    const hold = await telemetry.times('redis_baton.hold.duration', { 'redis_baton.outcome': 'released' })
    expect(hold).toMatchObject({ count: 1, ...long })
  })

  test.each([
    ['fair', { fair: true }],
    ['unfair', {}],
  ])('of a hand-off to a waiter of the same client, as in stats(): %s', async (_, options) => {
    const telemetry = new Telemetry()
    const { locks } = telemetry.client()
    const key = freshKey()
    await Promise.all(Array.from({ length: 20 }, () => locks.using(key, options, () => sleep(1))))
    const { handoff } = locks.stats()
    const { count, sum } = await telemetry.times('redis_baton.handoff.duration')
    expect(handoff.count).toBe(19)
    expect(count).toBe(19)
    expect(sum).toBeGreaterThan(0)
    // The metric measures the end of each hand-off a moment later than stats() does, so its sum may be slightly larger.
    expect(sum * 1000).toBeLessThan(handoff.mean * 19 + 500)
  })
})

describe('events without a call', () => {
  test('lost leases and renewals', async ({ telemetry }) => {
    const { locks } = telemetry.client({}, { lease: 600 })
    const lease = await locks.lock(freshKey())
    await eventually(() => locks.stats().renewed >= 2)
    await client().forceRelease(lease.key)
    await eventually(() => locks.stats().lost === 1)
    expect(await telemetry.sum('redis_baton.losses')).toBe(1)
    expect(await telemetry.sum('redis_baton.leases')).toBe(0)
    expect(await telemetry.sum('redis_baton.renewals')).toBe(locks.stats().renewed)
    expect(await telemetry.times('redis_baton.hold.duration', { 'redis_baton.outcome': 'lost' })).toMatchObject({
      count: 1,
    })
  })
})

describe('keys', () => {
  test('are not an attribute of any metric', async ({ telemetry, traced: locks }) => {
    const key = freshKey('secret')
    await Promise.all([1, 2].map(() => locks.using(key, () => {})))
    await locks.lock(key, { lease: 100 })
    await eventually(() => locks.stats().lost === 1)
    for (const name of [
      'wait.duration',
      'hold.duration',
      'handoff.duration',
      'grants',
      'losses',
      'waiters',
      'leases',
    ]) {
      const { points } = await telemetry.metric(`redis_baton.${name}`)
      expect(JSON.stringify(points.map(({ attributes }) => attributes))).not.toContain('secret')
    }
  })

  test('can be distinguished by keyGroup', async ({ telemetry }) => {
    const { locks } = telemetry.client({ keyGroup: key => key.split('-')[0] as string })
    await locks.using(freshKey('order'), () => {})
    await locks.using(freshKey('order'), () => {})
    await locks.using(freshKey('report'), () => {})
    for (const [group, count] of Object.entries({ order: 2, report: 1 })) {
      const where = { 'redis_baton.key_group': group }
      expect(await telemetry.sum('redis_baton.grants', where)).toBe(count)
      expect(await telemetry.times('redis_baton.wait.duration', where)).toMatchObject({ count })
      expect(await telemetry.times('redis_baton.hold.duration', where)).toMatchObject({ count })
    }
    const { points } = await telemetry.metric('redis_baton.losses')
    expect(points.map(({ attributes, value }) => [attributes['redis_baton.key_group'], value])).toEqual([
      ['order', 0],
      ['report', 0],
    ])
  })
})

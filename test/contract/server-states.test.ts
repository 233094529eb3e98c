/**
 * Tests a server that answers but does not execute requests, because it is a replica, busy, or loading. In a quorum,
 * all servers are in that state.
 */
import type { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import type { LockClient } from '../../src/index.ts'
import type { Admin } from '../kit/admin.ts'
import { promptly, within } from '../kit/outcomes.ts'
import { type OwnPlace, ownPlace } from '../kit/place.ts'
import { client, freshKey } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { refused, refusesAll } from './refused.ts'

async function server(
  ...args: string[]
): Promise<{ own: OwnPlace; admin: Admin; locks: LockClient; other: LockClient }> {
  const own = await ownPlace(...args)
  return { own, admin: own.admin(), locks: client({}, own.source()), other: client({}, own.source()) }
}

test('READONLY: a replica refuses after outageTimeout; the lock is taken once the server is the master again', async () => {
  const { own, admin, other } = await server()
  const locks = client({ outageTimeout: 1_000 }, own.source())
  const key = freshKey()
  await locks.isLocked(key)
  await admin.each(redis => redis.replicaof('127.0.0.1', 1))
  await refusesAll(locks, key, /^READONLY /)
  expect(await other.isLocked(key)).toBe(false)
  await admin.each(redis => redis.replicaof('NO', 'ONE'))
  expect((await promptly(locks.lock(key))).held).toBe(true)
})

describe('BUSY', () => {
  /** Keeps every server busy with a script for `ms`. Resolves when all are busy; `over` when the script has ended. */
  async function occupy(own: OwnPlace, ms: number): Promise<{ readonly over: Promise<unknown> }> {
    const killers: Redis[] = await own.admin().each(async redis => redis)
    const busy = own.admin().each(redis => redis.eval('for i = 1, 1e11 do end', 0).catch(() => {}))
    const refuses = (redis: Redis) =>
      redis.ping().then(
        () => false,
        error => /^BUSY /.test(error.message),
      )
    await eventually(async () => (await Promise.all(killers.map(refuses))).every(Boolean), 10_000)
    const over = sleep(ms).then(() => Promise.all(killers.map(killer => killer.script('KILL'))))
    return { over: Promise.all([over, busy]) }
  }

  test('I6: a call waits out a script that blocks the server for a while', async () => {
    const { own, locks } = await server('--lua-time-limit', '50')
    await locks.isLocked(freshKey())
    const busy = await occupy(own, 1_000)
    const lease = await locks.lock(freshKey(), { timeout: 15_000 })
    expect(lease.held).toBe(true)
    await busy.over
  })

  test('I6, I7: a script that blocks for longer than outageTimeout appears as the cause of the rejection', async () => {
    const { own, other } = await server('--lua-time-limit', '50')
    const locks = client({ outageTimeout: 500 }, own.source())
    const key = freshKey()
    await locks.isLocked(key)
    const busy = await occupy(own, 2_000)
    await refused(locks.lock(key), /^BUSY /, key)
    await busy.over
    expect((await other.lock(key, { timeout: 10_000 })).held).toBe(true)
  })

  test('I7: close waits for a busy server no longer than for a silent one', async () => {
    const { own, locks } = await server('--lua-time-limit', '50')
    await locks.lock(freshKey())
    const busy = await occupy(own, 8_000)
    await within(6_000, locks.close())
    await busy.over
  })
})

describe('LOADING', () => {
  const loads = (said: string) => /loading:1/.test(said)

  /** Makes every server reload a data set that takes about five seconds to read. */
  async function loading() {
    const { own, admin } = await server('--enable-debug-command', 'yes')
    const [locks, hasty] = [client({}, own.source()), client({ outageTimeout: 1_000 }, own.source())]
    await Promise.all([locks.isLocked('k'), hasty.isLocked('k')])
    const data = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key ${i}`, 'x'.repeat(100)]))
    const slowly = ['key-load-delay', '1000', 'loading-process-events-interval-bytes', '1024'] as const
    await admin.each(redis => redis.mset(data))
    await admin.each(redis => redis.config('SET', ...slowly))
    const watchers: Redis[] = await own.admin().each(async redis => redis)
    const loaded = admin.each(redis => redis.call('DEBUG', 'RELOAD'))
    const allLoad = async () => (await Promise.all(watchers.map(each => each.info('persistence')))).every(loads)
    await eventually(allLoad)
    return { locks, hasty, loaded }
  }

  test('I6: a call waits until the data is loaded; after outageTimeout it rejects with LOADING as the cause', async () => {
    const { locks, hasty, loaded } = await loading()
    const patient = locks.lock(freshKey(), { timeout: 15_000 })
    const [lease] = await Promise.all([patient, refused(hasty.lock(freshKey()), /^LOADING /), loaded])
    expect(lease.held).toBe(true)
  })
})

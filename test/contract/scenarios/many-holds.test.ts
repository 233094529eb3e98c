/**
 * Tests an owner with 10,000 holds. A script can pass at most about 8,000 arguments to one Redis command, so no script
 * may pass all holds of the owner in one command.
 */
import { describe, expect } from 'vitest'
import type { LockClient } from '../../../src/index.ts'
import { faultProxy } from '../../kit/proxies.ts'
import { client, freshKey, redisUrl, test } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

describe('10,000 holds of one owner', { timeout: 240_000 }, () => {
  async function hold(locks: LockClient, key: string, lease: number) {
    await locks.lock(key, { owner: 'me', lease })
    const calls = Array.from({ length: 9_999 }, () => locks.lock(key, { owner: 'me', lease }))
    return Promise.all(calls)
  }

  test('I4: give way to the next waiter once their process has died', async ({ other, key }) => {
    const proxy = await faultProxy(redisUrl())
    const begun = performance.now()
    await (await hold(client(), freshKey(), 120_000))[0]!.release()
    // The first hold must last until the last one is taken, however slow the machine is.
    const lease = 3 * (performance.now() - begun) + 2_000
    await hold(client({}, proxy.url), key, Math.round(lease))
    proxy.refuse()
    proxy.cut()
    expect((await other.inspect(key)).holds).toBe(10_000)
    expect((await other.lock(key)).held).toBe(true)
    expect(await other.inspect(key)).toMatchObject({ holds: 1 })
  })

  test('I8: are taken away at once, and each lease is notified', async ({ key }) => {
    const [own, other] = [client(), client()]
    const leases = await hold(own, key, 60_000)
    expect(await other.forceRelease(key)).toBe(true)
    expect(await other.isLocked(key)).toBe(false)
    await eventually(() => leases.every(lease => lease.signal.aborted), 30_000)
  })
})

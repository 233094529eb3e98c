/** Tests leases that the program forgets: it neither releases them nor keeps them, and they are renewed. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'
import type { LockClient, LockError } from '../../src/index.ts'
import { instrument } from '../../src/opentelemetry/index.ts'
import { heard } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

type Way = (locks: LockClient, key: string) => Promise<unknown>

/** Each of these functions takes the lock and drops the lease. */
const ways: Record<string, Way> = {
  lock: (locks, key) => locks.lock(key),
  tryLock: (locks, key) => locks.tryLock(key, { lease: 5_000, renew: true }),
  'lock, whose signal is kept': async (locks, key) => (await locks.lock(key)).signal,
  'all, whose signal is kept': async (locks, key) => (await locks.all([key, `${key} 2`]).lock()).signal,
  semaphore: (locks, key) => locks.semaphore(key, 1).lock(),
  read: (locks, key) => locks.readWrite(key).read.lock(),
  write: (locks, key) => locks.readWrite(key).write.lock(),
  'a hand-off from another client': async (locks, key) => {
    const held = await client().lock(key)
    const { lease } = await park(locks, key, { fair: true })
    await held.release()
    return (await lease).signal
  },
  'a hand-off within the client': async (locks, key) => {
    const held = await locks.lock(key)
    const { lease } = await park(locks, key)
    await held.release()
    return (await lease).signal
  },
  'a lock whose client is traced': (locks, key) => {
    instrument(locks)
    return locks.lock(key)
  },
  'a function under the lock that never ends': async (locks, key) => {
    void locks.using(key, () => new Promise(() => {}))
    await eventually(() => locks.stats().holding === 1)
  },
}

async function forget(way: Way, locks: LockClient, key: string): Promise<AbortSignal | undefined> {
  const kept = await way(locks, key)
  return kept instanceof AbortSignal ? kept : undefined
}

// This test fails if `this.#forgotten.register(lease, hold)` is removed in src/key/renewals.ts: nothing is reported. It
// also fails if `hold.lease = undefined` is removed in src/key/renewals.ts: the hold keeps its lease alive.
test.each(Object.entries(ways))('the lease of %s: is reported once, and the lock stays taken', async (_, way) => {
  const locks = client()
  const key = freshKey()
  const errors = heard(locks, 'error')
  const signal = await forget(way, locks, key)
  await eventually(() => {
    collectGarbage()
    return errors.length > 0
  }, 15_000)
  await sleep(100)
  collectGarbage()
  await sleep(100)
  const reported = errors.map(({ error }) => error as LockError)
  const keys = reported.map(error => error.key).sort()
  expect(keys).toEqual(locks.stats().holding === 2 ? [key, `${key} 2`] : [key])
  for (const error of reported) {
    expect(error.code).toBe('ERR_LOCK_FORGOTTEN')
    expect(error.message).toContain(`lock "${error.key}"`)
  }
  expect(locks.stats().holding).toBeGreaterThan(0)
  expect(signal?.aborted ?? false).toBe(false)
})

// This test fails if `if (hold.state.is !== 'held' || hold.renewUntil <= this.#clock.now()) return` is removed in
// src/key/renewals.ts: a released lease is reported too.
test('a lease that was released, is kept, or is fixed, is not reported', async ({ locks }) => {
  const errors = heard(locks, 'error')
  const kept = await locks.lock(freshKey())
  const released: Way = async (locks, key) => {
    await using _ = await locks.lock(key)
    // By now, the client watches whether the lease is forgotten.
    await sleep(1_500)
  }
  await forget(released, locks, freshKey())
  await forget((locks, key) => locks.lock(key, { lease: 600_000 }), locks, freshKey())
  for (let i = 0; i < 5; i += 1) {
    await sleep(300)
    collectGarbage()
  }
  expect(errors).toEqual([])
  expect(kept.held).toBe(true)
})

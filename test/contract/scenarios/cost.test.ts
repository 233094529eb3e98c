/** Tests that waiting costs only heartbeats, and that a release costs the same for any number of waiters (I9). */
import type { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { calls, scriptCalls } from '../../kit/command-stats.ts'
import { within } from '../../kit/outcomes.ts'
import { parkMany } from '../../kit/parking.ts'
import { client, freshKey, ownServer, plainRedis } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'

/** Waits until all waiters are parked and the server receives no more calls. Returns the number of calls so far. */
async function settled(redis: Redis) {
  let last = await calls(redis)
  await eventually(async () => {
    await sleep(100)
    const made = await calls(redis, last)
    last = await calls(redis)
    return Object.keys(made).length === 0
  })
  return last
}

test('200 fair and 200 unfair idle waiters, and 200 idle waiters with different owners send nothing but heartbeats', async () => {
  const { url } = await ownServer()
  const redis = plainRedis(url)
  // With this waiterTtl, the client makes one status check a second for each key.
  const [holder, locks] = [client({}, url), client({ waiterTtl: 3_000 }, url)]
  const keys = { fair: freshKey('fair'), unfair: freshKey('unfair'), owners: freshKey('owners') }
  for (const key of Object.values(keys)) await holder.lock(key)
  await parkMany(locks, keys.fair, 200, { fair: true })
  await parkMany(locks, keys.unfair, 200, { fairAfter: 600_000 })
  for (let i = 0; i < 200; i++) locks.lock(keys.owners, { owner: `owner ${i}`, fairAfter: 600_000 }).catch(() => {})
  await eventually(() => locks.stats().waiting === 600)

  const before = await settled(redis)
  const seconds = 3
  await sleep(seconds * 1_000)
  const made = await calls(redis, before)
  expect(scriptCalls(made) / 3 / seconds, 'script calls a second for each key').toBeLessThan(2)
  // The only messages are the beats that each client sends to itself: the holder's client every 3.3 s, the waiting
  // client every second.
  expect(made['publish'] ?? 0).toBeLessThanOrEqual(6)
  expect(made['subscribe'] ?? 0).toBe(0)
  expect(made['zrange'] ?? 0).toBe(0)
  expect(locks.stats().waiting).toBe(600)
})

describe.each([1, 10, 100])('with %i waiters in each of three clients', waiters => {
  /** With these options, heartbeats and renewals come every 20 s, so none falls into the counted time. */
  const options = { waiterTtl: 60_000, lease: 60_000 }

  async function releaseCounted(fair: boolean) {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    const key = freshKey()
    const holder = client(options, url)
    // After this grant, the server knows every script. A script that the server does not know would be sent twice.
    await (await holder.lock(key)).release()
    const held = await holder.lock(key)
    const waits = []
    for (let i = 0; i < 3; i++) waits.push(...(await parkMany(client(options, url), key, waiters, { fair })))
    const before = await settled(redis)
    await held.release()
    await within(1_000, Promise.race(waits))
    await settled(redis)
    let granted = 0
    for (const wait of waits) wait.then(() => granted++).catch(() => {})
    await sleep(0)
    return { granted, made: await calls(redis, before) }
  }

  test('a release wakes at most one request per process, if the waiters are unfair', async () => {
    const { granted, made } = await releaseCounted(false)
    expect(granted).toBe(1)
    expect(scriptCalls(made)).toBeLessThanOrEqual(1 + 3)
    expect(made['publish']).toBe(1)
  })

  test('a release makes exactly one grant, if the waiters are fair', async () => {
    const { granted, made } = await releaseCounted(true)
    expect(granted).toBe(1)
    expect(made['publish']).toBe(1)
    expect(made['zpopmin']).toBe(1)
    // The release is one script call. The new holder may use one more to confirm its grant.
    expect(scriptCalls(made)).toBeLessThanOrEqual(2)
  })
})

test.each([true, false])('with `replicas`, a free lock costs three scripts and one WAIT (fair: %s)', async fair => {
  const { url, port } = await ownServer('--repl-diskless-sync-delay', '0')
  await ownServer('--replicaof', '127.0.0.1', String(port))
  const redis = plainRedis(url)
  await eventually(async () => (await redis.wait(1, 500)) === 1, 15_000)
  const locks = client({ lease: 60_000, replicas: { min: 1, timeout: 2_000 } }, url)
  // After this grant, the server knows every script, and the client has its permanent subscriptions.
  await (await locks.lock(freshKey(), { fair })).release()
  const before = await settled(redis)
  const rounds = 10
  for (let i = 0; i < rounds; i++) await (await locks.lock(freshKey(), { fair })).release()
  const made = await calls(redis, before)
  expect(scriptCalls(made)).toBe(3 * rounds)
  expect(made['wait']).toBe(rounds)
  if (!fair) expect(made['subscribe'] ?? 0).toBe(0)
})

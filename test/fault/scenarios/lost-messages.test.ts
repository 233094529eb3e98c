/** Messages are hints: a waiter that misses the release gets the lock all the same, as soon as it can hear again (I4). */
import { describe, expect, test } from 'vitest'
import type { LockClient } from '../../../src/index.ts'
import { within } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { client, freshKey, ownServer, plainRedis } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'
import { clientOnTwoWays, fallSilent } from './two-ways.ts'

/** Heartbeats every 20 s: what is granted earlier was not found by one. */
const noHeartbeat = { waiterTtl: 60_000 }

/** A waiter that has nothing more to ask: an unfair one subscribes and tries again after it was refused. */
async function parkAndListen(locks: LockClient, key: string, fair: boolean) {
  const parked = await park(locks, key, { fair })
  if (!fair) await sleep(20)
  return parked
}

describe.each([true, false])('the waiter gets the lock (fair: %s)', fair => {
  test('after its subscriber was reconnecting during the release', async () => {
    const key = freshKey()
    const { locks, messages } = await clientOnTwoWays(noHeartbeat)
    const held = await client().lock(key)
    const { lease: wait } = await parkAndListen(locks, key, fair)
    messages.refuse()
    messages.cut()
    await held.release()
    await sleep(100)
    messages.accept()
    await within(3_000, wait)
  })

  test('after both its connections were reconnecting during the release', async () => {
    const key = freshKey()
    const { locks, messages, commands } = await clientOnTwoWays(noHeartbeat)
    const held = await client().lock(key)
    const { lease: wait } = await parkAndListen(locks, key, fair)
    for (const way of [messages, commands]) {
      way.refuse()
      way.cut()
    }
    await held.release()
    await sleep(100)
    commands.accept()
    await sleep(200)
    messages.accept()
    await within(3_000, wait)
  })

  test('whenever the server kills the subscriber: just before the release, with it, or just after', async () => {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    const [holder, locks] = [client({}, url), client(noHeartbeat, url)]
    for (let after = -3; after <= 3; after += 0.25) {
      const key = freshKey()
      const held = await holder.lock(key)
      const { lease: wait } = await parkAndListen(locks, key, fair)
      const kill = () => redis.client('KILL', 'TYPE', 'PUBSUB')
      const killed = after > 0 ? sleep(after).then(kill) : kill()
      if (after < 0) await sleep(-after)
      const released = held.release()
      const value = await within(3_000, wait, `killed ${after} ms after the release`)
      await Promise.all([released, killed])
      expect(await value.release()).toBe(true)
    }
  })
})

describe.each([true, false])('a half-open connection costs about waiterTtl, not the lock (fair: %s)', fair => {
  const waiterTtl = 3_000

  test('that of the subscriber', async () => {
    const key = freshKey()
    const { locks, messages } = await clientOnTwoWays({ waiterTtl })
    const held = await client().lock(key)
    const { lease: wait } = await parkAndListen(locks, key, fair)
    const noticed = fallSilent(messages, 4 * waiterTtl)
    await sleep(50)
    await held.release()
    await within(waiterTtl, wait)
    await noticed
  })

  test('both connections', async () => {
    const key = freshKey()
    const { locks, messages, commands } = await clientOnTwoWays({ waiterTtl, outageTimeout: 4_000 })
    const held = await client().lock(key)
    const { lease: wait } = await parkAndListen(locks, key, fair)
    const noticed = Promise.all([messages, commands].map(way => fallSilent(way, 4 * waiterTtl)))
    await sleep(50)
    await held.release()
    await within(2 * waiterTtl, wait)
    await noticed
  })
})

test('a half-open subscriber is noticed by itself, before any heartbeat', { timeout: 40_000 }, async () => {
  const key = freshKey()
  const { locks, messages } = await clientOnTwoWays(noHeartbeat)
  const held = await client().lock(key)
  const { lease: wait } = await parkAndListen(locks, key, false)
  const noticed = fallSilent(messages, 15_000)
  await sleep(50)
  await held.release()
  await within(15_000, wait)
  await noticed
})

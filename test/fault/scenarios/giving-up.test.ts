/** A waiter that gives up just when it is granted: the lock goes on to the next at once, and nothing of it stays (I4, I7). */
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type LockClient, type LockOptions, LockTimeoutError } from '../../../src/index.ts'
import { within } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { client, freshKey, nothingLeft, plainRedis, redisUrl } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { clientOnTwoWays, reconnect } from './two-ways.ts'

/** No heartbeat and no lapse can help the next waiter: it is the leaving one that has to pass the lock on. */
const options = { waiterTtl: 60_000, lease: 60_000 }
/** How long the waiter waits, in ms. */
const patience = 25
/** When the release is called: from before that to after it, in small steps; and two at which the outcome is sure. */
const moments = Array.from({ length: 40 }, (_, i) => ({ patience, moment: patience - 5 + i / 5 }))
moments.push({ patience: 10_000, moment: 0 }, { patience, moment: 2 * patience })
const cancelled = new Error('cancelled')

interface Parties {
  holder: LockClient
  quitter: LockClient
  next: LockClient
  /** To look with. */
  redis: Redis
}

/** How the waiter gives up: what it passes to `lock`, and what it then gets. */
const ways: Record<string, { patient(ms?: number): LockOptions; reason: (error: unknown) => boolean }> = {
  'times out': {
    patient: (ms = patience) => ({ timeout: ms }),
    reason: error => error instanceof LockTimeoutError,
  },
  'is aborted': {
    patient: (ms = patience) => {
      const controller = new AbortController()
      setTimeout(() => controller.abort(cancelled), ms).unref()
      return { signal: controller.signal }
    },
    reason: error => error === cancelled,
  },
}

/** Not now, nor a moment later. */
async function nothingQueued(locks: LockClient, key: string): Promise<void> {
  await sleep(100)
  await eventually(async () => (await locks.inspect(key)).waiters.length === 0)
}

async function until(moment: number): Promise<void> {
  await sleep(Math.max(0, moment - performance.now() - 3))
  while (performance.now() < moment) await turn()
}

/** One release, at that moment after the waiter began; whether that waiter got the lock. */
async function race(parties: Parties, fair: boolean, way: string, at: (typeof moments)[number]): Promise<boolean> {
  const { holder, quitter, next, redis } = parties
  const { patient, reason } = ways[way]!
  const key = freshKey()
  const held = await holder.lock(key)
  const begin = performance.now()
  const refused = new Promise(resolve => quitter.once('waiting', resolve))
  const outcome = quitter.lock(key, { fair, ...patient(at.patience) }).then(
    lease => lease.release(),
    error => {
      if (!reason(error)) throw error
      return false
    },
  )
  await Promise.race([refused, outcome])
  const { lease: wait } = await park(next, key, { fair })

  await until(begin + at.moment)
  const released = held.release()
  const value = await within(1_000, wait, `released after ${at.moment} ms`)
  expect(await released).toBe(true)
  expect(await value.release()).toBe(true)
  const granted = await outcome
  await nothingLeft(redis, next, key)
  return granted
}

describe.each(Object.keys(ways))('a waiter that %s around the moment of its grant passes the lock on at once', way => {
  test.each([
    { fair: true, where: 'another client' },
    { fair: true, where: 'the same client' },
    { fair: false, where: 'another client' },
    { fair: false, where: 'the same client' },
  ])('to a waiter of $where (fair: $fair)', { timeout: 40_000 }, async ({ fair, where }) => {
    const quitter = client(options)
    const next = where === 'the same client' ? quitter : client(options)
    const parties = { holder: client(options), quitter, next, redis: plainRedis() }
    const outcomes = new Set<boolean>()
    for (const moment of moments) outcomes.add(await race(parties, fair, way, moment))
    expect(outcomes).toEqual(new Set([true, false]))
    for (const locks of [parties.holder, quitter, next]) {
      expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0, lost: 0 })
    }
  })

  test('though it has not been told of the grant', async () => {
    const key = freshKey()
    const { locks, messages } = await clientOnTwoWays(options)
    const held = await client().lock(key)
    const { patient, reason } = ways[way]!
    messages.swallow('down')
    const refused = new Promise(resolve => locks.once('waiting', resolve))
    const outcome = locks.lock(key, { fair: true, ...patient() }).catch(reason)
    await refused
    const { lease: wait } = await park(client(options), key, { fair: true })
    await held.release()
    const value = await within(1_000, wait)
    expect(await outcome).toBe(true)
    expect(await value.release()).toBe(true)
    await nothingLeft(plainRedis(), client(), key)
  })

  test('though the reply to the attempt that it was woken for is lost', async () => {
    const key = freshKey()
    const { locks, commands } = await clientOnTwoWays(options)
    const other = client(options)
    const held = await client().lock(key)
    const { patient, reason } = ways[way]!
    const refused = new Promise(resolve => locks.once('waiting', resolve))
    const outcome = locks.lock(key, { ...patient() }).catch(reason)
    await refused
    const { lease: behind } = await park(locks, key)
    commands.swallow('down')
    await held.release()
    expect(await outcome).toBe(true)

    const lease = await within(1_000, other.lock(key))
    reconnect(commands)
    await lease.release()
    const next = await within(1_000, behind)
    expect(await next.release()).toBe(true)
    await nothingLeft(plainRedis(), other, key)
    expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0 })
  })

  test('though its own request is answered much later', async () => {
    const key = freshKey()
    const { locks, commands } = await clientOnTwoWays(options)
    const next = client(options)
    const { patient, reason } = ways[way]!
    for (const lost of ['down', 'up'] as const) {
      commands.swallow(lost)
      expect(await locks.lock(key, { fair: true, ...patient() }).catch(reason)).toBe(true)
      // From here on its request is repeated, granted perhaps, and taken back.
      reconnect(commands)
      const value = await within(1_000, next.lock(key, { fair: true }))
      expect(await value.release()).toBe(true)
      await nothingLeft(plainRedis(), next, key)
    }
  })

  test('though its request arrives once more after it has left', async () => {
    const key = freshKey()
    const { locks, commands } = await clientOnTwoWays(options)
    const [holder, next] = [client(options), client(options)]
    const { patient, reason } = ways[way]!
    const held = await holder.lock(key)
    let request: Buffer | undefined
    commands.filter((direction, data) => {
      if (direction === 'up' && String(data).includes(key)) request ??= data
      return undefined
    })
    expect(await locks.lock(key, { fair: true, ...patient() }).catch(reason)).toBe(true)
    reconnect(commands)
    await locks.isLocked(key)
    await nothingQueued(locks, key)

    const { hostname, port } = new URL(redisUrl())
    const network = connect(Number(port), hostname)
    onTestFinished(() => {
      network.destroy()
    })
    network.write(request as Buffer)
    await eventually(async () => (await holder.inspect(key)).waiters.length === 1)
    const { lease: wait } = await park(next, key, { fair: true })
    await held.release()
    const value = await within(1_000, wait)
    expect(await value.release()).toBe(true)
    await nothingLeft(plainRedis(), next, key)
  })
})

test('a queue of waiters that all give up at once leaves the lock to the one that does not', async () => {
  const key = freshKey()
  const [locks, patientOne] = [client(options), client(options)]
  const held = await client().lock(key)
  const controller = new AbortController()
  const quitting = Array.from({ length: 100 }, (_, i) =>
    locks.lock(key, { fair: i % 2 === 0, signal: controller.signal }).catch(error => error),
  )
  await eventually(async () => (await locks.inspect(key)).waiters.length === 50)
  const { lease: wait } = await park(patientOne, key, { fair: true })
  const released = held.release()
  controller.abort(cancelled)
  const value = await within(1_000, wait)
  expect(new Set(await Promise.all(quitting))).toEqual(new Set([cancelled]))
  expect(await released).toBe(true)
  expect(await value.release()).toBe(true)
  await nothingLeft(plainRedis(), locks, key)
  expect(locks.stats().waiting).toBe(0)
})

/** Steps that many scenarios are made of. */
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import type { Lease, LockClient, LockOptions } from '../../src/index.ts'
import { keysWith } from './redis.ts'
import { eventually } from './time.ts'

/** Waiters of a client, parked when this resolves; the unfair ones never join the queue. They may be left without an outcome. */
export async function park(locks: LockClient, key: string, count: number, options: LockOptions = {}) {
  const waiting = locks.stats().waiting
  let refused = 0
  const listen = (event: { key: string }) => {
    if (event.key === key) refused += 1
  }
  locks.on('waiting', listen)
  const waits = Array.from({ length: count }, () => {
    const wait = locks.lock(key, { fairAfter: Number.POSITIVE_INFINITY, ...options })
    wait.catch(() => {})
    return wait
  })
  // Of unfair waiters only the first one of a client asks; those behind it are parked by standing in line.
  if (options.fair) await eventually(() => refused === count)
  else await eventually(() => locks.stats().waiting === waiting + count && (refused > 0 || waiting > 0))
  locks.off('waiting', listen)
  return waits
}

/** One waiter, parked. Wrapped, because a promise in a promise would be waited for. */
export async function parkOne(locks: LockClient, key: string, options: LockOptions = {}) {
  const [wait] = await park(locks, key, 1, options)
  return { wait: wait as Promise<Lease> }
}

/** What the promise resolves to; fails if that takes longer than `limit` ms from now. */
export async function within<T>(limit: number, promise: Promise<T>, when = 'from now'): Promise<T> {
  const begin = performance.now()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limit} ms ${when}`)), limit + 100)
  })
  try {
    const value = await Promise.race([promise, late])
    expect(performance.now() - begin, when).toBeLessThan(limit)
    return value
  } finally {
    clearTimeout(timer)
  }
}

/** Fails unless the lock is soon free with nobody queued. Memory of its tokens and of heartbeats expires by itself. */
export async function nothingLeft(redis: Redis, locks: LockClient, key: string): Promise<void> {
  await eventually(async () => {
    const { locked, holds, waiters } = await locks.inspect(key)
    return !locked && holds === 0 && waiters.length === 0
  })
  await eventually(async () => (await keysWith(redis, `{${key}}:queue`)).length === 0)
  for (const name of await keysWith(redis, key)) expect(await redis.pttl(name), name).not.toBe(-1)
}

/** Adds 1 to a number that is read and written apart. */
export async function increment(redis: Redis, name: string): Promise<void> {
  const value = Number(await redis.get(name))
  await redis.set(name, value + 1, 'PX', 60_000)
}

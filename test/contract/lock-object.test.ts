/**
 * Tests `mutex(key)`, which returns a key's lock as an object. The lock is the same as in calls by key, so these tests
 * cover only what is special to the object.
 */
import { expect } from 'vitest'
import { LockArgumentError, LockLostError } from '../../src/index.ts'
import { rejection } from '../kit/outcomes.ts'
import { freshKey, test } from '../kit/redis.ts'

test('I1 the object is the same lock that calls by key take', async ({ locks, other, key }) => {
  const lock = locks.mutex(key)
  expect(lock.key).toBe(key)
  const lease = await lock.lock()
  expect(await other.mutex(key).tryLock()).toBeNull()
  expect(await other.tryLock(key)).toBeNull()
  expect(await lock.inspect()).toEqual(expect.objectContaining({ locked: true, owner: lease.owner }))
  expect(await lease.release()).toBe(true)
  const next = await other.tryLock(key, { lease: 5_000 })
  expect(await lock.tryLock({ timeout: 300 })).toBeNull()
  await next!.release()
})

test('using: the lease, the result, re-entry by either name, and the lock is free afterwards', async ({ locks }) => {
  const lock = locks.mutex(freshKey())
  const token = await lock.using(lease => lease.fencingToken)
  const inner = await lock.using({ fair: true }, outer =>
    locks.using(lock.key, a => lock.using(b => [outer, a, b].map(({ fencingToken }) => fencingToken))),
  )
  expect(new Set(inner).size).toBe(1)
  expect(inner[0]).toBeGreaterThan(token)
  expect(await locks.isLocked(lock.key)).toBe(false)
})

test('wrap: the parameters and the result of the function, under the lock', async ({ locks }) => {
  const lock = locks.mutex(freshKey())
  const add = lock.wrap(async (a: number, b: number) => {
    expect(await locks.isLocked(lock.key)).toBe(true)
    return a + b
  })
  expect(await add(1, 2)).toBe(3)
  expect(await locks.isLocked(lock.key)).toBe(false)
  const taken = lock.wrap(() => locks.forceRelease(lock.key))
  await rejection(taken(), LockLostError)
})

test('bad arguments are reported before anything is sent', async ({ locks }) => {
  expect(() => locks.mutex('')).toThrow(LockArgumentError)
  const lock = locks.mutex(freshKey())
  expect(() => lock.wrap(undefined as never)).toThrow(LockArgumentError)
  expect(() => lock.wrap(() => {}, { lease: 0 })).toThrow(LockArgumentError)
  await rejection(lock.lock({ timeout: -1 }), LockArgumentError)
  await rejection(lock.using({} as never), LockArgumentError)
})

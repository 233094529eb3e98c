/** Tests `all`, which takes several locks in one call. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import { LockArgumentError, type LockClient, LockLostError, LockTimeoutError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { aborted, promptly, rejection } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** Returns fresh keys in sorted order, the order in which `all` takes locks. */
function freshKeys(count: number): string[] {
  return Array.from({ length: count }, () => freshKey()).sort()
}

/**
 * Waits until all keys are free. After an `all` call has failed, its client releases the call's locks in the
 * background.
 */
async function allFree(locks: LockClient, keys: readonly string[]): Promise<void> {
  for (const key of keys) await eventually(async () => !(await locks.isLocked(key)))
}

describe('the lease of several locks', () => {
  test('contains a lease of each lock, in the order of their names, each once', async ({ locks, other }) => {
    const [a, b] = freshKeys(2) as [string, string]
    const lease = await locks.all([b, locks.mutex(a), b, a]).lock({ lease: 10_000 })
    expect(lease.leases.map(({ key }) => key)).toEqual([a, b])
    expect([...lease.fencingTokens]).toEqual(lease.leases.map(({ key, fencingToken }) => [key, fencingToken]))
    expect([lease.held, lease.signal.aborted]).toEqual([true, false])
    expect(await other.tryLock(a)).toBeNull()
    expect(await other.tryLock(b)).toBeNull()
    expect(lease.remaining()).toBeLessThanOrEqual(10_000)
    await lease.renew(30_000)
    expect(lease.remaining()).toBeGreaterThan(20_000)
    expect([await lease.release(), await lease.release(), lease.held]).toEqual([true, false, false])
    for (const key of [a, b]) expect(await other.isLocked(key)).toBe(false)
  })

  test('I8 is no longer held, and its signal aborts, as soon as one part is lost; the other parts are released', async () => {
    const [locks, other] = clients(2)
    const [a, b] = freshKeys(2) as [string, string]
    const lease = await locks!.all([a, b]).lock()
    await other!.forceRelease(b)
    await promptly(aborted(lease.signal))
    expect(lease.signal.reason).toBeInstanceOf(LockLostError)
    expect([lease.held, lease.remaining()]).toEqual([false, 0])
    await rejection(lease.renew(), LockLostError)
    expect(await lease.release()).toBe(false)
    expect(await other!.isLocked(a)).toBe(false)
  })

  test('using rejects with LockLostError if its function ends by the signal, because one part is lost', async () => {
    const [locks, other] = clients(2)
    const [a, b] = freshKeys(2) as [string, string]
    const run = locks!.all([a, b]).using(async ({ signal }) => {
      await other!.forceRelease(b)
      await pause(30_000, undefined, { signal })
    })
    expect(await rejection(run, LockLostError)).toMatchObject({ key: b, cause: { name: 'AbortError' } })
  })
})

test('of single attempts at one moment, those that get a part too few keep nothing, and no two get the same lock', async () => {
  const all = clients(10)
  for (let round = 0; round < 10; round++) {
    const keys = freshKeys(10)
    const calls = all.map((locks, i) => locks.all([0, 1, 2].map(n => keys[(i + n) % 10]!)).tryLock())
    const winners = (await Promise.all(calls)).filter(lease => lease !== null)
    const held = winners.flatMap(({ leases }) => leases.map(lease => lease.key))
    expect(new Set(held).size).toBe(held.length)
    await Promise.all(winners.map(lease => lease.release()))
    await allFree(all[0]!, keys)
  }
})

describe('all or none', () => {
  test('one timeout covers all parts; after it no part is held', async ({ locks, other }) => {
    const [a, b, c] = freshKeys(3) as [string, string, string]
    const first = await other.lock(a)
    const last = await other.lock(c)
    const call = locks.all([a, b, c]).lock({ timeout: 600 })
    await sleep(300)
    await first.release()
    const error = await rejection(call, LockTimeoutError)
    expect(error.key).toBe(c)
    expect(error.waited).toBeGreaterThanOrEqual(599)
    expect(error.holder).toBeDefined()
    expect(await locks.all([b, c]).tryLock({ timeout: 300 })).toBeNull()
    await allFree(other, [a, b])
    await last.release()
  })

  test('I4 a caller that waits for the first lock holds none of the later ones', async ({ locks, other }) => {
    const [a, b] = freshKeys(2) as [string, string]
    const held = await other.lock(a)
    const call = locks.all([a, b]).lock()
    // If the waiting call already held b, the other client could not get b before a is released.
    await (await promptly(other.lock(b))).release()
    await held.release()
    await (await promptly(call)).release()
  })

  test('I8 if one lock is lost while another is waited for, the wait ends', async ({ locks, other }) => {
    const [a, b] = freshKeys(2) as [string, string]
    const held = await other.lock(b)
    const parked = new Promise(resolve => locks.once('waiting', resolve))
    const call = locks.all([a, b]).lock()
    await parked
    // The call may reject before `forceRelease` resolves. So the test listens for the rejection first.
    const lost = rejection(call, LockLostError)
    await other.forceRelease(a)
    await promptly(lost)
    await held.release()
    await allFree(other, [a, b])
  })
})

test('callers with the same parts in different orders never deadlock', async () => {
  const keys = freshKeys(3)
  let inside = 0
  const work = clients(3).flatMap((locks, c) =>
    Array.from({ length: 40 }, (_, i) => {
      const some = [keys[(c + i) % 3]!, keys[(c + 2 * i + 1) % 3]!, ...(i % 3 === 0 ? keys : [])]
      return locks.all(some).using({ fair: i % 2 === 0 }, async lease => {
        if (lease.leases.length === 3) inside += 1
        expect(inside).toBeLessThanOrEqual(1)
        await sleep(i % 2)
        if (lease.leases.length === 3) inside -= 1
      })
    }),
  )
  await Promise.all(work)
})

test('fair: no later caller gets ahead of a waiting call', async ({ locks, other }) => {
  const [a, b] = freshKeys(2) as [string, string]
  const held = await other.lock(b)
  const parked = new Promise(resolve => locks.once('waiting', resolve))
  const call = locks.all([a, b]).lock({ fair: true })
  await parked
  const later = await park(other, b, { fair: true })
  await held.release()
  const lease = await promptly(call)
  expect(await other.tryLock(b)).toBeNull()
  await lease.release()
  await (await later.lease).release()
})

test('using and wrap re-enter each part, return the result, and free all parts afterwards', async ({ locks }) => {
  const [a, b] = freshKeys(2) as [string, string]
  const both = locks.all([a, b])
  const tokens = await both.using(async lease => {
    const inner = await Promise.all([locks.using(a, l => l.fencingToken), locks.using(b, l => l.fencingToken)])
    expect(inner).toEqual(lease.leases.map(({ fencingToken }) => fencingToken))
    return both.using(again => [...again.fencingTokens])
  })
  expect(tokens.map(([key]) => key)).toEqual([a, b])
  const add = both.wrap(async (x: number, y: number) => x + y, { timeout: 1_000 })
  expect(await add(1, 2)).toBe(3)
  await rejection(
    both.using(() => locks.forceRelease(a)),
    LockLostError,
  )
  await expect(both.using(() => Promise.reject(new RangeError('mine')))).rejects.toThrow('mine')
  for (const key of [a, b]) expect(await locks.isLocked(key)).toBe(false)
})

test('bad arguments are reported before anything is sent', async ({ locks, other }) => {
  for (const parts of [[], 'ab', [''], [1], [other.mutex('a')], [{}], undefined]) {
    expect(() => locks.all(parts as never)).toThrow(LockArgumentError)
  }
  if (kindsHere.length > 1) {
    expect(() => locks.all([locks.readWrite('k') as never])).toThrow(/of a read-write lock, its `read` or `write`/)
  }
  expect(() => locks.all([locks.semaphore('k', 1), locks.semaphore('k', 5)])).toThrow(LockArgumentError)
  const both = locks.all(freshKeys(2))
  expect(() => both.wrap('no function' as never)).toThrow(LockArgumentError)
  await rejection(both.lock({ lease: 0 }), LockArgumentError)
  await rejection(both.tryLock({ nonsense: 1 } as never), LockArgumentError)
})

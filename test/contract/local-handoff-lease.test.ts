/** Tests that a lease from a local hand-off behaves exactly as a lease from Redis does. */
import { describe, expect } from 'vitest'
import { type Lease, type LockClient, LockLostError } from '../../src/index.ts'
import { aborted, heard, promptly, rejection } from '../kit/outcomes.ts'
import { ownPlace } from '../kit/place.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { handedOn } from './leases.ts'

test('inspect shows the lease after it was held for a moment', async ({ locks, other, key }) => {
  const { lease } = await handedOn(locks, key)
  const { owner, fencingToken } = lease
  const state = await eventually(async () => {
    const seen = await other.inspect(key)
    return seen.fencingToken === fencingToken ? seen : undefined
  })
  expect(state).toMatchObject({ locked: true, owner, holds: 1 })
  expect(state!.ttl).toBeGreaterThan(20_000)
})

test('I8: forceRelease aborts its signal, not its predecessor’s, and the next waiter is served', async ({ key }) => {
  const [locks, other] = clients(2)
  const { lease, predecessor, behind } = await handedOn(locks!, key, {}, 1)
  const lost = heard(locks!, 'lost')
  const abort = aborted(lease.signal)
  expect(await other!.forceRelease(key)).toBe(true)
  await promptly(abort)
  expect(lease.signal.reason).toBeInstanceOf(LockLostError)
  expect([lease.held, predecessor.signal.aborted]).toEqual([false, false])
  expect(lost).toMatchObject([{ key, fencingToken: lease.fencingToken }])
  const next = await promptly(behind[0]!)
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken)
  expect([await lease.release(), await next.release()]).toEqual([false, true])
})

test('I8: forceRelease amid many hand-offs stops the run, and all callers are served', async ({ key }) => {
  const [locks, other] = clients(2)
  let served = 0
  const crowd = Array.from({ length: 400 }, (_, i) =>
    locks!.using(key, async () => {
      served += 1
      if (i % 5 === 0) await new Promise(setImmediate)
    }),
  )
  const settled = Promise.allSettled(crowd)
  for (let i = 0; i < 10; i++) await other!.forceRelease(key)
  const failed = (await promptly(settled)).filter(({ status }) => status === 'rejected')
  expect(served).toBe(400)
  for (const outcome of failed) expect(outcome).toMatchObject({ reason: { code: 'ERR_LOCK_LOST' } })
  expect(failed.length).toBeLessThanOrEqual(10)
  // A caller may get the lock by local hand-off while its own request is under way. If Redis then grants that request,
  // the client releases the second grant in the background. So the lock is free soon, long before the lease of the
  // second grant would end.
  await eventually(async () => !(await other!.isLocked(key)))
})

describe('renewal', () => {
  test('continues for the lease, under the hold that Redis knows', async ({ locks, other, key }) => {
    const { lease } = await handedOn(locks, key, { lease: 600, renew: true })
    const renewed = heard(locks, 'renewed')
    await eventually(() => renewed.length >= 4, 10_000)
    expect([lease.held, lease.signal.aborted]).toEqual([true, false])
    expect(renewed[0]).toEqual({ key, fencingToken: lease.fencingToken })
    expect(await other.inspect(key)).toMatchObject({ owner: lease.owner, fencingToken: lease.fencingToken })
    expect(await lease.release()).toBe(true)
    expect(await other.isLocked(key)).toBe(false)
  })

  test('ends with maxHold, counted from its own grant', async ({ locks, other, key }) => {
    const { lease } = await handedOn(locks, key, { lease: 300, renew: true, maxHold: 500 })
    const begun = performance.now()
    const next = other.lock(key)
    await promptly(aborted(lease.signal))
    expect(performance.now() - begun).toBeGreaterThan(400)
    expect((await promptly(next)).fencingToken).toBeGreaterThan(lease.fencingToken)
  })

  test('by hand, of its predecessor: the extra time does not carry over (I4)', async ({ locks, stranger, key }) => {
    const holder = await stranger.lock(key)
    const waits = heard(locks, 'waiting')
    const options = { lease: 30_000 }
    const calls = [0, 1, 2].map(() => locks.lock(key, options))
    await eventually(() => waits.length === calls.length)
    await holder.release()
    const first = await calls[0]!
    await first.renew(600_000)
    await first.release()
    const second = await calls[1]!
    expect(second.remaining()).toBeLessThanOrEqual(30_000)
    expect((await stranger.inspect(key)).ttl).toBeLessThanOrEqual(30_000)
    await second.release()
    await (await calls[2]!).release()
  })
})

test('I1, I8: a fixed lease runs out on time, and then others can take the lock', async ({ locks, other, key }) => {
  const { lease } = await handedOn(locks, key, { lease: 400 })
  const next = other.lock(key)
  await promptly(aborted(lease.signal))
  expect([lease.held, await lease.release()]).toEqual([false, false])
  expect((await promptly(next)).fencingToken).toBeGreaterThan(lease.fencingToken)
})

/** Ways to take a lock inside a hold of the same lock. */
const nestings: Record<string, (locks: LockClient, key: string) => Promise<Lease | null>> = {
  lock: (locks, key) => locks.lock(key, { timeout: 5_000 }),
  'lock, fair': (locks, key) => locks.lock(key, { fair: true, timeout: 5_000 }),
  tryLock: (locks, key) => locks.tryLock(key),
  'tryLock that waits': (locks, key) => locks.tryLock(key, { timeout: 5_000 }),
}

/**
 * Starts several `using` calls at once, and runs `inside` in the first lease that comes from a local hand-off. If no
 * lease comes from a local hand-off, starts the calls again.
 */
async function insideHandedOn(locks: LockClient, key: string, inside: (lease: Lease) => Promise<void>): Promise<void> {
  for (let done = false; !done; ) {
    await Promise.all(
      Array.from({ length: 4 }, () =>
        locks.using(key, async lease => {
          if (done || lease.via !== 'handoff') return
          done = true
          await inside(lease)
        }),
      ),
    )
  }
}

describe('re-entry works at once', () => {
  test.each(Object.keys(nestings))('%s', async name => {
    const [locks, other] = clients(2)
    const key = freshKey()
    await insideHandedOn(locks!, key, async lease => {
      const nested = await promptly(nestings[name]!(locks!, key))
      expect(nested).toMatchObject({ via: 'reentry', owner: lease.owner, fencingToken: lease.fencingToken })
      expect(await other!.inspect(key)).toMatchObject({ owner: lease.owner, holds: 2 })
      expect(await nested!.release()).toBe(true)
      expect(lease.held).toBe(true)
      expect(await other!.tryLock(key)).toBeNull()
    })
    expect(await other!.isLocked(key)).toBe(false)
  })

  test.each(Object.keys(nestings))(
    '%s: even if the server has forgotten all scripts',
    async name => {
      const own = await ownPlace()
      const [locks, admin] = [client({}, own.source()), own.admin()]
      const key = freshKey()
      for (let i = 0; i < 5; i++) {
        // Redis now answers the first call of each script with NOSCRIPT. The client repeats that call, but later calls
        // may run before the repeated one.
        await admin.each(redis => redis.script('FLUSH'))
        await insideHandedOn(locks, key, async lease => {
          const nested = await promptly(nestings[name]!(locks, key))
          expect(nested).toMatchObject({ via: 'reentry', fencingToken: lease.fencingToken })
          await nested!.release()
        })
      }
      expect(await locks.isLocked(key)).toBe(false)
    },
    30_000,
  )

  test('while the nested lease lasts, its outer lease is not handed on', async ({ locks, key }) => {
    const { lease, behind } = await handedOn(locks, key, {}, 1)
    const nested = await locks.lock(key, { owner: lease.owner })
    await lease.release()
    await sleep(20)
    expect(locks.stats()).toMatchObject({ waiting: 1, holding: 1 })
    await nested.release()
    const next = await promptly(behind[0]!)
    expect(next.fencingToken).toBeGreaterThan(nested.fencingToken)
    await next.release()
  })
})

test('I8: using rejects if the lock was lost while the function ran', async ({ locks, other, key }) => {
  const lost: Promise<unknown>[] = []
  for (let done = false; !done; ) {
    const crowd = Array.from({ length: 4 }, () =>
      locks.using(key, async lease => {
        if (done || lease.via !== 'handoff') return
        done = true
        await other.forceRelease(key)
        await promptly(aborted(lease.signal))
      }),
    )
    await Promise.allSettled(crowd)
    lost.push(...crowd)
  }
  const outcomes = await Promise.allSettled(lost)
  const [failed] = outcomes.flatMap((outcome, i) => (outcome.status === 'rejected' ? [lost[i]!] : []))
  expect((await rejection(failed!, LockLostError)).key).toBe(key)
  expect(await other.isLocked(key)).toBe(false)
})

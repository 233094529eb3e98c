/**
 * Tests the behaviour that only semaphores have. Other tests cover waiting, leases and outages, for all kinds of lock
 * together.
 */
import { describe, expect } from 'vitest'
import {
  type Lease,
  type Lock,
  LockArgumentError,
  type LockError,
  LockLostError,
  LockTimeoutError,
} from '../../src/index.ts'
import type { SemaphoreOptions } from '../../src/options.ts'
import { aborted, collect, heard, promptly, rejection, settles } from '../kit/outcomes.ts'
import { parkAt } from '../kit/parking.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

describe('I1 never more than the given number of permits is taken', () => {
  test('not by single attempts of several clients', async ({ key }) => {
    const parts = clients(3).map(locks => locks.semaphore(key, 2))
    const [a, b] = await Promise.all([parts[0]!.tryLock(), parts[1]!.tryLock()])
    expect(await parts[2]!.tryLock()).toBeNull()
    await a!.release()
    const c = await parts[2]!.tryLock()
    expect(c!.fencingToken).toBeGreaterThan(b!.fencingToken)
    expect(await parts[0]!.tryLock()).toBeNull()
    for (const lease of [b, c]) expect(await lease!.release()).toBe(true)
  })

  test('not by requests for several permits', async () => {
    const semaphore = client().semaphore(freshKey(), 5)
    const three = await semaphore.lock({ permits: 3 })
    expect(await semaphore.tryLock({ permits: 3 })).toBeNull()
    const two = await semaphore.lock({ permits: 2 })
    expect(await semaphore.tryLock()).toBeNull()
    await three.release()
    const one = await semaphore.tryLock()
    expect(await semaphore.inspect()).toMatchObject({ taken: 3, permits: 5, holds: 2 })
    await Promise.all([two.release(), one!.release()])
    expect(await semaphore.inspect()).toMatchObject({ locked: false, taken: 0 })
  })

  test.for([false, true])('not under contention, fair %s; and often all permits are taken', async (fair, { key }) => {
    const most = 5
    let taken = 0
    let largest = 0
    const tokens: number[] = []
    const work = clients(3).flatMap(locks =>
      Array.from({ length: 60 }, async (_, i) => {
        const permits = 1 + (i % 3)
        await locks.semaphore(key, most).using({ permits, fair }, async lease => {
          taken += permits
          largest = Math.max(largest, taken)
          tokens.push(lease.fencingToken)
          await sleep(i % 4)
          taken -= permits
        })
      }),
    )
    await Promise.all(work)
    expect(largest).toBe(most)
    expect(new Set(tokens).size).toBe(180)
    expect(await client().semaphore(key, most).inspect()).toMatchObject({ locked: false, taken: 0, waiters: [] })
  })

  test('each request is judged by its own number of permits', async ({ key }) => {
    const [small, large] = clients(2).map((locks, i) => locks.semaphore(key, 2 + i)) as [Lock, Lock]
    const leases = [await small.lock(), await small.lock()]
    expect(await small.tryLock()).toBeNull()
    leases.push((await large.tryLock())!)
    expect(await large.tryLock()).toBeNull()
    expect(await large.inspect()).toMatchObject({ permits: 3, taken: 3 })
    await leases.pop()!.release()
    expect(await small.tryLock()).toBeNull()
    for (const lease of leases) await lease.release()
  })
})

test('a refused caller is warned once per semaphore if others use it with another number of permits', async () => {
  const [small, large] = [client({ label: 'small' }), client({ label: 'large' })]
  const [one, two] = [freshKey(), freshKey()]
  const [toldSmall, toldLarge] = [heard(small, 'error'), heard(large, 'error')]
  for (const key of [one, two]) {
    const held = await large.semaphore(key, 3).lock({ permits: 3 })
    for (let i = 0; i < 3; i++) expect(await small.semaphore(key, 2).tryLock()).toBeNull()
    expect(await large.semaphore(key, 3).tryLock()).toBeNull()
    await held.release()
  }
  const codes = toldSmall.map(({ error }) => [(error as LockError).code, (error as LockError).key])
  expect(codes).toEqual([one, two].map(key => ['ERR_LOCK_PERMITS', key]))
  const text = `semaphore "${one}": this call sets permits to 2, but the holder large set it to 3; pass the same number in all calls, because each call is limited only by its own number`
  expect((toldSmall[0]!.error as LockError).message).toBe(text)
  expect(toldLarge).toEqual([])
  const lock = small.readWrite(one)
  const writing = await lock.write.lock()
  expect(await lock.read.tryLock()).toBeNull()
  await writing.release()
  expect(toldSmall).toHaveLength(2)
})

test('a mutex and a semaphore of the same key are different locks', async ({ locks, key }) => {
  const mutex = await locks.lock(key)
  const permit = await locks.semaphore(key, 1).tryLock()
  expect(permit).not.toBeNull()
  expect(await locks.inspect(key)).toMatchObject({ kind: 'mutex', holders: [{ id: mutex.id }] })
  const state = await locks.semaphore(key, 1).inspect()
  expect(state).toMatchObject({ kind: 'semaphore', holders: [{ id: permit!.id, permits: 1 }] })
  expect((await collect(locks.list(key))).map(({ kind }) => kind).sort()).toEqual(['mutex', 'semaphore'])
  await Promise.all([mutex.release(), permit!.release()])
})

test('a semaphore is not re-entrant', async () => {
  const semaphore = client().semaphore(freshKey(), 2)
  await semaphore.using({ owner: 'me' }, async outer => {
    const inner = await semaphore.lock({ owner: 'me' })
    expect(inner.fencingToken).toBeGreaterThan(outer.fencingToken)
    expect(inner.via).toBe('immediate')
    expect(await semaphore.tryLock({ owner: 'me' })).toBeNull()
    await inner.release()
  })
})

describe('I3 fair: strictly first come, first served', () => {
  test('no request passes a larger one at the head', async ({ key }) => {
    const [one, two] = clients(2).map(locks => locks.semaphore(key, 3)) as [
      Lock<SemaphoreOptions>,
      Lock<SemaphoreOptions>,
    ]
    const a = await one.lock()
    const b = await one.lock()
    const large = await parkAt(one, 1, { permits: 3 })
    const small = await parkAt(two, 2)
    // One permit is free, but the request at the head of the queue wants more than one.
    expect(await two.tryLock()).toBeNull()
    await a.release()
    expect(await settles(Promise.race([large.lease, small.lease]), 50)).toBe(false)
    await b.release()
    const lease = await promptly(large.lease)
    expect([lease.via, await settles(small.lease, 50)]).toEqual(['handoff', false])
    await lease.release()
    await (await promptly(small.lease)).release()
  })

  test('one release admits as many as fit, in their order', async ({ key }) => {
    const [one, two] = clients(2).map(locks => locks.semaphore(key, 4)) as [
      Lock<SemaphoreOptions>,
      Lock<SemaphoreOptions>,
    ]
    const all = await one.lock({ permits: 4 })
    const wants = [1, 2, 1, 1]
    const waits: Promise<Lease>[] = []
    for (const [i, permits] of wants.entries()) {
      waits.push((await parkAt(i % 2 ? one : two, i + 1, { permits })).lease)
    }
    await all.release()
    const granted = await promptly(Promise.all(waits.slice(0, 3)))
    const tokens = granted.map(({ fencingToken }) => fencingToken)
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b))
    expect(await settles(waits[3]!, 50)).toBe(false)
    await granted[0]!.release()
    await (await promptly(waits[3]!)).release()
    for (const lease of granted.slice(1)) await lease.release()
  })

  test('I4 a large request that gives up lets in those behind it, at once', async ({ key }) => {
    const [one, two] = clients(2).map(locks => locks.semaphore(key, 2)) as [
      Lock<SemaphoreOptions>,
      Lock<SemaphoreOptions>,
    ]
    const held = await one.lock()
    const abort = new AbortController()
    const large = await parkAt(one, 1, { permits: 2, signal: abort.signal })
    const small = await parkAt(two, 2)
    abort.abort(new Error('enough'))
    await expect(large.lease).rejects.toThrow('enough')
    await (await promptly(small.lease)).release()
    await held.release()
  })
})

describe('I4 unfair waiters', () => {
  test('of one client: a release that frees several permits wakes as many as fit', async ({ holder, waiter, key }) => {
    const all = await holder.semaphore(key, 3).lock({ permits: 3 })
    const waiting = heard(waiter, 'waiting')
    const waits = Array.from({ length: 4 }, () =>
      waiter.semaphore(key, 3).lock({ fairAfter: Number.POSITIVE_INFINITY }),
    )
    await eventually(() => waiting.length === 4)
    await all.release()
    const leases = await promptly(Promise.all(waits.slice(0, 3)))
    for (const { via } of leases) expect(via).toBe('wakeup')
    expect(await settles(waits[3]!, 50)).toBe(false)
    await leases[0]!.release()
    await (await promptly(waits[3]!)).release()
  })

  test('time out, and name a holder', async ({ key }) => {
    const [holder, waiter] = [client({ label: 'the holder' }), client()]
    await holder.semaphore(key, 1).lock()
    const error = await rejection(waiter.semaphore(key, 1).lock({ timeout: 100 }), LockTimeoutError)
    expect(error.holder).toMatchObject({ label: 'the holder' })
  })

  test('do not starve: after fairAfter they join the queue', async ({ holder, waiter, key }) => {
    const held = await holder.semaphore(key, 1).lock()
    const wait = waiter.semaphore(key, 1).lock({ fairAfter: 50 })
    await eventually(async () => (await holder.semaphore(key, 1).inspect()).waiters.length === 1)
    await held.release()
    expect((await promptly(wait)).via).toBe('handoff')
  })
})

describe('leases', () => {
  test('I1, I4 a hold whose lease ends leaves its permits to the waiters', async ({ key }) => {
    const [one, two] = clients(2).map(locks => locks.semaphore(key, 2)) as [
      Lock<SemaphoreOptions>,
      Lock<SemaphoreOptions>,
    ]
    const lease = await one.lock({ permits: 2, lease: 300 })
    const wait = two.lock({ permits: 2, fair: true })
    await promptly(aborted(lease.signal))
    expect(lease.signal.reason).toBeInstanceOf(LockLostError)
    await (await promptly(wait)).release()
    expect(await lease.release()).toBe(false)
  })

  test('are renewed, each separately', async () => {
    const locks = client({ lease: 1_500 })
    const semaphore = locks.semaphore(freshKey(), 3)
    const leases = [await semaphore.lock(), await semaphore.lock({ permits: 2 })]
    await sleep(2_500)
    expect(leases.map(({ held }) => held)).toEqual([true, true])
    await leases[0]!.renew(10_000)
    expect(leases[0]!.remaining()).toBeGreaterThan(5_000)
    for (const lease of leases) expect(await lease.release()).toBe(true)
  })

  test('I5 end once, and only by their own release', async () => {
    const semaphore = client().semaphore(freshKey(), 2)
    const [a, b] = [await semaphore.lock(), await semaphore.lock()]
    expect([await a.release(), await a.release()]).toEqual([true, false])
    expect(await semaphore.inspect()).toMatchObject({ taken: 1, holders: [{ id: b.id }] })
    await b.release()
  })

  test('I7 of a closed client are free, and its waiters are gone', async ({ one, two, key }) => {
    await one.semaphore(key, 2).lock()
    const held = await two.semaphore(key, 2).lock()
    const wait = one.semaphore(key, 2).lock({ fair: true })
    await eventually(async () => (await two.semaphore(key, 2).inspect()).waiters.length === 1)
    await Promise.all([one.close(), expect(wait).rejects.toMatchObject({ code: 'ERR_LOCK_CLOSED' })])
    expect(await two.semaphore(key, 2).inspect()).toMatchObject({ taken: 1, waiters: [] })
    await held.release()
  })
})

test('I5 a waiter whose process has died is passed over', async ({ key }) => {
  const [holder, alive] = clients(2).map(locks => locks.semaphore(key, 1)) as [Lock, Lock]
  const dead = client({ waiterTtl: 600 })
  const held = await holder.lock()
  const gone = dead.semaphore(key, 1).lock({ fair: true })
  await eventually(async () => (await holder.inspect()).waiters.length === 1)
  const wait = alive.lock({ fair: true })
  await eventually(async () => (await holder.inspect()).waiters.length === 2)
  await Promise.all([dead.close(), rejection(gone, Error)])
  await held.release()
  await (await promptly(wait)).release()
})

test('many holders and waiters are shown completely, page by page', async ({ locks }) => {
  const semaphore = locks.semaphore(freshKey(), 1_200)
  const leases = await Promise.all(Array.from({ length: 1_200 }, () => semaphore.lock()))
  const abort = new AbortController()
  const waits = Array.from({ length: 600 }, () => semaphore.lock({ fair: true, signal: abort.signal }))
  const settled = Promise.allSettled(waits)
  await eventually(async () => (await semaphore.inspect()).waiters.length === 600)
  const state = await semaphore.inspect()
  expect(state).toMatchObject({ taken: 1_200, holds: 1_200, permits: 1_200 })
  expect(new Set(state.holders.map(({ id }) => id))).toEqual(new Set(leases.map(({ id }) => id)))
  expect(state.waiters.map(({ position }) => position)).toEqual(Array.from({ length: 600 }, (_, i) => i + 1))
  abort.abort()
  await settled
  await Promise.all(leases.map(lease => lease.release()))
  expect(await semaphore.inspect()).toMatchObject({ taken: 0, holders: [], waiters: [] })
})

test('holders are shown in the order of their grants, whichever lease ends first', async ({ key }) => {
  const semaphore = client().semaphore(key, 4)
  const leases: Lease[] = []
  for (const lease of [40_000, 30_000, 20_000, 10_000]) leases.push(await semaphore.lock({ lease }))
  const { holders, fencingToken, ttl = 0 } = await semaphore.inspect()
  expect(holders.map(({ id }) => id)).toEqual(leases.map(({ id }) => id))
  expect(fencingToken).toBe(leases[0]!.fencingToken)
  expect(ttl).toBeGreaterThan(30_000)
})

test('as a part of several locks', async ({ locks, other }) => {
  const [a, b] = [freshKey(), freshKey()]
  const both = locks.all([a, locks.semaphore(b, 1)])
  const lease = await both.lock()
  expect(await other.semaphore(b, 1).tryLock()).toBeNull()
  expect(await other.semaphore(a, 1).tryLock()).not.toBeNull()
  expect(await lease.release()).toBe(true)
  expect(await other.semaphore(b, 1).tryLock()).not.toBeNull()
})

test('bad arguments are reported before anything is sent', async ({ locks }) => {
  for (const permits of [0, -1, 1.5, Number.NaN, '5', undefined, Number.POSITIVE_INFINITY]) {
    expect(() => locks.semaphore('key', permits as number)).toThrow(LockArgumentError)
  }
  const semaphore = locks.semaphore(freshKey(), 3)
  for (const permits of [0, 4, 1.5, '1'] as number[]) {
    const error = await rejection(semaphore.lock({ permits }), LockArgumentError)
    expect(error.option).toBe('permits')
    expect(() => semaphore.wrap(() => {}, { permits })).toThrow(LockArgumentError)
  }
  await rejection(locks.lock('key', { permits: 1 } as never), LockArgumentError)
})

/** Tests that every call on a quorum does what it does on one server, and that a majority of the servers decides. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { type Lease, LockLostError, LockTimeoutError } from '../../src/index.ts'
import { collect, promptly, rejection } from '../kit/outcomes.ts'
import { park, queueOf } from '../kit/parking.ts'
import { QuorumScene } from '../kit/quorum-scene.ts'
import { freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { expectIncreasing, Room } from '../kit/witness.ts'

/** All tests share these servers, and leave them in working order. */
let scene: QuorumScene
beforeAll(async () => {
  scene = await QuorumScene.start()
})
afterAll(() => scene?.stop())

describe('I1: one holder at a time', () => {
  test('a hold is on every server, and excludes other clients until its release; then nothing of it is left', async () => {
    const [one, two] = scene.clients(2)
    const key = freshKey()
    const lease = await one!.lock(key)
    expect([lease.held, lease.via]).toEqual([true, 'immediate'])
    expect(lease.remaining()).toBeGreaterThan(25_000)
    expect(lease.remaining()).toBeLessThanOrEqual(30_000)
    await scene.heldEverywhere(key, lease.id)
    expect(await two!.tryLock(key)).toBeNull()
    expect(await two!.tryLock(key, { timeout: 100 })).toBeNull()
    expect(await lease.release()).toBe(true)
    expect(await lease.release()).toBe(false)
    await scene.nothingLeft(key)
    expect((await two!.tryLock(key))?.held).toBe(true)
  })

  test('a lock that is released before its minHold has passed stays taken until then, on a majority', async () => {
    const [one, two] = scene.clients(2)
    const key = freshKey()
    const begun = performance.now()
    const lease = await one!.lock(key, { minHold: 1_500, owner: 'job' })
    const { lease: wait } = await park(two!, key, { fair: true })
    expect(await promptly(lease.release())).toBe(true)
    expect(await two!.tryLock(key, { owner: 'job' })).toBeNull()
    expect(await two!.inspect(key)).toMatchObject({ locked: true, holders: [{ id: lease.id }] })
    const next = await promptly(wait)
    expect(performance.now() - begun).toBeGreaterThan(1_490)
    await next.release()
    await scene.nothingLeft(key)
  })

  test.each([true, false])('with many callers of several clients, all of which are granted (fair: %s)', async fair => {
    const room = new Room()
    const key = freshKey()
    const callers = scene.clients(3).flatMap(locks =>
      Array.from({ length: 5 }, async () => {
        for (let i = 0; i < 4; i++) await locks.using(key, { fair }, lease => room.visit(lease))
      }),
    )
    await Promise.all(callers)
    expect([room.most, room.tokens.length]).toEqual([1, 60])
    expectIncreasing(room.tokens)
    await scene.nothingLeft(key)
  })

  test('of clients that try at the same moment at most one is granted, and split votes are taken back', async () => {
    const all = scene.clients(4)
    await Promise.all(all.map(locks => locks.isLocked('any')))
    for (let round = 0; round < 20; round++) {
      const key = freshKey()
      const attempts = await promptly(Promise.all(all.map(locks => locks.tryLock(key))))
      const leases = attempts.filter(attempt => attempt !== null)
      expect(leases.length).toBeLessThanOrEqual(1)
      for (const lease of leases) expect(await lease.release()).toBe(true)
      await scene.nothingLeft(key)
    }
  })
})

test('I2: tokens rise over releases, hand-offs, wake-ups, lapses, forced releases and other clients', async () => {
  const [one, two] = scene.clients(2)
  const key = freshKey()
  const leases: Lease[] = [await one!.lock(key)]
  const queued = await park(two!, key, { fair: true })
  await leases[0]!.release()
  leases.push(await promptly(queued.lease))
  const parked = await park(one!, key)
  await leases[1]!.release()
  leases.push(await promptly(parked.lease))
  expect(await two!.forceRelease(key)).toBe(true)
  leases.push(await two!.lock(key, { lease: 300 }), await one!.lock(key))
  expectIncreasing(leases.map(({ fencingToken }) => fencingToken))
  expect(leases.map(({ via }) => via).slice(0, 3)).toEqual(['immediate', 'handoff', 'wakeup'])
})

test('I9: a refused client sends each server one request, and takes back only the unanswered ones', async ({ key }) => {
  const [holder, other] = scene.clients(2)
  const lease = await holder!.lock(key)
  await scene.heldEverywhere(key, lease.id)
  // After its first call, a client sends a few more requests by itself. Wait until they are done, so that only the
  // calls below are counted.
  await other!.tryLock(key)
  await sleep(500)
  const before = await scene.admin().calls()
  for (let i = 0; i < 10; i++) expect(await other!.tryLock(key)).toBeNull()
  await sleep(200)
  // Once a majority has refused the client, the client withdraws each request that is still unanswered.
  const { evalsha } = await scene.admin().calls(before)
  expect(evalsha).toBeGreaterThanOrEqual(10 * scene.size)
  expect(evalsha).toBeLessThanOrEqual(10 * (scene.size + scene.minority.length))
})

describe('waiting', () => {
  test('I3: fair waiters of several clients are granted in the order in which they queued', async ({ key }) => {
    const all = scene.clients(3)
    const lease = await all[0]!.lock(key)
    await scene.heldEverywhere(key, lease.id)
    const order: number[] = []
    const turns: Promise<unknown>[] = []
    for (let i = 0; i < 9; i++) {
      const { lease: waits } = await park(all[i % 3]!, key, { fair: true })
      turns.push(waits.then(each => [order.push(i), each.release()]))
    }
    expect((await all[1]!.inspect(key)).waiters.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
    await scene.queuedEverywhere(key, 9)
    await lease.release()
    await promptly(Promise.all(turns))
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
    await scene.nothingLeft(key)
  })

  test('I4: a message wakes an unfair waiter, long before it asks again', async ({ key }) => {
    const [holder, waiter] = scene.clients(2)
    const lease = await holder!.lock(key)
    const parked = await park(waiter!, key)
    await sleep(300)
    await lease.release()
    expect((await promptly(parked.lease)).via).toBe('wakeup')
  })

  test('I6, I7: a timeout names the holder, and leaves nothing of the waiter on any server', async ({ key }) => {
    const [holder, waiter] = [scene.client({ label: 'the holder' }), scene.client()]
    const lease = await holder.lock(key)
    // The lock is held as soon as a majority of the servers has the hold. The others may get the hold only with its
    // next renewal. Until then, they could vote for the waiter.
    await scene.heldEverywhere(key, lease.id)
    for (const fair of [true, false]) {
      const error = await rejection(waiter.lock(key, { timeout: 300, fair, fairAfter: 60_000 }), LockTimeoutError)
      expect(error.holder?.label).toBe('the holder')
      expect(error.waited).toBeGreaterThanOrEqual(300)
    }
    await scene.queuedEverywhere(key, 0)
    expect(lease.held).toBe(true)
    await scene.heldEverywhere(key, lease.id)
  })
})

describe('an owner', () => {
  test('re-enters by context, by name and by runAs, with its token; each hold is released on its own', async () => {
    const [one, two] = scene.clients(2)
    const key = freshKey()
    await one!.using(key, async outer => {
      const inner = await one!.lock(key)
      expect([inner.via, inner.fencingToken]).toEqual(['reentry', outer.fencingToken])
      await inner.release()
      expect([outer.held, await two!.tryLock(key)]).toEqual([true, null])
    })
    const first = await one!.lock(key, { owner: 'job' })
    const second = await two!.runAs('job', () => two!.lock(key))
    expect([second.via, second.fencingToken]).toEqual(['reentry', first.fencingToken])
    expect((await one!.inspect(key)).holds).toBe(2)
    await first.release()
    expect([second.held, await one!.isLocked(key)]).toEqual([true, true])
    await second.release()
    await scene.nothingLeft(key)
  })
})

test('I8: a hold is renewed on every server; without renewal it ends with its lease', async () => {
  const [locks, other] = [scene.client({ lease: 900 }), scene.client()]
  const [kept, fixed] = [await locks.lock(freshKey()), await locks.lock(freshKey(), { lease: 900 })]
  await sleep(2_500)
  expect([kept.held, fixed.held]).toEqual([true, false])
  expect(fixed.signal.reason).toBeInstanceOf(LockLostError)
  await scene.heldEverywhere(kept.key, kept.id)
  expect((await other.tryLock(fixed.key))?.held).toBe(true)
})

describe('what a majority says', () => {
  test('is that a lock is free if two callers have it on one server each; a forced release makes it available', async () => {
    const locks = scene.client()
    const key = freshKey()
    for (const i of [0, 1]) await scene.at(i).lock(key)
    expect(await locks.tryLock(key)).toBeNull()
    expect(await locks.inspect(key)).toMatchObject({ locked: false, holds: 0, holders: [], waiters: [] })
    expect([await locks.isLocked(key), await locks.forceRelease(key)]).toEqual([false, true])
    expect(await collect(locks.list(key))).toEqual([])
    const lease = await promptly(locks.lock(key))
    expect(await scene.client().tryLock(key)).toBeNull()
    expect(await lease.release()).toBe(true)
  })
})

test('I4, I5, I8: forceRelease ends the hold on every server, notifies its holder, and grants the next waiter', async () => {
  const [holder, waiter, other] = scene.clients(3)
  const key = freshKey()
  expect(await other!.forceRelease(key)).toBe(false)
  const lease = await holder!.lock(key)
  const queued = await park(waiter!, key, { fair: true })
  expect(await other!.forceRelease(key)).toBe(true)
  const next = await promptly(queued.lease)
  await eventually(() => lease.signal.aborted, 2_000)
  expect(lease.signal.reason).toBeInstanceOf(LockLostError)
  expect([lease.held, await lease.release()]).toEqual([false, false])
  await scene.heldEverywhere(key, next.id)
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken)
})

test('I8: forceRelease of a lock without waiters: its holder is notified, and does not take it again', async () => {
  const [holder, other] = scene.clients(2)
  for (let round = 0; round < 10; round++) {
    const key = freshKey()
    const lease = await holder!.lock(key)
    await sleep(20 * (round % 3))
    expect(await other!.forceRelease(key)).toBe(true)
    await eventually(() => lease.signal.aborted, 2_000)
    expect(await other!.forceRelease(key)).toBe(false)
    await scene.nothingLeft(key)
  }
})

test('I7: close leaves nothing on any server: no hold, no place in a queue, no connection, no channel', async () => {
  const admin = scene.admin()
  const ids = async () => (await admin.connections()).map(line => line.split(' ', 1)[0])
  // The connections of earlier tests may still be closing.
  await expect.poll(async () => (await ids()).length).toBe(0)
  const channels = await admin.channels()
  const [holder, fair, unfair, stranger] = scene.clients(4)
  const [key, another] = [freshKey(), freshKey()]
  await holder!.lock(key)
  await stranger!.lock(another)
  const waits = [(await park(fair!, key, { fair: true })).lease, (await park(unfair!, another)).lease]
  const outcomes = Promise.allSettled(waits)
  expect((await ids()).length).toBeGreaterThanOrEqual(4 * scene.size)
  await Promise.all([holder, fair, unfair, stranger].map(locks => locks!.close()))
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  for (const each of [key, another]) await scene.nothingLeft(each)
  await expect.poll(ids).toEqual([])
  await expect.poll(() => admin.channels()).toEqual(channels)
})

test('a waiter that has waited for fairAfter joins the queue of every server, and is granted the lock next', async () => {
  const [holder, waiter] = scene.clients(2)
  const key = freshKey()
  const lease = await holder!.lock(key)
  await scene.heldEverywhere(key, lease.id)
  const waits = waiter!.lock(key, { fairAfter: 100 })
  await queueOf(holder!, key, 1)
  await scene.queuedEverywhere(key, 1)
  expect(await scene.client().tryLock(key)).toBeNull()
  await lease.release()
  expect((await promptly(waits)).via).toBe('handoff')
})

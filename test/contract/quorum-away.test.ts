/**
 * Tests that a quorum keeps working while a minority of its servers is away, whether those servers keep their data or
 * not, and that it stops while a majority is away.
 */
import { describe, expect } from 'vitest'
import { LockConnectionError, LockLostError } from '../../src/index.ts'
import { aborted, collect, outcomeOf, promptly, rejection, settles, within } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { forgetful, quorumScene, sharedScenes } from '../kit/quorum-scene.ts'
import { freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const sizes = [3, 5]
const scenes = sharedScenes(sizes)

describe.each(sizes)('a minority of %i servers is killed', size => {
  function place() {
    const scene = scenes.get(size)!
    return { scene, cripple: () => Promise.all(scene.minority.map(i => scene.kill(i))) }
  }

  test('every call works, of earlier clients and of a new one', async ({ key }) => {
    const { scene, cripple } = place()
    const [one, two] = scene.clients(2)
    await Promise.all([one!.isLocked('any'), two!.isLocked('any')])
    await cripple()
    const other = scene.client()
    const lease = await promptly(one!.lock(key))
    expect(await promptly(two!.tryLock(key))).toBeNull()
    expect(await promptly(other.tryLock(key))).toBeNull()
    const states = [await promptly(other.inspect(key)), ...(await promptly(collect(two!.list(key))))]
    for (const state of states) expect(state).toMatchObject({ key, holds: 1, fencingToken: lease.fencingToken })
    expect(states).toHaveLength(2)
    await promptly(lease.renew())
    expect(lease.remaining()).toBeGreaterThan(20_000)
    expect(await promptly(lease.release())).toBe(true)
    expect(await promptly(two!.isLocked(key))).toBe(false)
    const taken = await promptly(two!.lock(key))
    expect(await promptly(other.forceRelease(key))).toBe(true)
    await within(2_000, aborted(taken.signal))
    await promptly(Promise.all([one!, two!, other].map(locks => locks.close())))
    await scene.nothingLeft(key)
  })

  test('I4: messages wake earlier waiters, fair and unfair', async () => {
    const { scene, cripple } = place()
    const [holder, fair, unfair] = scene.clients(3)
    const [a, b] = [freshKey('a'), freshKey('b')]
    const leases = [await holder!.lock(a), await holder!.lock(b)]
    const queued = await park(fair!, a, { fair: true })
    const parked = await park(unfair!, b)
    await cripple()
    await promptly(Promise.all(leases.map(lease => lease.release())))
    expect((await promptly(queued.lease)).via).toBe('handoff')
    expect((await promptly(parked.lease)).via).toBe('wakeup')
  })

  test('I1, I8: an earlier hold is renewed for several leases, and excludes other clients', async () => {
    const { scene, cripple } = place()
    const [locks, other] = [scene.client({ lease: 2_000 }), scene.client()]
    const lease = await locks.lock(freshKey())
    await cripple()
    for (let i = 0; i < 5; i++) {
      await sleep(1_200)
      expect(lease.held).toBe(true)
      expect(await other.tryLock(lease.key)).toBeNull()
    }
    expect(await lease.release()).toBe(true)
  })

  test('I1: servers that come back empty get the hold again, and until then no one else gets the lock', async () => {
    const { scene, cripple } = place()
    const [locks, other] = [scene.client({ lease: 6_000 }), scene.client()]
    const key = freshKey()
    const lease = await locks.lock(key)
    const queued = await park(other, key, { fair: true })
    await cripple()
    for (const i of scene.minority) await scene.restartEmpty(i)
    expect(await scene.client().tryLock(key)).toBeNull()
    // The next renewal, after a third of the lease, also stores the hold on the servers that came back empty.
    await scene.heldEverywhere(key, lease.id, 25_000)
    expect(lease.held).toBe(true)
    await lease.release()
    expect((await promptly(queued.lease)).fencingToken).toBeGreaterThan(lease.fencingToken)
  })
})

test('I6: a new client that finds one of three servers dead waits for the first answer of a slow one', async () => {
  const scene = scenes.get(3)!
  await scene.kill(2)
  scene.delay(1, 20)
  const said: string[] = []
  const newcomer = () => {
    const locks = scene.client()
    for (const event of ['disconnected', 'reconnected'] as const) locks.on(event, () => said.push(event))
    return locks
  }
  // A new client makes several round trips before its call, and on a busy machine an attempt may use up its second.
  const attempt = async () => {
    const { value, error } = await promptly(outcomeOf(newcomer().tryLock(freshKey())))
    if (error) expect(error.message).toMatch(/did not answer for 1000 ms: the request got no reply$/)
    return value ?? undefined
  }
  expect((await eventually(attempt))?.held).toBe(true)
  expect(await promptly(newcomer().isLocked(freshKey()))).toBe(false)
  expect(said).toEqual([])
})

describe('a server cannot be reached for a while, and keeps its data', () => {
  test('I7: a hold that is released meanwhile ends on that server, too, long before its lease does', async () => {
    const scene = scenes.get(3)!
    const [locks, other] = [scene.client({ lease: 120_000 }), scene.client()]
    const key = freshKey()
    const lease = await locks.lock(key, { renew: false })
    const queued = await park(other, key, { fair: true })
    await scene.heldEverywhere(key, lease.id)
    scene.away(0)
    await promptly(lease.release())
    await (await promptly(queued.lease)).release()
    scene.back(0)
    await scene.nothingLeft(key, 10_000)
  })
})

describe('a majority is away', () => {
  test('I6, I8: a holder is notified at its deadline, calls reject after outageTimeout, and no other client is granted the lock', async () => {
    const scene = scenes.get(3)!
    const [holder, other] = [scene.client({ lease: 1_500 }), scene.client({ outageTimeout: 700 })]
    const key = freshKey()
    const lease = await holder.lock(key)
    const losses: unknown[] = []
    holder.on('lost', ({ error }) => losses.push(error))
    await other.isLocked(key)
    for (const i of [0, 1]) scene.away(i)
    const call = rejection(other.lock(key), LockConnectionError)
    await within(1_500 + 500, aborted(lease.signal))
    expect(lease.signal.reason).toBeInstanceOf(LockLostError)
    expect(losses).toEqual([lease.signal.reason])
    await promptly(call)
    await promptly(rejection(other.tryLock(key), LockConnectionError))
  })

  test('I4, I6: calls wait until the majority is back, and are then granted', async () => {
    const scene = scenes.get(3)!
    const locks = scene.client()
    await locks.isLocked('any')
    for (const i of [1, 2]) scene.away(i)
    const calls = [locks.lock(freshKey()), locks.lock(freshKey(), { fair: true })]
    expect(await settles(Promise.race(calls), 500)).toBe(false)
    scene.back(1)
    for (const call of calls) expect((await within(10_000, call)).held).toBe(true)
  })
})

describe('a server that comes back empty', () => {
  /** The longest lease that any client or call asks for, in ms. */
  const lease = 3_000

  test('its votes do not count until it has been up for longer than the longest lease', async ({ key }) => {
    const scene = await quorumScene({ args: forgetful })
    await eventually(async () => (await scene.uptime(0)) * 1_000 > lease + 1_000, 15_000)
    const [one, two] = [scene.client({ lease, outageTimeout: 20_000 }), scene.client({ lease })]
    const held = await promptly(one.lock(key))
    await scene.heldEverywhere(key, held.id)
    // Server 2 forgets the hold, and server 0 is away. So there is no majority until the votes of server 2 count again.
    const begun = performance.now()
    await scene.restartEmpty(2)
    scene.away(0)
    await rejection(two.tryLock(freshKey()), LockConnectionError)
    const next = await one.lock(freshKey(), { timeout: 15_000 })
    expect(performance.now() - begun).toBeGreaterThan(lease)
    expect(next.held).toBe(true)
    expect(await scene.uptime(2)).toBeGreaterThanOrEqual(lease / 1_000)
  })

  test('its votes count at once if it says it persists all writes', async () => {
    const scene = scenes.get(3)!
    const locks = scene.client({ lease: 120_000 })
    await locks.isLocked('any')
    await scene.kill(0)
    await scene.restartEmpty(1)
    expect((await within(10_000, locks.lock(freshKey()))).held).toBe(true)
  })
})

/**
 * The servers accept connections but do not answer, so no connection has failed. Then a call with a short time-out waits
 * for an answer for a second. The first of two callers ends while the second still waits.
 */
// This test fails if `ballot.over ? refusals.length < majority : !enough` becomes `!ballot.over && !enough` in
// src/compose/quorum/kind.ts: the end of the first call looks like a refusal, which ends the second call, too.
test('I6: no call says that the lock is taken if no server has ever answered', async ({ key }) => {
  const scene = scenes.get(3)!
  for (let i = 0; i < scene.size; i++) scene.partition(i)
  const locks = scene.client()
  const first = outcomeOf(locks.tryLock(key, { timeout: 100 }))
  await sleep(700)
  const second = outcomeOf(locks.tryLock(key, { timeout: 100 }))
  expect((await promptly(first)).error).toBeInstanceOf(LockConnectionError)
  expect(await settles(second, 100)).toBe(false)
  expect((await promptly(second)).error).toBeInstanceOf(LockConnectionError)
})

/** Tests how callers of one client hand the lock on without asking Redis: to whom, when, and at what cost. */
import { describe, expect } from 'vitest'
import { type Lease, type LockClient, LockClosedError, type LockOptions } from '../../src/index.ts'
import { scriptCalls } from '../kit/command-stats.ts'
import { heard, promptly, rejection } from '../kit/outcomes.ts'
import { park, queueOf } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { expectIncreasing } from '../kit/witness.ts'
import { handedOn } from './leases.ts'

interface Grant {
  readonly client: number
  readonly lease: Lease
}

/**
 * Callers of several clients, which take the lock again and again until `enough` returns true. A crowd records all
 * grants in order.
 */
class Crowd {
  readonly grants: Grant[] = []
  /**
   * One entry for each run. A run is a grant by Redis and the local hand-offs that follow it. `grants` counts the grant
   * by Redis and these hand-offs.
   */
  readonly runs: { readonly client: number; grants: number }[] = []
  most = 0
  #inside = 0

  async run(
    all: readonly LockClient[],
    callers: number,
    key: string,
    enough: (grants: readonly Grant[]) => boolean,
    options: LockOptions = {},
  ): Promise<void> {
    const caller = async (client: number) => {
      while (!enough(this.grants)) {
        const lease = await all[client]!.lock(key, options)
        this.most = Math.max(this.most, ++this.#inside)
        this.grants.push({ client, lease })
        if (lease.via === 'handoff') this.runs.at(-1)!.grants += 1
        else this.runs.push({ client, grants: 1 })
        // Every third holder waits for one turn of the event loop. If exclusion were broken, the other client's callers
        // could run during that turn.
        if (this.grants.length % 3 === 0) await new Promise(setImmediate)
        expect(lease.held).toBe(true)
        this.#inside -= 1
        expect(await lease.release()).toBe(true)
      }
    }
    await Promise.all(all.flatMap((_, i) => Array.from({ length: callers }, () => caller(i))))
  }

  get tokens(): number[] {
    return this.grants.map(({ lease }) => lease.fencingToken)
  }
}

test('a release hands the lock to the next caller of the client within the call', async ({ locks, key }) => {
  const { lease, predecessor } = await handedOn(locks, key)
  expect([lease.via, lease.held, predecessor.held]).toEqual(['handoff', true, false])
  expect(lease.fencingToken).toBeGreaterThan(predecessor.fencingToken)
  expect([lease.owner, lease.id]).not.toContain(predecessor.owner)
  expect(lease.remaining()).toBeLessThanOrEqual(30_000)
  expect(await predecessor.release()).toBe(false)
  expect(await lease.release()).toBe(true)
  expect(await locks.isLocked(key)).toBe(false)
})

describe('callers of 2 clients with 8 callers each', () => {
  test('I1, I2: go through one by one, with rising tokens over all', async ({ key }) => {
    const crowd = new Crowd()
    const all = clients(2)
    await crowd.run(all, 8, key, grants => grants.length >= 2_000)
    expect(crowd.most).toBe(1)
    expectIncreasing(crowd.tokens)
    expect(crowd.grants.filter(({ lease }) => lease.via === 'handoff').length).toBeGreaterThan(0)
    expect(await all[0]!.inspect(key)).toMatchObject({ locked: false, waiters: [] })
    for (const locks of all) expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0 })
  })

  test('I4: both clients get the lock, and no run hands it on more than 1,000 times', async () => {
    const crowd = new Crowd()
    await crowd.run(clients(2), 8, freshKey(), () => crowd.runs.length >= 60)
    const { runs } = crowd
    expect(new Set(runs.map(({ client }) => client)).size).toBe(2)
    expect(Math.max(...runs.map(({ grants }) => grants))).toBeLessThanOrEqual(1_001)
  })

  test('I9: cost far less than one command per grant', async ({ own }) => {
    const admin = own.admin()
    const all = [client({}, own.source()), client({}, own.source())]
    const [key, crowd] = [freshKey(), new Crowd()]
    await crowd.run(all, 8, key, grants => grants.length >= 50)
    const [before, had] = [await admin.calls(), crowd.grants.length]
    await crowd.run(all, 8, key, grants => grants.length >= had + 2_000)
    const spent = scriptCalls(await admin.calls(before))
    expect(spent).toBeLessThan((crowd.grants.length - had) / 2)
  })
})

test('I3: a fair waiter that queued behind a lease of the run is next', async ({ locks, fair, key }) => {
  const { lease, behind } = await handedOn(locks, key, {}, 2)
  const order: string[] = []
  for (const call of behind) void call.then(next => [order.push('unfair'), next.release()])
  const queued = await park(fair, key, { fair: true })
  const served = queued.lease.then(next => [order.push('fair'), next.release()])
  // After 20 ms, either the run of local hand-offs is over, or the client knows that a fair waiter is queued. In both
  // cases, Redis chooses the next holder, which must be the fair waiter.
  await sleep(20)
  await lease.release()
  await promptly(Promise.all([served, ...behind]))
  expect(order).toEqual(['fair', 'unfair', 'unfair'])
})

test('I3: a fair waiter of the same client is next at once', async ({ locks, key }) => {
  const { lease, behind } = await handedOn(locks, key, {}, 1)
  const waits = heard(locks, 'waiting')
  const fair = locks.lock(key, { fair: true })
  // The fair request must reach Redis before the release. With a single server, the client sends it at once. In a
  // cluster, the client has to subscribe first, so wait for the event `waiting`.
  if (place().isCluster) await eventually(() => waits.length > 0)
  void lease.release()
  expect((await promptly(fair)).fencingToken).toBeGreaterThan(lease.fencingToken)
  await (await fair).release()
  const last = await promptly(behind[0]!)
  expect(last.fencingToken).toBeGreaterThan((await fair).fencingToken)
  await last.release()
})

test('named owners neither receive a lock by local hand-off nor pass one on', async ({ locks, stranger, key }) => {
  const holder = await stranger.lock(key)
  const names = ['x', 'y', 'x', 'z', 'y']
  const crowd = names.map(owner =>
    locks.using(key, { owner }, async lease => {
      expect(await stranger.inspect(key)).toMatchObject({ owner, fencingToken: lease.fencingToken })
      return lease.via
    }),
  )
  await sleep(20)
  await holder.release()
  for (const via of await promptly(Promise.all(crowd)))
    expect(['wakeup', 'immediate', 'reentry', 'expiry']).toContain(via)
})

test('leases of two lengths share the lock, and each has at least half of its length left', async ({ key }) => {
  const [locks, stranger] = clients(2)
  const holder = await stranger!.lock(key)
  const tokens: number[] = []
  const crowd = Array.from({ length: 40 }, async (_, i) => {
    const length = i % 3 === 0 ? 2_000 : 20_000
    const lease = await locks!.lock(key, { lease: length })
    expect(lease.remaining()).toBeLessThanOrEqual(length)
    expect(lease.remaining()).toBeGreaterThan(length / 2 - 500)
    tokens.push(lease.fencingToken)
    await lease.release()
  })
  await holder.release()
  await promptly(Promise.all(crowd))
  expectIncreasing(tokens)
})

test('I4: callers that wait behind a run are served, even if the key is deleted in the middle of it', async () => {
  const [locks, admin] = [client(), place().admin()]
  const key = freshKey()
  const { lease, behind } = await handedOn(locks, key, {}, 3)
  await admin.everywhere(redis => redis.del(`lock:{${key}}`))
  const last = locks.lock(key)
  expect([true, false]).toContain(await lease.release())
  for (const call of [...behind, last]) await (await promptly(call)).release()
  expect(await locks.isLocked(key)).toBe(false)
})

describe('close in the middle of a run', () => {
  test('I6, I7: rejects waiters, and gives the lock to others at once', async ({ locks, other, key }) => {
    const { lease, behind } = await handedOn(locks, key, {}, 2)
    const rejections = behind.map(call => rejection(call, LockClosedError))
    const next = other.lock(key)
    const closed = locks.close()
    expect(lease.held).toBe(false)
    await promptly(Promise.all([closed, ...rejections]))
    expect((await promptly(next)).fencingToken).toBeGreaterThan(lease.fencingToken)
  })

  test('I7: called by a listener of "released", also ends the hold', async ({ locks, other, key }) => {
    const { lease, behind } = await handedOn(locks, key, {}, 1)
    const rejected = rejection(behind[0]!, LockClosedError)
    locks.once('released', () => void locks.close())
    void lease.release()
    await promptly(rejected)
    const next = await promptly(other.lock(key))
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken)
  })
})

test('a listener of "waiting" may release: the newcomer gets the lock', async ({ locks, key }) => {
  const { lease } = await handedOn(locks, key)
  locks.once('waiting', () => void lease.release())
  const next = await promptly(locks.lock(key))
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken)
  expect(await next.release()).toBe(true)
})

test('a caller that aborts at the moment of its grant keeps nothing', async ({ locks, other, key }) => {
  const { lease } = await handedOn(locks, key)
  const [aborter, reason] = [new AbortController(), new Error('never mind')]
  const next = locks.lock(key, { signal: aborter.signal }).catch((error: unknown) => error)
  await eventually(() => locks.stats().waiting === 1)
  locks.once('acquired', () => aborter.abort(reason))
  await lease.release()
  expect(await promptly(next)).toBe(reason)
  expect((await promptly(other.lock(key))).held).toBe(true)
  expect((await queueOf(other, key, 0)).waiters).toEqual([])
})

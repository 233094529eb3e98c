/** Tests lock and tryLock: exclusion, fencing tokens, and the ways in which a lock is granted. */
import { describe, expect } from 'vitest'
import { type LockOptions, LockTimeoutError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { heard, promptly, rejection, settles } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { ownPlace, place } from '../kit/place.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { expectIncreasing, Room } from '../kit/witness.ts'
import { takeAndVanish } from './leases.ts'

const ways: [string, LockOptions][] = [
  ['unfair', {}],
  ['fair', { fair: true }],
  ['fairAfter', { fairAfter: 20 }],
]

describe.each(kindsHere)('lock ($kind)', ({ client, clients }) => {
  test('takes a free lock at once', async () => {
    const lease = await promptly(client().lock(freshKey()))
    expect(lease.held).toBe(true)
    expect(lease.via).toBe('immediate')
  })

  test.each(ways)('I1: %s: blocks while another client holds, until the release', async (_, options) => {
    const [holder, waiter] = clients(2)
    const key = freshKey()
    const lease = await holder!.lock(key)
    const waits = waiter!.lock(key, options)
    expect(await settles(waits, 300)).toBe(false)
    await lease.release()
    const second = await promptly(waits)
    expect(second.held).toBe(true)
    expect(second.waited).toBeGreaterThanOrEqual(295)
  })

  test('I1: outside using, a client does not re-enter its own lock unless it names an owner', async ({ key }) => {
    const locks = client()
    const lease = await locks.lock(key)
    const waits = locks.lock(key)
    expect(await settles(waits, 200)).toBe(false)
    await lease.release()
    expect((await promptly(waits)).owner).not.toBe(lease.owner)
  })

  test.each(ways)(
    'I1, I2: %s: 60 callers of 3 clients go through one by one, with rising tokens',
    async (_, options) => {
      const all = clients(3)
      const key = freshKey()
      const room = new Room()
      const visit = async (i: number) => {
        const lease = await all[i % 3]!.lock(key, options)
        await room.visit(lease)
        expect(await lease.release()).toBe(true)
      }
      await Promise.all(Array.from({ length: 60 }, (_, i) => visit(i)))
      expect(room.most).toBe(1)
      expect(room.tokens).toHaveLength(60)
      expectIncreasing(room.tokens)
    },
  )

  test('I1, I2: fair, unfair and fairAfter callers of one key exclude each other', async ({ key }) => {
    const all = clients(3)
    const room = new Room()
    const visit = async (i: number) => {
      const lease = await all[i % 3]!.lock(key, ways[Math.floor(i / 3) % 3]![1])
      await room.visit(lease)
      await lease.release()
    }
    await Promise.all(Array.from({ length: 90 }, (_, i) => visit(i)))
    expect(room.most).toBe(1)
    expect(room.tokens).toHaveLength(90)
    expectIncreasing(room.tokens)
  })

  test('I9: waiting unfair callers of one client send one request per release, not one per waiter', async ({ key }) => {
    const own = await ownPlace()
    // By default, unfair callers join the queue after 1 s, which is shorter than this test on a slow machine.
    // `fairAfter` keeps them out of the queue.
    const [holder, waiter] = [client({}, own.source()), client({ fairAfter: Number.POSITIVE_INFINITY }, own.source())]
    const lease = await holder.lock(key)
    const waits = Array.from({ length: 50 }, () => waiter.lock(key))
    await eventually(() => waiter.stats().waiting === 50)
    await sleep(200)
    const admin = own.admin()
    const before = await admin.calls()
    await lease.release()
    await Promise.race(waits)
    await sleep(200)
    const { evalsha } = await admin.calls(before)
    expect(evalsha).toBeLessThan(10 * own.parts)
    expect(waiter.stats().waiting).toBe(49)
  })

  test('I9: idle waiters send nothing but heartbeats', async ({ own, key }) => {
    const [holder, fair, unfair] = [1, 2, 3].map(() => client({}, own.source()))
    await holder!.lock(key)
    await park(fair!, key, { fair: true })
    await park(unfair!, key)
    await sleep(200)
    const admin = own.admin()
    const before = await admin.calls()
    await sleep(1_500)
    const { evalsha = 0 } = await admin.calls(before)
    expect(evalsha).toBeLessThanOrEqual(3 * own.parts)
  })
})

describe.each(kindsHere)('tryLock ($kind)', ({ client, clients }) => {
  test('takes a free lock', async () => {
    expect((await client().tryLock(freshKey()))?.held).toBe(true)
  })

  test('is null at once if the lock is held, by any client', async ({ key }) => {
    const [holder, other] = clients(2)
    await holder!.lock(key)
    expect(await promptly(other!.tryLock(key))).toBeNull()
    expect(await promptly(holder!.tryLock(key))).toBeNull()
  })

  test.each(ways)('%s: without timeout it never queues, and leaves nothing', async (_, options) => {
    const [holder, other] = clients(2)
    const key = freshKey()
    await holder!.lock(key)
    const admin = place().admin()
    const before = await admin.keysWith(key)
    const waits = heard(other!, 'waiting')
    expect(await other!.tryLock(key, options)).toBeNull()
    expect((await holder!.inspect(key)).waiters).toEqual([])
    expect(await admin.keysWith(key)).toEqual(before)
    expect(waits).toEqual([])
  })

  test('I3: does not take a lock ahead of a live fair waiter', async ({ key }) => {
    const [holder, fair, other] = clients(3)
    const lease = await holder!.lock(key)
    const queued = await park(fair!, key, { fair: true })
    expect(await other!.tryLock(key)).toBeNull()
    await lease.release()
    expect(await other!.tryLock(key)).toBeNull()
    expect((await queued.lease).held).toBe(true)
  })
})

describe('via is the way in which the lock was granted', () => {
  test('immediate: the lock was free; also after the previous lease had ended', async ({ one, two, key }) => {
    expect((await one.lock(key, { lease: 200 })).via).toBe('immediate')
    await sleep(300)
    expect((await two.lock(key)).via).toBe('immediate')
  })

  test('handoff: a release granted the lock to the fair waiter', async ({ one, two, key }) => {
    const lease = await one.lock(key)
    const [other, same] = [await park(two, key, { fair: true }), await park(one, key, { fair: true })]
    await lease.release()
    const second = await other.lease
    expect(second.via).toBe('handoff')
    await second.release()
    expect((await same.lease).via).toBe('handoff')
  })

  test('wakeup: an unfair waiter was woken by a release of another client', async ({ one, two, key }) => {
    const lease = await one.lock(key)
    const parked = await park(two, key)
    await lease.release()
    expect((await parked.lease).via).toBe('wakeup')
  })

  test.for([true, false])('I4: expiry: a holder’s lease ended (fair: %s)', async (fair, { locks, key }) => {
    await locks.isLocked(key)
    await takeAndVanish(key, { lease: 1_000 })
    const lease = await promptly(locks.lock(key, { fair }))
    expect(lease.via).toBe('expiry')
    expect(lease.waited).toBeGreaterThan(100)
  })

  test('reentry: the owner held it already', async ({ one, two, key }) => {
    await one.lock(key, { owner: 'me' })
    expect((await two.lock(key, { owner: 'me' })).via).toBe('reentry')
  })
})

describe.each(kindsHere)('I2: fencing tokens strictly increase ($kind)', ({ client, clients }) => {
  test('over release, expiry, forced release and deletion of the key', async ({ key }) => {
    const [one, two] = clients(2)
    const admin = place().admin()
    const tokens: number[] = []
    const take = async (options: LockOptions = {}) => {
      const lease = await (tokens.length % 2 ? one! : two!).lock(key, options)
      tokens.push(lease.fencingToken)
      return lease
    }
    for (let round = 0; round < 5; round++) {
      await (await take()).release()
      await take({ lease: 200 })
      await take()
      await one!.forceRelease(key)
      await take()
      const names = await admin.keysWith(key)
      await admin.everywhere(redis => redis.del(names))
    }
    expect(tokens).toHaveLength(20)
    expectIncreasing(tokens)
    expect(tokens.every(Number.isSafeInteger)).toBe(true)
  })

  test('over hand-offs and fast turns within one client', async ({ key }) => {
    const locks = client()
    const tokens: number[] = []
    const turn = async (fair: boolean) => {
      const lease = await locks.lock(key, { fair })
      tokens.push(lease.fencingToken)
      await lease.release()
    }
    await Promise.all(Array.from({ length: 100 }, (_, i) => turn(i % 2 === 0)))
    for (let i = 0; i < 50; i++) await turn(false)
    expectIncreasing(tokens)
  })
})

test('a refused single attempt names the holder', async ({ key }) => {
  const [holder, other] = [client({ label: 'the holder' }), client()]
  await holder.lock(key)
  const error = await rejection(other.lock(key, { timeout: 0 }), LockTimeoutError)
  expect(error.holder?.label).toBe('the holder')
})

/** Tests the options that limit and shape the queue: `maxWaiters`, `minHold`, `rejectLate`, `slots`, and what is expected. */
import { describe, expect } from 'vitest'
import {
  type Lease,
  LockArgumentError,
  type LockClient,
  LockLostError,
  LockQueueFullError,
  LockTimeoutError,
} from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { heard, promptly, rejection } from '../kit/outcomes.ts'
import { park, parkMany, ways } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** The kinds, and a semaphore whose calls have a group. */
const groupsHere = kindsHere.flatMap(each =>
  (each.kind === 'semaphore' ? [undefined, 'a'] : [undefined]).map(group => ({ ...each, group })),
)

/** Passes a lock on among fair callers, until so many holds have ended while others were queued. */
async function passOn(
  locks: { lock(key: string, options: object): Promise<Lease> },
  key: string,
  holds: number,
  ms = 0,
) {
  const waits = Array.from({ length: holds + 1 }, () => locks.lock(key, { fair: true, lease: 30_000 }))
  for (const wait of waits) {
    const lease = await wait
    if (ms > 0) await sleep(ms)
    await lease.release()
  }
}

describe('maxWaiters', () => {
  test.for(kindsHere)(
    'keeps a call from waiting behind so many, of any client, and only then ($kind)',
    async ({ clients }, { key }) => {
      const [one, two] = clients(2)
      const held = await one!.lock(key, { maxWaiters: 0 })
      const full = await promptly(rejection(two!.lock(key, { maxWaiters: 0 }), LockQueueFullError))
      expect(full).toMatchObject({ code: 'ERR_LOCK_QUEUE_FULL', key, waiters: 0, expected: undefined })
      // Calls in one client at the same time are decided one after the other, as those of several clients are.
      const calls = Array.from({ length: 6 }, (_, i) =>
        (i % 2 ? one! : two!).tryLock(key, { maxWaiters: 2, timeout: 60_000 }),
      )
      const turnedAway = (
        await Promise.all(calls.map(call => Promise.race([call.catch(error => error), sleep(1_000)])))
      ).filter(Boolean)
      expect(turnedAway).toHaveLength(4)
      for (const error of turnedAway) expect(error).toMatchObject({ name: 'LockQueueFullError', waiters: 2 })
      expect((await one!.inspect(key)).waiters).toHaveLength(2)
      // A single attempt never waits.
      expect(await one!.tryLock(key, { maxWaiters: 0 })).toBeNull()
      await held.release()
      for (const call of calls) await (await call.catch(() => null))?.release()
    },
  )

  test.for(groupsHere)(
    'does not count dead waiters of a lock whose dead holder’s lease is over ($kind, group: $group)',
    async ({ client, clients, group }, { key }) => {
      const { source, proxy } = await place().proxied()
      const [one] = clients(1)
      // The dead waiters would count for a minute.
      const dead = client({ waiterTtl: 60_000, outageTimeout: 1_000 }, source)
      const options = { fair: true, ...(group && { group }) }
      await dead.lock(key, { ...options, lease: 1_500 })
      for (const wait of await parkMany(dead, key, 3, options)) wait.catch(() => {})
      proxy.refuse()
      proxy.cut()
      const full = await promptly(rejection(one!.lock(key, { ...options, maxWaiters: 3 }), LockQueueFullError))
      expect(full.waiters).toBe(3)
      await eventually(async () => !(await one!.isLocked(key)))
      const lease = await promptly(one!.lock(key, { ...options, maxWaiters: 0 }))
      expect((await one!.inspect(key)).waiters).toEqual([])
      await lease.release()
    },
  )

  test.for(kindsHere.filter(({ kind }) => kind !== 'semaphore'))(
    'does not concern a re-entry ($kind)',
    async ({ client }, { key }) => {
      const locks = client()
      await locks.using(key, async () => {
        const wait = client().lock(key, { fair: true })
        await eventually(async () => (await locks.inspect(key)).waiters.length === 1)
        const inner = await promptly(locks.lock(key, { maxWaiters: 0 }))
        expect(inner.via).toBe('reentry')
        await inner.release()
        wait.then(lease => lease.release()).catch(() => {})
      })
    },
  )
})

test('maxWaiters counts those whom a call has to let pass although there is room for it', async ({ one, two }) => {
  const [key, other] = [freshKey(), freshKey()]
  const [reading, three] = [await one.readWrite(key).read.lock(), one.semaphore(other, 3)]
  const taken = await three.lock({ permits: 2 })
  const waits = [two.readWrite(key).write.lock({ fair: true }), three.lock({ permits: 2, fair: true })]
  await eventually(async () => (await one.readWrite(key).inspect()).waiters.length === 1)
  await eventually(async () => (await three.inspect()).waiters.length === 1)
  for (const lock of [one.readWrite(key).read, two.semaphore(other, 3)]) {
    expect(await rejection(lock.lock({ maxWaiters: 1 }), LockQueueFullError)).toMatchObject({ waiters: 1 })
    waits.push(lock.lock({ maxWaiters: 2 }))
  }
  for (const lease of [reading, taken]) await lease.release()
  for (const wait of waits) await (await promptly(wait)).release()
})

describe('minHold', () => {
  test.for(kindsHere)(
    'keeps a released lock taken, over for its caller, until it has passed ($kind)',
    async ({ clients }, { key }) => {
      const [one, two] = clients(2)
      const begun = performance.now()
      const lease = await one!.lock(key, { minHold: 1_500, owner: 'job', label: 'job of one' })
      expect(await promptly(lease.release())).toBe(true)
      expect(lease.held).toBe(false)
      expect(await lease.release()).toBe(false)
      const [state, renewed] = [await two!.inspect(key), await rejection(lease.renew(), LockLostError)]
      expect(renewed.code).toBe('ERR_LOCK_LOST')
      expect(state).toMatchObject({
        locked: true,
        holds: 1,
        owner: 'job',
        label: 'job of one',
        fencingToken: lease.fencingToken,
      })
      expect(state.holders[0]!.id).toBe(lease.id)
      expect(state.ttl).toBeLessThanOrEqual(1_500)
      // Its owner does not re-enter, in no client.
      for (const locks of [one!, two!]) expect(await locks.tryLock(key, { owner: 'job' })).toBeNull()
      // Waiters of both ways get the lock then.
      const waits = [two!.lock(key, { fair: true }), one!.lock(key, { fairAfter: 60_000 })]
      const next = await promptly(Promise.any(waits))
      expect(performance.now() - begun).toBeGreaterThan(1_495)
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken)
      await next.release()
      for (const wait of waits) await (await promptly(wait)).release()
    },
  )

  test.for(kindsHere.flatMap(each => ways.map(fair => ({ ...each, fair }))))(
    'ends for those who wait already, long before their next heartbeat ($kind, fair: $fair)',
    async ({ client, fair }, { key }) => {
      const long = { waiterTtl: 60_000, lease: 60_000 }
      const [one, two] = [client(long), client(long)]
      const held = await one.lock(key, { minHold: 1_000 })
      const { lease } = await park(two, key, { fair })
      await held.release()
      expect((await promptly(lease)).via).toBe('expiry')
    },
  )

  test.each(kindsHere)('is longer than the lease, and than the client’s life ($kind)', async ({ client, clients }) => {
    const [other] = clients(1)
    const closing = client()
    const [left, lapsed] = [freshKey(), freshKey()]
    const begun = performance.now()
    await closing.lock(left, { minHold: 1_200 })
    const brief = await other!.lock(lapsed, { minHold: 1_200, lease: 200 })
    const losses = heard(other!, 'lost')
    await closing.close()
    await eventually(() => losses.length === 1)
    expect(brief.held).toBe(false)
    for (const key of [left, lapsed]) {
      const next = await promptly(other!.lock(key))
      expect(performance.now() - begun).toBeGreaterThan(1_195)
      await next.release()
    }
  })

  test.for(kindsHere)('is over when it has passed, and ends by force ($kind)', async ({ clients }, { key }) => {
    const [one, two] = clients(2)
    const short = await one!.lock(key, { minHold: 50 })
    await sleep(100)
    await short.release()
    expect(await two!.isLocked(key)).toBe(false)
    if (one!.constructor.name === 'LockClient') {
      const lease = await one!.lock(key, { minHold: 60_000 })
      await lease.release()
      expect(await two!.forceRelease(key, lease.id)).toBe(true)
      expect(await two!.isLocked(key)).toBe(false)
    }
  })

  test.each(kindsHere.filter(({ kind }) => kind === 'semaphore'))(
    'keeps the room in a group taken, too, and ends for those who wait for it ($kind)',
    async () => {
      const key = freshKey()
      const long = { waiterTtl: 60_000, lease: 60_000 }
      const [jobs, other] = [client(long), client(long)].map(each => each.semaphore(key, 2))
      const limited = { group: 'g', groupLimit: 1 }
      const kept = await jobs!.lock({ ...limited, minHold: 1_000 })
      const next = other!.lock(limited)
      await eventually(async () => (await jobs!.inspect()).waiters.length === 1)
      await kept.release()
      expect((await jobs!.inspect()).groups).toMatchObject([{ group: 'g', taken: 1, waiting: 1 }])
      await (await promptly(next)).release()
      expect(await jobs!.inspect()).toMatchObject({ taken: 0 })
    },
  )

  test.for(kindsHere.filter(({ kind }) => kind === 'mutex'))(
    'is not moved by re-entries, and outlasts the last of them ($kind)',
    async ({ clients }, { key }) => {
      const [one, two] = clients(2)
      const begun = performance.now()
      const outer = await one!.lock(key, { owner: 'job', minHold: 1_000 })
      const inner = await two!.lock(key, { owner: 'job', minHold: 60_000 })
      await outer.release()
      expect(inner.held).toBe(true)
      await inner.release()
      expect((await one!.inspect(key)).ttl).toBeLessThanOrEqual(1_000)
      await (await promptly(two!.lock(key, { fair: true }))).release()
      expect(performance.now() - begun).toBeGreaterThan(995)
    },
  )

  // This test fails if `local asked = s.holder:match(OWN_LEASE, HELD_TERMS_AT) or` becomes `local asked =` in
  // lua/mutex/acquire.lua.
  test.for(kindsHere.filter(({ kind }) => kind !== 'semaphore'))(
    'I1: a re-entry that outlasts it prolongs the hold in Redis, too ($kind)',
    async ({ clients }, { key }) => {
      const [one] = clients(1)
      const terms = { owner: 'job', renew: false }
      const outer = await one!.lock(key, { ...terms, lease: 10_000, minHold: 20_000 })
      await sleep(300)
      await (await one!.lock(key, { ...terms, lease: 20_000 })).release()
      const { ttl } = await one!.inspect(key)
      expect(outer.remaining()).toBeLessThanOrEqual(ttl!)
    },
  )

  test('callers of one client that ask for it do not hand the lock on among themselves', async ({ locks, key }) => {
    const begun = performance.now()
    const runs: number[] = []
    const run = () =>
      locks.using(key, { minHold: 200, fairAfter: 60_000 }, () => void runs.push(performance.now() - begun))
    await promptly(Promise.all([run(), run(), run()]))
    expect(runs[1]).toBeGreaterThan(195)
    expect(runs[2]).toBeGreaterThan(395)
  })
})

describe('expected', () => {
  test.each(kindsHere)('is absent until 8 holds have ended with callers queued ($kind)', async ({ client }) => {
    const locks = client()
    const key = freshKey()
    const waits = [await locks.lock(key)]
    const queue = await parkMany(locks, key, 9, { fair: true })
    for (const wait of queue) wait.catch(() => {})
    for (let ended = 0; ended < 9; ended++) {
      const { waiters } = await locks.inspect(key)
      expect(waiters.every(({ expected }) => (expected === undefined) === ended < 8)).toBe(true)
      await waits.pop()!.release()
      waits.push(await promptly(queue.shift()!))
    }
    await waits.pop()!.release()
  })

  test.for(kindsHere)('is about the wait at a place, wherever it is told ($kind)', async ({ client }, { key }) => {
    const locks = client()
    await passOn(locks, key, 12, 30)
    const held = await locks.lock(key)
    const told = heard(locks, 'waiting')
    const waits = Array.from({ length: 5 }, () => locks.lock(key, { fair: true }))
    for (const wait of waits) wait.catch(() => {})
    await eventually(() => told.length === 5)
    const { waiters } = await locks.inspect(key)
    const known = waiters.map(({ expected }) => expected!)
    expect(known).toEqual([...known].sort((a, b) => a - b))
    // The holds lasted for 30 ms and some more.
    expect(known[4]).toBeGreaterThan(120)
    expect(told[4]).toMatchObject({ position: 5, expected: expect.any(Number) })
    const late = await rejection(locks.lock(key, { fair: true, timeout: 100 }), LockTimeoutError)
    expect(late.expected).toBeGreaterThan(150)
    const full = await rejection(locks.lock(key, { maxWaiters: 5 }), LockQueueFullError)
    expect(full.expected).toBeGreaterThan(150)
    // A call that cannot have the lock in time does not wait for it.
    await promptly(rejection(locks.lock(key, { rejectLate: true, timeout: 100 }), LockTimeoutError))
    expect(await promptly(locks.tryLock(key, { rejectLate: true, timeout: 100 }))).toBeNull()
    const patient = await park(locks, key, { rejectLate: true, timeout: 600_000 })
    await held.release()
    for (const wait of [...waits, patient.lease]) await (await wait).release()
  })
})

// This test fails if `now < due` becomes `true` in src/kind-client.ts: 5 ms are expected after a wait of 1,500.
test('nothing is estimated to come sooner than a wait at the same place has lasted already', async ({ key }) => {
  // Each heartbeat brings a new estimate.
  const locks = client({ waiterTtl: 600 })
  await passOn(locks, key, 12, 5)
  await locks.lock(key)
  const late = await rejection(locks.lock(key, { fair: true, timeout: 1_500 }), LockTimeoutError)
  expect([late.position, late.expected]).toEqual([1, undefined])
  expect(late.message).toMatch(/, at position 1 of the queue; held by /)
})

describe('expected of a call with a group', () => {
  type Semaphore = ReturnType<LockClient['semaphore']>
  type Options = NonNullable<Parameters<Semaphore['lock']>[0]>

  /** Lets 12 holds of 30 ms end while callers are queued, and keeps all permits. */
  async function keeps(locks: LockClient, semaphore: Semaphore, permits: number, options: Options) {
    await passOn({ lock: (_, more) => semaphore.lock({ ...options, ...more }) }, '', 12, 30)
    expect((await locks.semaphore('any', 1).inspect()).holds).toBe(0)
    return semaphore.lock({ permits, ...options })
  }

  /** Compares what the event and the errors say about one more call with what `inspect` shows. */
  async function compared(locks: LockClient, semaphore: Semaphore, options: Options): Promise<number> {
    const mates = (await semaphore.inspect()).waiters.filter(({ group }) => group === options.group).length
    const full = await rejection(semaphore.lock({ ...options, maxWaiters: mates }), LockQueueFullError)
    const told = heard(locks, 'waiting')
    // Events of earlier calls may still come.
    const mine = () => told.find(({ owner }) => owner === 'me')
    const call = rejection(semaphore.lock({ ...options, timeout: 1_000, owner: 'me' }), LockTimeoutError)
    await eventually(() => mine() !== undefined)
    const shown = (await semaphore.inspect()).waiters.find(({ owner }) => owner === 'me')!.expected!
    const late = await call
    const first = mine()!.expected!
    // Nothing is estimated to come sooner than the wait has lasted already.
    const last = late.waited < first / 2 ? late.expected! : first
    for (const expected of [first, full.expected!, last]) {
      expect(expected / shown, `${expected} beside ${shown}`).toBeGreaterThan(1 / 2)
      expect(expected / shown, `${expected} beside ${shown}`).toBeLessThan(2)
    }
    return shown
  }

  test.for([
    { what: 'of many groups', calls: Array.from({ length: 36 }, (_, i) => ({ group: `g${i % 12}` })), of: 37 },
    {
      what: 'of more groups than are looked at',
      calls: Array.from({ length: 90 }, (_, i) => ({ group: `g${i % 30}` })),
      of: 91,
    },
    { what: 'of a new group', calls: Array.from({ length: 36 }, (_, i) => ({ group: `h${i % 12}` })), of: 13 },
    {
      what: 'beside a group with a long queue',
      calls: Array.from({ length: 40 }, (_, i) => ({ group: i < 37 ? 'long' : 'g0' })),
      of: 8,
    },
    {
      what: 'of a heavy group',
      calls: Array.from({ length: 40 }, (_, i) => ({ group: `g${i % 2}`, groupWeight: i % 2 === 0 ? 4 : 1 })),
      of: 26,
    },
  ])('$what: counts the waiters of all groups before it', async ({ calls, of }, { one, key }) => {
    const semaphore = one.semaphore(key, 1)
    const held = await keeps(one, semaphore, 1, { group: 'holder' })
    const waits = calls.map(options => semaphore.lock({ ...options }))
    for (const wait of waits) wait.catch(() => {})
    await eventually(async () => (await semaphore.inspect()).waiters.length === calls.length)
    const shown = await compared(one, semaphore, { group: 'g0' })
    // The holds lasted for 30 ms and some more.
    expect(shown).toBeGreaterThan(30 * (of - 1))
    await promptly(rejection(semaphore.lock({ group: 'g0', rejectLate: true, timeout: shown / 4 }), LockTimeoutError))
    await held.release()
  })

  test('of a full group: counts its own waiters, at the rate of the group', async ({ one, key }) => {
    const semaphore = one.semaphore(key, 10)
    const limited = { group: 'a', groupLimit: 1 }
    const held = await keeps(one, semaphore, 1, limited)
    const waits = Array.from({ length: 6 }, () => semaphore.lock(limited))
    for (const wait of waits) wait.catch(() => {})
    await eventually(async () => (await semaphore.inspect()).waiters.length === 6)
    expect(await compared(one, semaphore, limited)).toBeGreaterThan(150)
    await held.release()
  })
})

describe('slots', () => {
  test('are the smallest free numbers, unique among live holds, and free again however a hold ends', async () => {
    const [one, two] = clients(2)
    const key = freshKey()
    const [a, b] = [one!.semaphore(key, 4), two!.semaphore(key, 4)]
    const first = await a.lock({ slots: true })
    const plain = await b.lock()
    const pair = await b.lock({ slots: true, permits: 2 })
    expect([first.slot, first.slots, plain.slots, pair.slot, pair.slots]).toEqual([0, [0], undefined, 1, [1, 2]])
    expect((await a.inspect()).holders.map(({ slots }) => slots)).toEqual([[0], undefined, [1, 2]])
    const fair = a.lock({ slots: true, fair: true })
    const unfair = b.lock({ slots: true, fairAfter: 60_000 })
    await eventually(async () => (await a.inspect()).waiters.length === 1)
    await first.release()
    expect((await promptly(fair)).slot).toBe(0)
    await pair.release()
    expect((await promptly(unfair)).slot).toBe(1)
    const brief = await a.lock({ slots: true, lease: 200 })
    expect(brief.slot).toBe(2)
    await eventually(() => !brief.held)
    expect((await promptly(a.lock({ slots: true }))).slot).toBe(2)
  })

  test('stay taken with `minHold`; without `slots`, a lease has none', async ({ locks }) => {
    const semaphore = locks.semaphore(freshKey(), 3)
    await (await semaphore.lock({ slots: true, minHold: 60_000 })).release()
    const next = await semaphore.lock({ slots: true })
    expect(next.slot).toBe(1)
    expect((await semaphore.lock()).slot).toBeUndefined()
    expect((await semaphore.inspect()).taken).toBe(3)
    await rejection(locks.lock(freshKey(), { slots: true } as object), LockArgumentError)
    await rejection(semaphore.lock({ slots: 1 } as object), LockArgumentError)
  })

  test('are never given twice', async ({ key }) => {
    const all = clients(3)
    const used = new Set<number>()
    const work = async (i: number) => {
      for (let round = 0; round < 15; round++) {
        const permits = 1 + ((i + round) % 2)
        await all[i % 3]!.semaphore(key, 5).using({ slots: true, permits, fair: i % 2 === 0 }, async ({ slots }) => {
          expect(slots).toHaveLength(permits)
          for (const slot of slots!) {
            expect(slot).toBeLessThan(5)
            expect(used.has(slot)).toBe(false)
            used.add(slot)
          }
          await sleep(1)
          for (const slot of slots!) used.delete(slot)
        })
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, i) => work(i)))
  })
})

/**
 * Tests the groups of a semaphore: their limits, their turns, and what is seen of them. Each client stands for a process.
 */
import { describe, expect } from 'vitest'
import {
  type Lease,
  type Lock,
  LockArgumentError,
  type LockError,
  LockQueueFullError,
  LockTimeoutError,
} from '../../src/index.ts'
import type { SemaphoreOptions } from '../../src/options.ts'
import { heard, promptly, rejection, settles } from '../kit/outcomes.ts'
import { parkAt } from '../kit/parking.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

type Semaphore = Lock<SemaphoreOptions>

function semaphores(count: number, permits: number): Semaphore[] {
  const key = freshKey()
  return clients(count).map(locks => locks.semaphore(key, permits))
}

/** Queues these calls one after the other, each from the next of the locks. Collects what is granted, in its order. */
async function queued(locks: readonly Semaphore[], calls: readonly (SemaphoreOptions & { name?: string })[]) {
  const granted: { name: string; lease: Lease }[] = []
  const before = (await locks[0]!.inspect()).waiters.length
  const waits: Promise<Lease>[] = []
  for (const [i, { name, ...options }] of calls.entries()) {
    const { lease } = await parkAt(locks[i % locks.length]!, before + i + 1, options)
    waits.push(lease)
    lease.then(lease => granted.push({ name: name ?? options.group ?? '', lease })).catch(() => {})
  }
  return { granted, waits }
}

/** Releases what is granted, one after the other, until so many are granted. Returns their names. */
async function drained(granted: readonly { name: string; lease: Lease }[], count: number): Promise<string[]> {
  for (let i = 0; i < count; i++) {
    await eventually(() => granted.length > i)
    await granted[i]!.lease.release()
  }
  return granted.map(({ name }) => name)
}

describe('I1 both limits hold together', () => {
  test('under contention: never more than the permits of the semaphore, or of a group, are taken', async () => {
    const locks = semaphores(3, 6)
    const taken: Record<string, number> = {}
    const largest: Record<string, number> = {}
    const add = (name: string, permits: number) => {
      taken[name] = (taken[name] ?? 0) + permits
      largest[name] = Math.max(largest[name] ?? 0, taken[name])
    }
    const limits: Record<string, number | undefined> = { a: 2, b: 3, c: 4, '': undefined }
    // The first holders keep their permits until others have the rest: how much of the semaphore is in use at one
    // moment must not depend on how quickly this machine grants.
    const inUse = eventually(() => (taken['all'] ?? 0) >= 5)
    const work = Array.from({ length: 160 }, async (_, i) => {
      const name = ['a', 'b', 'c', ''][i % 4]!
      const permits = 1 + (Math.floor(i / 4) % 2)
      const options = name === '' ? { fair: i % 3 === 0 } : { group: name, groupLimit: limits[name] }
      await locks[i % 3]!.using({ permits, ...options }, async () => {
        for (const each of [name, 'all']) add(each, permits)
        await inUse
        await sleep(i % 3)
        for (const each of [name, 'all']) add(each, -permits)
      })
    })
    await Promise.all(work)
    // The next in turn may want two permits while one is free, so 5 may be the most at once.
    expect(largest['all']).toBeGreaterThanOrEqual(5)
    expect(largest['all']).toBeLessThanOrEqual(6)
    expect(largest['a']).toBeLessThanOrEqual(2)
    expect(largest['b']).toBeLessThanOrEqual(3)
    expect(largest['c']).toBeLessThanOrEqual(4)
    expect(await locks[0]!.inspect()).toMatchObject({ locked: false, taken: 0, waiters: [] })
  })

  test('each call is judged by the limit that it gives', async () => {
    const [small, large] = semaphores(2, 5) as [Semaphore, Semaphore]
    const first = await small.lock({ group: 'a', groupLimit: 1 })
    expect(await small.tryLock({ group: 'a', groupLimit: 1 })).toBeNull()
    expect(await large.tryLock({ group: 'a', groupLimit: 2 })).not.toBeNull()
    await first.release()
    expect(await small.tryLock({ group: 'a', groupLimit: 1 })).toBeNull()
    expect(await large.inspect()).toMatchObject({ groups: [{ group: 'a', taken: 1, limit: 2, weight: 1, waiting: 0 }] })
  })

  test('a hold that lapses leaves its room to its group', async () => {
    const [dying, waiting] = semaphores(2, 5) as [Semaphore, Semaphore]
    await dying.lock({ group: 'a', groupLimit: 1, lease: 300 })
    await (await promptly(waiting.lock({ group: 'a', groupLimit: 1 }))).release()
  })
})

describe('I3 turns', () => {
  test('a full group is passed by all others, also by unfair callers and single attempts', async () => {
    const [one, two] = semaphores(2, 3) as [Semaphore, Semaphore]
    const held = await one.lock({ group: 'a', groupLimit: 1 })
    const { granted, waits } = await queued([one, two], [{ group: 'a', groupLimit: 1 }, { group: 'a' }])
    expect(await settles(Promise.race(waits), 50)).toBe(false)
    const others = [await two.tryLock({ group: 'b' }), await two.lock({ timeout: 2_000 })]
    expect(await one.tryLock()).toBeNull()
    await others.pop()!.release()
    // Its own mates do not pass the first waiter, although they would fit.
    expect(await two.tryLock({ group: 'a', groupLimit: 3 })).toBeNull()
    await others.pop()!.release()
    await held.release()
    expect(await drained(granted, 2)).toEqual(['a', 'a'])
  })

  test('inside a group, first come, first served, whatever the client; headStart counts inside the group', async () => {
    const [one, two] = semaphores(2, 1) as [Semaphore, Semaphore]
    const held = await one.lock()
    const { granted } = await queued(
      [one, two],
      [
        { group: 'a', name: 'a1' },
        { group: 'b', name: 'b1' },
        { group: 'a', name: 'a2' },
        { group: 'a', name: 'a0', headStart: 60_000 },
        { group: 'b', name: 'b2' },
      ],
    )
    await held.release()
    expect(await drained(granted, 5)).toEqual(['a0', 'b1', 'a1', 'b2', 'a2'])
  })

  test('between groups by weight; a single job waits for at most one of each other group', async () => {
    const [one, two] = semaphores(2, 1) as [Semaphore, Semaphore]
    const held = await one.lock()
    const calls = [
      ...Array.from({ length: 9 }, () => ({ group: 'heavy', groupWeight: 3 })),
      ...Array.from({ length: 4 }, () => ({ group: 'light' })),
      {},
    ]
    const { granted } = await queued([one, two], calls)
    const { waiters } = await one.inspect()
    await held.release()
    const order = await drained(granted, calls.length)
    expect(order.slice(0, 4)).toContain('')
    for (const many of [4, 8, 12]) {
      const heavy = order.slice(0, many).filter(name => name === 'heavy').length
      expect(Math.abs(heavy - (many * 3) / 4)).toBeLessThanOrEqual(2)
    }
    expect(waiters.map(({ group = '' }) => group)).toEqual(order)
  })

  test('a group that was idle has saved nothing up, and permits granted at once count', async () => {
    const [one, two] = semaphores(2, 2) as [Semaphore, Semaphore]
    const idle = await one.lock({ group: 'idle' })
    await idle.release()
    const busy = [await one.lock({ group: 'busy', permits: 2 })]
    for (let i = 0; i < 5; i++) {
      await busy.pop()!.release()
      busy.push(await one.lock({ group: 'busy', permits: 2 }))
    }
    const { granted } = await queued(
      [one, two],
      ['busy', 'busy', 'idle', 'idle', 'idle'].map(group => ({ group, permits: 2 })),
    )
    await busy.pop()!.release()
    expect(await drained(granted, 5)).toEqual(['idle', 'busy', 'idle', 'busy', 'idle'])
  })

  test('nobody passes a larger call whose turn it is, except that a full group is passed over', async () => {
    const [one, two] = semaphores(2, 3) as [Semaphore, Semaphore]
    const held = [await one.lock({ group: 'a', groupLimit: 1 }), await one.lock()]
    const { granted } = await queued(
      [one, two],
      [{ group: 'a', groupLimit: 1 }, { group: 'b', permits: 3 }, { group: 'c' }],
    )
    expect(await two.tryLock({ group: 'd' })).toBeNull()
    expect((await one.inspect()).waiters).toMatchObject([
      { group: 'b', position: 1, why: 'permits', permits: 3 },
      { group: 'c', position: 2, why: 'turn' },
      { group: 'a', position: 3, why: 'group' },
    ])
    await held.pop()!.release()
    expect(
      await settles(
        eventually(() => granted.length > 0),
        100,
      ),
    ).toBe(false)
    await held.pop()!.release()
    expect((await drained(granted, 3)).sort()).toEqual(['a', 'b', 'c'])
  })
})

test('maxWaiters counts the waiters of the group, and of a call without a group all', async () => {
  const [one, two] = semaphores(2, 1) as [Semaphore, Semaphore]
  const held = await one.lock({ group: 'a' })
  const before = await queued([one, two], [{ group: 'a' }, { group: 'b' }])
  const full = (options: SemaphoreOptions) => promptly(rejection(two.lock(options), LockQueueFullError))
  expect(await full({ group: 'a', maxWaiters: 1 })).toMatchObject({ waiters: 1 })
  expect(await full({ maxWaiters: 2 })).toMatchObject({ waiters: 2 })
  const { granted } = await queued([two], [{ group: 'c', maxWaiters: 1 }])
  await held.release()
  expect((await Promise.all([drained(before.granted, 2), drained(granted, 1)])).flat().sort()).toEqual(['a', 'b', 'c'])
})

describe('I4 eligibility is decided anew', () => {
  test('when the first waiter of a full group gives up, its mate may fit', async () => {
    const [one, two] = semaphores(2, 5) as [Semaphore, Semaphore]
    const held = await one.lock({ group: 'a' })
    const abort = new AbortController()
    const { waits } = await queued(
      [one, two],
      [
        { group: 'a', groupLimit: 2, permits: 2, signal: abort.signal },
        { group: 'a', groupLimit: 2 },
      ],
    )
    waits[0]!.catch(() => {})
    expect(await settles(waits[1]!, 50)).toBe(false)
    abort.abort()
    await (await promptly(waits[1]!)).release()
    await held.release()
  })

  test('when the process of the first waiter dies', async ({ key }) => {
    const [holder, alive] = clients(2).map(locks => locks.semaphore(key, 1)) as [Semaphore, Semaphore]
    const dead = client({ waiterTtl: 600 })
    const held = await holder.lock({ group: 'b' })
    const gone = rejection(dead.semaphore(key, 1).lock({ group: 'a' }), Error)
    await eventually(async () => (await holder.inspect()).waiters.length === 1)
    const { granted } = await queued([alive], [{ group: 'b' }, { group: 'a' }])
    await Promise.all([dead.close(), gone])
    await held.release()
    expect(await drained(granted, 2)).toEqual(['a', 'b'])
  })
})

describe('two processes, only one of which uses groups', () => {
  test('exclude each other, and take turns, whoever came first', async () => {
    const [plain, grouping] = semaphores(2, 2) as [Semaphore, Semaphore]
    const first = await plain.lock({ permits: 2 })
    // A waiter without a group is there before the first group.
    const before = await queued([plain], [{ name: 'plain' }])
    const after = await queued([grouping], [{ group: 'a' }])
    expect(await plain.tryLock()).toBeNull()
    const last = await queued([plain], [{ name: 'plain' }])
    await first.release()
    const granted = () => [...before.granted, ...after.granted, ...last.granted]
    await eventually(() => granted().length === 2)
    expect([before.granted.length, after.granted.length]).toEqual([1, 1])
    expect(await plain.inspect()).toMatchObject({
      taken: 2,
      groups: [{ group: '', taken: 1, waiting: 1 }, { group: 'a' }],
    })
    expect(await plain.tryLock()).toBeNull()
    await after.granted[0]!.lease.release()
    await eventually(() => last.granted.length === 1)
    await Promise.all([before, last].map(({ granted }) => granted[0]!.lease.release()))
    // With the last group, everything about groups is gone.
    const state = await grouping.inspect()
    expect(state).toMatchObject({ locked: false, taken: 0 })
    expect(state).not.toHaveProperty('groups')
    const one = await plain.lock()
    expect(await grouping.inspect()).not.toHaveProperty('groups')
    const two = await grouping.lock({ group: 'a', groupLimit: 1 })
    expect(await plain.tryLock()).toBeNull()
    expect([await one.release(), await two.release()]).toEqual([true, true])
  })

  test('an unfair caller without a group is woken when a group leaves permits free', async () => {
    const [plain, grouping] = semaphores(2, 1) as [Semaphore, Semaphore]
    const held = await grouping.lock({ group: 'a', groupLimit: 1 })
    const wait = plain.lock({ fairAfter: Number.POSITIVE_INFINITY })
    expect(await settles(wait, 100)).toBe(false)
    await held.release()
    await (await promptly(wait)).release()
  })

  test('and also while a full group waits', async () => {
    const [plain, grouping] = semaphores(2, 2) as [Semaphore, Semaphore]
    const held = [await plain.lock(), await grouping.lock({ group: 'a', groupLimit: 1 })]
    const { granted } = await queued([grouping], [{ group: 'a', groupLimit: 1 }])
    const wait = plain.lock({ fairAfter: Number.POSITIVE_INFINITY })
    expect(await settles(wait, 100)).toBe(false)
    await held[0]!.release()
    await (await promptly(wait)).release()
    await held[1]!.release()
    expect(await drained(granted, 1)).toEqual(['a'])
  })

  test('forceRelease gives what it takes to the next in turn', async ({ one, two, key }) => {
    const semaphore = one.semaphore(key, 2)
    await semaphore.lock({ group: 'a', groupLimit: 1 })
    const { granted } = await queued([two.semaphore(key, 2)], [{ group: 'a', groupLimit: 1 }])
    expect(await one.forceRelease(semaphore)).toBe(true)
    expect(await drained(granted, 1)).toEqual(['a'])
  })
})

test('callers that give a group different numbers are warned once per semaphore', async ({ key }) => {
  const [one, two] = [client({ label: 'one' }), client({ label: 'two' })]
  const told = heard(two, 'error')
  const held = await one.semaphore(key, 1).lock({ group: 'tenant 7', groupLimit: 1, groupWeight: 2 })
  for (let i = 0; i < 2; i++) {
    const wait = two.semaphore(key, 1).lock({ group: 'tenant 7', groupLimit: 3, timeout: 50 })
    await rejection(wait, Error)
  }
  expect(told.map(({ error }) => (error as LockError).code)).toEqual(['ERR_LOCK_PERMITS'])
  const text = `semaphore "${key}": this call sets groupLimit of the group "tenant 7" to 3, but another call set it to 1; pass the same number in all calls, because each call is limited only by its own number`
  expect((told[0]!.error as LockError).message).toBe(text)
  await held.release()
})

test('bad input is reported before anything is sent', async ({ locks }) => {
  const semaphore = locks.semaphore(freshKey(), 3)
  const bad: [SemaphoreOptions, string][] = [
    [{ group: '' }, 'group'],
    [{ group: 'x'.repeat(1_025) }, 'group'],
    [{ group: 7 as never }, 'group'],
    [{ groupLimit: 2 }, 'groupLimit'],
    [{ groupWeight: 2 }, 'groupWeight'],
    [{ group: 'a', groupLimit: 1, permits: 2 }, 'groupLimit'],
    [{ group: 'a', groupLimit: 0 }, 'groupLimit'],
    ...[1.5, 2 ** 53, 1e21, Number.MAX_VALUE].map((groupLimit): [SemaphoreOptions, string] => [
      { group: 'a', groupLimit },
      'groupLimit',
    ]),
    ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY, '1' as never].map((groupWeight): [SemaphoreOptions, string] => [
      { group: 'a', groupWeight },
      'groupWeight',
    ]),
  ]
  for (const [options, option] of bad) {
    expect((await rejection(semaphore.lock(options), LockArgumentError)).option).toBe(option)
  }
  for (const lock of [locks.mutex('key'), locks.readWrite('key').read, locks.all(['key'])]) {
    const error = await rejection(lock.lock({ group: 'a' } as never), LockArgumentError)
    expect(error.message).toContain('semaphore(key, 1)')
  }
  const all = Number.MAX_SAFE_INTEGER
  const largest = locks.semaphore(freshKey(), all)
  const most = await largest.lock({ permits: all, group: 'a', groupLimit: all, groupWeight: Number.MAX_VALUE })
  const groups = [{ group: 'a', taken: all, limit: all, weight: 1e6, waiting: 0 }]
  expect(await largest.inspect()).toMatchObject({ permits: all, taken: all, groups })
  const refused = await rejection(largest.lock({ group: 'a', groupLimit: all, timeout: 1 }), LockTimeoutError)
  expect(refused.message).toContain(`${all} of ${all} permits are taken`)
  await most.release()
  // A limit above the permits of the semaphore is no mistake, and a name may have any characters.
  const lease = await semaphore.lock({ group: ' ;</é', groupLimit: 9, groupWeight: 0.5 })
  expect((await semaphore.inspect()).groups).toEqual([{ group: ' ;</é', taken: 1, limit: 9, weight: 0.5, waiting: 0 }])
  await lease.release()
})

/** Tests what inspect, isLocked and list report about locks. */
import { describe, expect } from 'vitest'
import { LockArgumentError } from '../../src/index.ts'
import { collect, rejection } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { place } from '../kit/place.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

describe('inspect', () => {
  test('a lock that was never held is free', async ({ key }) => {
    expect(await client().inspect(key)).toEqual({
      key,
      kind: 'mutex',
      locked: false,
      holds: 0,
      holders: [],
      waiters: [],
    })
  })

  test('a held lock shows owner, label, holds, fencingToken and ttl', async ({ key }) => {
    const [holder, other] = [client({ label: 'me' }), client()]
    const lease = await holder.lock(key, { lease: 5_000, owner: 'somebody' })
    const state = await other.inspect(key)
    const { id, fencingToken } = lease
    const who = { owner: 'somebody', label: 'me', fencingToken, ttl: expect.any(Number) }
    expect(state).toEqual({
      key,
      kind: 'mutex',
      locked: true,
      holds: 1,
      ...who,
      holders: [{ id, heldFor: expect.any(Number), ...who }],
      waiters: [],
    })
    expect(state.holders[0]!.heldFor).toBeLessThan(1_000)
    expect(state.ttl).toBeGreaterThan(1_000)
    expect(state.ttl).toBeLessThanOrEqual(5_000)
  })

  test('a lock whose lease has ended is free', async ({ locks, key }) => {
    await locks.lock(key, { lease: 200 })
    await sleep(300)
    expect(await locks.inspect(key)).toEqual({ key, kind: 'mutex', locked: false, holds: 0, holders: [], waiters: [] })
    expect(await locks.isLocked(key)).toBe(false)
  })

  test('I3: waiters are shown in grant order with id, owner, label, position, waited and expiresIn', async () => {
    const [holder, first, second] = [client(), client({ label: 'one' }), client({ label: 'two' })]
    const key = freshKey()
    await holder.lock(key)
    await park(first, key, { fair: true, owner: 'first' })
    await sleep(300)
    await park(second, key, { fair: true, owner: 'second' })
    const { waiters } = await holder.inspect(key)
    const waiter = { id: expect.any(String), waited: expect.any(Number), expiresIn: expect.any(Number) }
    expect(waiters).toEqual([
      { ...waiter, owner: 'first', label: 'one', position: 1 },
      { ...waiter, owner: 'second', label: 'two', position: 2 },
    ])
    expect(waiters[0]!.id).not.toBe(waiters[1]!.id)
    expect(waiters[0]!.waited).toBeGreaterThanOrEqual(299)
    expect(waiters[0]!.waited).toBeGreaterThan(waiters[1]!.waited)
    expect(waiters[1]!.waited).toBeGreaterThanOrEqual(0)
    for (const { expiresIn } of waiters) {
      expect(expiresIn).toBeGreaterThan(0)
      expect(expiresIn).toBeLessThanOrEqual(10_000)
    }
  })

  test('waited of a waiter with a head start counts from when it joined, not from its ticket', async ({ key }) => {
    const [holder, waiter] = clients(2)
    await holder!.lock(key)
    await park(waiter!, key, { fair: true, headStart: 60_000 })
    const [first] = (await holder!.inspect(key)).waiters
    expect(first!.waited).toBeLessThan(10_000)
    expect(first!.expiresIn).toBeGreaterThan(0)
  })

  test('inspection changes nothing', async ({ holder, waiter, key }) => {
    const lease = await holder.lock(key, { lease: 20_000 })
    await park(waiter, key, { fair: true })
    const admin = place().admin()
    const dump = async () => {
      const names = (await admin.keysWith(key)).filter(name => !name.endsWith(':d'))
      return admin.everywhere(redis => Promise.all(names.map(name => redis.dumpBuffer(name))))
    }
    const before = await dump()
    await waiter.inspect(key)
    await waiter.isLocked(key)
    await collect(waiter.list(key))
    expect(await dump()).toEqual(before)
    expect(lease.held).toBe(true)
  })
})

test('isLocked follows the state of the lock', async ({ holder, other, key }) => {
  expect(await other.isLocked(key)).toBe(false)
  const lease = await holder.lock(key)
  expect(await other.isLocked(key)).toBe(true)
  await lease.release()
  expect(await other.isLocked(key)).toBe(false)
})

describe('list', () => {
  test('shows held and queued locks as inspect does, and no others', async () => {
    const prefix = freshKey('prefix')
    const [holder, waiter] = [client({ prefix }), client({ prefix })]
    await holder.lock('held')
    await holder.lock('queued')
    await park(waiter, 'queued', { fair: true })
    await (await holder.lock('released')).release()
    await holder.lock('expired', { lease: 200 })
    await eventually(async () => !(await holder.isLocked('expired')))
    const found = (await collect(waiter.list())).sort((a, b) => (a.key < b.key ? -1 : 1))
    expect(found.map(state => state.key)).toEqual(['held', 'queued'])
    for (const state of found) {
      // `list` and `inspect` ran at different moments, so do not compare the times that they report.
      const { ttl, holders, waiters, ...rest } = await waiter.inspect(state.key)
      expect(state).toMatchObject(rest)
      expect(state.holders.map(({ id }) => id)).toEqual(holders.map(({ id }) => id))
      expect(state.waiters.map(({ id }) => id)).toEqual(waiters.map(({ id }) => id))
    }
  })

  test('finds many locks, each once', async () => {
    const prefix = freshKey('prefix')
    const locks = client({ prefix })
    const keys = Array.from({ length: 1_500 }, (_, i) => `key ${i}`)
    await Promise.all(keys.map(key => locks.lock(key)))
    const found = (await collect(locks.list())).map(state => state.key)
    expect(found.sort()).toEqual(keys.sort())
  })

  const keys = [
    'a',
    'b',
    'c',
    'ab',
    'abc',
    'a*',
    'a?',
    '[a]',
    'a\nb',
    '{a}',
    'A',
    '^',
    'a-c',
    'x.y',
    'x+y',
    'order:1',
    'order:22',
  ]
  test.each([
    ['*', keys],
    ['a', ['a']],
    ['a*', ['a', 'ab', 'abc', 'a*', 'a?', 'a\nb', 'a-c']],
    ['?', ['a', 'b', 'c', 'A', '^']],
    ['a?', ['ab', 'a*', 'a?']],
    ['a??', ['abc', 'a\nb', 'a-c']],
    ['[ab]', ['a', 'b']],
    ['[a-c]', ['a', 'b', 'c']],
    ['[^a]', ['b', 'c', 'A', '^']],
    ['[^a-c]', ['A', '^']],
    ['a\\*', ['a*']],
    ['a\\?', ['a?']],
    ['\\[a\\]', ['[a]']],
    ['[*]', []],
    ['a[*?]', ['a*', 'a?']],
    ['{a}', ['{a}']],
    ['x.y', ['x.y']],
    ['x+y', ['x+y']],
    ['*:*', ['order:1', 'order:22']],
    ['order:?', ['order:1']],
    ['nothing*', []],
    ['', []],
  ])('accepts the pattern %j', async (pattern, expected) => {
    const prefix = freshKey('prefix')
    const locks = client({ prefix })
    await Promise.all(keys.map(key => locks.lock(key)))
    const found = (await collect(locks.list(pattern))).map(state => state.key)
    expect(found.sort()).toEqual([...expected].sort())
  })

  test.each(['[z-a]', '[', '[]', 'a\\', '[\\', '*****a', '('])(
    'lists or refuses the odd pattern %j, and never fails in another way',
    async pattern => {
      const locks = client({ prefix: freshKey('prefix') })
      await locks.lock('a')
      const outcome = await collect(locks.list(pattern)).catch(error => error)
      if (!Array.isArray(outcome)) expect(outcome).toBeInstanceOf(LockArgumentError)
    },
  )

  test('shows a lock that has just been freed with its queue or not at all, but never a dead queue', async () => {
    const prefix = freshKey('prefix')
    const [holder, waiter] = [client({ prefix }), client({ prefix })]
    await holder.lock('k')
    const stop = new AbortController()
    const queued = await park(waiter, 'k', { fair: true, signal: stop.signal })
    stop.abort()
    await rejection(queued.lease, DOMException)
    await holder.forceRelease('k')
    await eventually(async () => (await collect(holder.list())).length === 0)
  })
})

/** Tests the calls that accept a lock object of any kind instead of a key (forceRelease, @locked, wrap), and list. */
import { beforeAll, describe, expect } from 'vitest'
import { LockArgumentError, type LockClient, LockLostError, LockTimeoutError, locked } from '../../src/index.ts'
import { collect, promptly, rejection } from '../kit/outcomes.ts'
import { place } from '../kit/place.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'
import type { Decorated } from './decorated.fixture.ts'
import { decorated } from './decorated.ts'

let classes: Decorated
beforeAll(async () => {
  classes = await decorated()
})

test('list finds locks of every kind with one SCAN, also by a client that uses only one kind', async ({ own }) => {
  const [holder, looking] = [client({}, own.source()), client({}, own.source())]
  const permits = holder.semaphore('k', 2)
  const held = [
    await holder.lock('k'),
    await permits.lock(),
    await holder.semaphore('{k}:other', 1).lock(),
    await holder.readWrite('k').read.lock(),
  ]
  const found = await collect(looking.list('*k*'))
  const counted = await own.admin().each(master => master.info('commandstats'))
  expect(counted.map(text => /cmdstat_scan:calls=(\d+)/.exec(text)?.[1])).toEqual(counted.map(() => '1'))
  const shown = found.map(({ key, kind, holders }) => [kind, key, holders[0]!.id]).sort()
  expect(shown).toEqual([
    ['mutex', 'k', held[0]!.id],
    ['readWrite', 'k', held[3]!.id],
    ['semaphore', 'k', held[1]!.id],
    ['semaphore', '{k}:other', held[2]!.id],
  ])
  const large = permits.lock({ permits: 2, fair: true })
  await Promise.all([held[0]!.release(), held[3]!.release()])
  await eventually(async () => (await permits.inspect()).waiters.length === 1)
  const [state, ...others] = await collect(looking.list('k'))
  expect([state, others]).toMatchObject([{ kind: 'semaphore', taken: 1, waiters: [{ permits: 2 }] }, []])
  await held[1]!.release()
  await (await large).release()
})

describe('forceRelease', () => {
  test('I8: by the id of one holder of a semaphore, only that holder loses its permits', async ({ key }) => {
    const [one, two, other] = clients(3)
    const leases = [await one!.semaphore(key, 3).lock({ permits: 2 }), await one!.semaphore(key, 3).lock()]
    const waiting = two!.semaphore(key, 3).lock({ permits: 2, fair: true })
    const semaphore = other!.semaphore(key, 3)
    await eventually(async () => (await semaphore.inspect()).waiters.length === 1)
    const [first] = (await semaphore.inspect()).holders.filter(({ permits }) => permits === 2)
    expect(await other!.forceRelease(semaphore, first!.id)).toBe(true)
    const next = await promptly(waiting)
    await eventually(() => leases[0]!.signal.aborted, 2_000)
    expect(leases[0]!.signal.reason).toBeInstanceOf(LockLostError)
    expect(leases[1]!.held).toBe(true)
    expect(await other!.forceRelease(semaphore, first!.id)).toBe(false)
    for (const lease of [leases[1]!, next]) expect(await lease.release()).toBe(true)
  })

  test('I4, I8: all holders of a semaphore lose their permits, and waiters are served; a mutex of the same key is not affected', async () => {
    const [one, two, other] = clients(3)
    const key = freshKey()
    const mutex = await one!.lock(key)
    const leases = await Promise.all([1, 2].map(() => one!.semaphore(key, 2).lock()))
    const waiting = two!.semaphore(key, 2).lock({ permits: 2 })
    expect(await other!.forceRelease(other!.semaphore(key, 2))).toBe(true)
    await eventually(() => leases.every(({ signal }) => signal.aborted), 2_000)
    const next = await promptly(waiting)
    expect(mutex.held).toBe(true)
    expect(await next.release()).toBe(true)
    expect(await other!.forceRelease(other!.semaphore(key, 2))).toBe(false)
    expect(await other!.forceRelease(other!.mutex(key))).toBe(true)
    await eventually(() => mutex.signal.aborted, 2_000)
  })

  test('I4, I8: takes a read-write lock, through either side, from all holders or from one reader', async ({ key }) => {
    const [one, two, other] = clients(3)
    const { read } = one!.readWrite(key)
    const readers = [await read.lock(), await read.lock()]
    const writing = two!.readWrite(key).write.lock({ fair: true })
    const lock = other!.readWrite(key)
    await eventually(async () => (await lock.inspect()).waiters.length === 1)
    expect(await other!.forceRelease(lock.read, readers[0]!.id)).toBe(true)
    await eventually(() => readers[0]!.signal.aborted, 2_000)
    expect(readers[1]!.held).toBe(true)
    expect(await other!.forceRelease(lock.write)).toBe(true)
    await eventually(() => readers[1]!.signal.aborted, 2_000)
    const writer = await promptly(writing)
    expect(await other!.forceRelease(lock.read)).toBe(true)
    await eventually(() => writer.signal.aborted, 2_000)
    expect(await other!.isLocked(key)).toBe(false)
    expect((await lock.inspect()).locked).toBe(false)
  })

  // Redis stores the holders of a semaphore in a hash: each holder's id is the name of a field. The first three ids
  // below are names of fields of that hash that contain other data.
  test.each(['taken', 'clock', 'queued', '', undefined])('%s is not the id of a holder', async id => {
    const locks = client({}, place().sourceToNobody())
    const error = await promptly(
      rejection(locks.forceRelease(locks.semaphore('k', 2), id as string), LockArgumentError),
    )
    expect([error.option, error.value]).toEqual(['id', id])
  })

  test('refuses a lock of another client', async () => {
    const [locks, other] = [1, 2].map(() => client({}, place().sourceToNobody())) as [LockClient, LockClient]
    const lock = other.semaphore('k', 1)
    const error = await promptly(rejection(locks.forceRelease(lock), LockArgumentError))
    expect([error.option, error.value]).toEqual(['key', lock])
  })
})

describe('@locked and wrap', () => {
  test('I1: a semaphore, fixed or made by the call, with the number of permits in the options', async ({ key }) => {
    const locks = client()
    const object = classes.otherKinds({ locked, locks, key })
    const semaphore = locks.semaphore(key, 3)
    await object.large(async () => {
      expect(await semaphore.inspect()).toMatchObject({ taken: 2, permits: 3 })
      await rejection(
        object.limited(async () => {}, 2),
        LockTimeoutError,
      )
      const taken = await object.limited(async () => (await semaphore.inspect()).taken, 3)
      expect(taken).toBe(3)
    })
    expect(await semaphore.inspect()).toMatchObject({ taken: 0 })
    expect(await locks.isLocked(key)).toBe(false)
  })

  test('several locks', async ({ locks, key }) => {
    const inside = await classes
      .otherKinds({ locked, locks, key })
      .both(async () => [await locks.isLocked(`${key}:a`), (await locks.semaphore(`${key}:b`, 1).inspect()).taken])
    expect(inside).toEqual([true, 1])
    expect(await locks.isLocked(`${key}:a`)).toBe(false)
  })

  test('anything but a lock is refused', async () => {
    const [locks, other] = clients(2) as [LockClient, LockClient]
    const error = await rejection(classes.otherKinds({ locked, locks, key: freshKey() }).none(), LockArgumentError)
    expect(error.message).toMatch(
      /^key is 7; expected a key, or a lock made by this client \(of a read-write lock, .*\)$/,
    )
    expect(() => locks.wrap(other.mutex('k'), () => {})).toThrow(LockArgumentError)
    expect(() => locks.wrap(locks.semaphore('k', 2), () => {}, { permits: 3 })).toThrow(LockArgumentError)
    expect(() => locks.wrap('k', () => {}, { permits: 1 } as object)).toThrow(LockArgumentError)
    const keyed = locks.wrap(
      () => 'k',
      () => {},
      { permits: 1 } as object,
    )
    await rejection(keyed(), LockArgumentError)
  })
})

/** Tests that close rejects waiters, releases leases, leaves nothing behind, and may be called again. */
import { once } from 'node:events'
import { describe, expect } from 'vitest'
import { LockClosedError } from '../../src/index.ts'
import { kindsHere } from '../kit/kinds.ts'
import { aborted, collect, heard, outcomeOf, promptly, rejection, within } from '../kit/outcomes.ts'
import { park, queueOf } from '../kit/parking.ts'
import { ownPlace, place } from '../kit/place.ts'
import { Child } from '../kit/process.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { sleep } from '../kit/time.ts'
import { toNobody } from '../kit/topologies/source.ts'

describe('close', () => {
  test.each(kindsHere)('releases all holds: others can take the lock at once ($kind)', async ({ clients }) => {
    const [one, two] = clients(2)
    const leases = await Promise.all([one!.lock(freshKey()), one!.lock(freshKey(), { lease: 20_000 })])
    const losses = heard(one!, 'lost')
    await one!.close()
    for (const lease of leases) {
      expect(lease.held).toBe(false)
      expect((await two!.tryLock(lease.key))?.held).toBe(true)
    }
    expect(losses.map(event => event.key).sort()).toEqual(leases.map(lease => lease.key).sort())
  })

  test.each(kindsHere)('I4: hands the lock to waiters of other clients ($kind)', async ({ clients }) => {
    const [one, fair, unfair] = clients(3)
    const [a, b] = [freshKey('a'), freshKey('b')]
    await Promise.all([one!.lock(a), one!.lock(b)])
    const queued = await park(fair!, a, { fair: true })
    const parked = await park(unfair!, b)
    await one!.close()
    expect((await promptly(queued.lease)).held).toBe(true)
    expect((await promptly(parked.lease)).held).toBe(true)
  })

  test.for(kindsHere)(
    'I6, I7: rejects waiters of every kind with LockClosedError, and they leave the queue ($kind)',
    async ({ clients }, { key }) => {
      const [holder, locks] = clients(2)
      await holder!.lock(key)
      const queued = await park(locks!, key, { fair: true })
      const waits = [
        queued.lease,
        locks!.lock(key),
        locks!.lock(key, { fairAfter: 10 }),
        locks!.tryLock(key, { timeout: 60_000 }),
        locks!.tryLock(key, { timeout: 60_000, fair: true }),
        locks!.using(key, () => 'ran'),
      ]
      const outcomes = waits.map(each => rejection(each, LockClosedError))
      await sleep(100)
      const closed = locks!.close()
      const errors = await promptly(Promise.all(outcomes))
      for (const error of errors) expect(error).toMatchObject({ code: 'ERR_LOCK_CLOSED', key })
      await closed
      await queueOf(holder!, key, 0)
      expect(await holder!.isLocked(key)).toBe(true)
    },
  )

  test('later calls reject with LockClosedError', async ({ locks, key }) => {
    const wrapped = locks.wrap(key, async () => 'ran')
    await locks.close()
    const calls = [
      locks.lock(key),
      locks.tryLock(key),
      locks.tryLock(key, { timeout: 50 }),
      locks.using(key, () => 'ran'),
      wrapped(),
      locks.inspect(key),
      locks.isLocked(key),
      locks.forceRelease(key),
      collect(locks.list()),
    ]
    for (const call of calls) await promptly(rejection(call, LockClosedError))
  })

  test.each(kindsHere)('a grant that arrives during close is given back ($kind)', async ({ client }) => {
    const other = client()
    for (let round = 0; round < 10; round++) {
      const locks = client()
      const key = freshKey()
      if (round % 2) await locks.isLocked(key)
      const call = locks.lock(key, { fair: round % 3 === 0 }).catch(error => error)
      if (round % 4 > 1) await sleep(0)
      await locks.close()
      const outcome = await promptly(call)
      if (!(outcome instanceof LockClosedError)) expect(outcome.held).toBe(false)
      expect((await other.lock(key, { timeout: 5_000 })).held).toBe(true)
    }
  })

  test.each(kindsHere)('inside using: fn continues, and the call settles ($kind)', async ({ client }) => {
    const locks = client()
    let done = false
    const run = locks.using(freshKey(), async lease => {
      await locks.close()
      expect(lease.held).toBe(false)
      done = true
    })
    await promptly(rejection(run, LockClosedError))
    expect(done).toBe(true)
  })

  test('is idempotent', async ({ locks }) => {
    await locks.lock(freshKey())
    await Promise.all([locks.close(), locks.close()])
    await locks.close()
    expect(locks.stats().holding).toBe(0)
  })

  test('await using closes', async ({ key }) => {
    {
      await using locks = client()
      await locks.lock(key)
    }
    expect(await client().isLocked(key)).toBe(false)
  })

  test('I6: settles everything with Redis out of reach', async () => {
    const locks = client({}, place().sourceToNobody())
    const calls = [locks.lock(freshKey()), locks.lock(freshKey(), { fair: true }), locks.inspect(freshKey())]
    const outcomes = calls.map(call => rejection(call as Promise<unknown>, LockClosedError))
    await sleep(50)
    await promptly(locks.close())
    await promptly(Promise.all(outcomes))
  })

  test('I6: settles in bounded time if Redis is gone while a lock is held, and reports what it could not release', async () => {
    const own = await ownPlace()
    const locks = client({}, own.source())
    const errors = heard(locks, 'error')
    const lease = await locks.lock(freshKey())
    await own.kill()
    await within(6_000, locks.close())
    expect(lease.held).toBe(false)
    expect(errors).toMatchObject([{ error: { code: 'ERR_LOCK_CONNECTION', key: lease.key } }])
    expect(errors[0]!.error.message).toMatch(/: Redis did not confirm the release, so .* lease ends$/)
  })

  test.for(['by a listener that is notified of it', 'right after it'])(
    'I7: called when a lease has run out, %s: ends a hold that other holds of its owner would keep alive',
    async (when, { key }) => {
      const { source, proxy } = await place().proxied()
      const [one, two] = [client({}, source), client()]
      const lapsing = await one.lock(key, { owner: 'job', lease: 1_000 })
      // From now on, requests of client `one` do not reach Redis. So `one` cannot end its hold in Redis when its lease
      // runs out.
      proxy.hold('up')
      const lease = await two.lock(key, { owner: 'job' })
      expect(lease.via).toBe('reentry')
      const close = () => {
        proxy.heal()
        return one.close()
      }
      if (when === 'right after it') await aborted(lapsing.signal).then(close)
      else await new Promise(resolve => one.on('lost', () => resolve(close())))
      expect(await lease.release()).toBe(true)
      expect(await two.inspect(key)).toMatchObject({ locked: false, holds: 0 })
    },
  )

  test('I6: a call made by a listener of "lost" rejects at once', async ({ locks, stranger, key }) => {
    await stranger.lock(key)
    const held = await locks.lock(freshKey())
    const lapsing = await locks.lock(freshKey(), { lease: 300 })
    const order: string[] = []
    locks.on('lost', ({ error }) => {
      order.push(error.code)
      const call = rejection(locks.lock(key), LockClosedError)
      void call.finally(() => order.push('rejected'))
    })
    // The lease ends during this loop, but no timer can fire. So `close` itself has to notice the end.
    const until = performance.now() + 300
    while (performance.now() < until);
    await locks.close()
    expect(order).toEqual(['ERR_LOCK_CLOSED', 'ERR_LOCK_LOST', 'rejected', 'rejected'])
    expect([held.held, lapsing.held]).toEqual([false, false])
  })

  test('I7: called by a "released" listener while other callers of the client wait: the lock is free afterwards', async () => {
    const { source, proxy } = await place().proxied()
    const [locks, stranger] = [client({}, source), client()]
    const key = freshKey()
    const holder = await stranger.lock(key)
    const first = await park(locks, key)
    const second = outcomeOf(locks.lock(key))
    await holder.release()
    const lease = await first.lease
    const closed = new Promise(resolve => locks.on('released', () => resolve(locks.close())))
    proxy.hold('up')
    void lease.release()
    await sleep(300)
    proxy.heal()
    await closed
    expect(await stranger.isLocked(key)).toBe(false)
    const { value, error } = await second
    // In a quorum, the second caller asks each server for the lock as soon as the first hold has ended on that server.
    // So a majority may already have granted the lock to the second caller when the client learns that a majority has
    // released the first hold. `close` then ends the second hold.
    if (place().way.kind !== 'quorum') expect(value).toBeUndefined()
    expect(value?.signal.reason ?? error).toBeInstanceOf(LockClosedError)
  })
})

describe('I7: a process that has nothing else to do exits after close', () => {
  test.each(['used', 'await using', 'unused'])('%s', async way => {
    const child = new Child(new URL('children/close-and-exit.ts', import.meta.url), [
      JSON.stringify(place().way),
      freshKey(),
      way,
    ])
    const exit = once(child.process, 'exit')
    await child.message<{ closed: boolean }>(message => message.closed)
    expect(await within(5_000, exit)).toEqual([0, null])
  })

  test('also when its Redis is out of reach', async () => {
    const nowhere = JSON.stringify(await toNobody(place().way))
    const child = new Child(new URL('children/close-and-exit.ts', import.meta.url), [nowhere, 'k', 'unused'])
    expect(await once(child.process, 'exit')).toEqual([0, null])
  })
})

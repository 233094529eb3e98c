/** Tests that the deadlines of dead waiters do not outlive the last use of a lock (I7). */
import { describe, expect } from 'vitest'
import { renewed } from '../kit/names.ts'
import { again, anonymous, type Caller, caller } from './callers.ts'
import { type Asker, asker, TestSemaphore } from './semaphore.ts'
import { sharedLock, type TestLock, test } from './test-lock.ts'

const kinds = [
  { kind: 'a semaphore', make: () => TestSemaphore.on(), wants: '1/1' },
  { kind: 'a semaphore with groups', make: () => TestSemaphore.on(), wants: '1/1;;;a' },
  { kind: 'a read-write lock', make: () => TestSemaphore.readWrite(), wants: '1000000000/1000000000' },
]

describe.each(kinds)('$kind', ({ make, wants }) => {
  /** Makes a lock with a holder, and two dead waiters that have sent a heartbeat. */
  async function withDead(traits: Partial<Caller> = {}) {
    const semaphore = await make()
    const asking = (name: string) => asker(anonymous(name, traits), wants)
    const [holder, next, ...dead] = ['holder', 'next', 'ada', 'ben'].map(asking) as [Asker, Asker, Asker, Asker]
    await semaphore.acquire(holder)
    for (const who of dead) {
      const { ticket } = (await semaphore.acquire(who, 'queue')) as { ticket: number }
      await semaphore.tend([who, ticket])
    }
    const left = () => semaphore.redis.zcard(semaphore.names.deadlines)
    expect(await left()).toBe(3)
    return { semaphore, holder, next, left }
  }

  test('a release passes them over', async () => {
    const { semaphore, holder, left } = await withDead()
    await semaphore.release(holder)
    expect(await left()).toBe(0)
  })

  test('a live waiter is admitted behind them, and releases', async () => {
    const { semaphore, holder, next, left } = await withDead()
    const ear = semaphore.redis.duplicate()
    await ear.subscribe(`lock:inbox:${next.client}`)
    await semaphore.acquire(next, 'queue')
    await semaphore.release(holder)
    expect((await semaphore.state()).holders).toEqual([next.id])
    await semaphore.release(next)
    expect(await left()).toBe(0)
  })

  test('their queue has expired, and the holder releases', async () => {
    const { semaphore, holder, left } = await withDead()
    const { queue, readers, waiting } = semaphore.names
    await semaphore.redis.del(...[queue, readers, waiting].filter(Boolean))
    await semaphore.release(holder)
    expect(await left()).toBe(0)
  })

  test('the holder has died, too, and a single attempt takes the lock', async () => {
    const { semaphore, holder, next, left } = await withDead()
    await semaphore.lapse(holder)
    expect(await semaphore.acquire(next, 'try')).toMatchObject({ status: 'succeeded' })
    const times = await semaphore.redis.zrange(semaphore.names.deadlines, 0, '-1')
    expect(times).toEqual([next.id])
    await semaphore.release(next)
    expect(await left()).toBe(0)
  })

  test('the holder lapses after they were passed over, and somebody tries to take the lock by force', async () => {
    const { semaphore, holder, next, left } = await withDead()
    const ear = semaphore.redis.duplicate()
    await ear.subscribe(`lock:inbox:${next.client}`)
    await semaphore.acquire(next, 'queue')
    await semaphore.release(holder)
    await semaphore.lapse(next)
    expect(await semaphore.forceRelease('request')).toBe('free')
    expect(await left()).toBe(0)
  })
})

describe('a mutex whose owner has re-entered', () => {
  /** Gives the lock a holder that re-enters while two dead waiters and one live waiter, the last one, send heartbeats. */
  async function withDead(lock: TestLock) {
    const [holder, next] = [caller('holder', { lease: 30_000 }), caller('next')]
    const inner = again(holder)
    await lock.listen(next)
    await lock.grant(holder)
    for (const who of [caller('ada'), caller('ben'), next]) await lock.tend([who, await lock.enqueue(who)])
    await lock.acquire(inner)
    return { holder, inner, next }
  }

  /** Returns for how many ms the deadlines still live. */
  const life = (lock: TestLock) => lock.redis.pttl(lock.names.deadlines)

  test('the holder dies, too: the deadlines live little longer than the latest lease', async ({ lock }) => {
    const { inner } = await withDead(lock)
    for (const ms of [30_000, 40_000]) {
      await lock.scripts.run('renew', renewed(lock.names.lock), [inner.id, 9e15, ms])
      expect(await life(lock)).toBeGreaterThan(ms)
      expect(await life(lock)).toBeLessThanOrEqual(ms + 5_000)
    }
  })

  test('the lock is handed on: the deadlines live no longer than the queue', async () => {
    const lock = await sharedLock()
    const { holder, inner, next } = await withDead(lock)
    expect(await life(lock)).toBeGreaterThan(30_000)
    for (const hold of [holder, inner]) await lock.release(hold)
    expect(await lock.holder()).toBe(next.id)
    expect(await life(lock)).toBeLessThanOrEqual(2 * next.ttl)
    await lock.release(next)
    expect(await life(lock)).toBeLessThanOrEqual(2 * next.ttl)
  })

  test('nobody is left: the deadlines go with the holder', async ({ lock }) => {
    const { holder, inner, next } = await withDead(lock)
    await lock.leave(next)
    for (const hold of [holder, inner]) await lock.release(hold)
    expect(await lock.redis.exists(lock.names.deadlines)).toBe(0)
  })
})

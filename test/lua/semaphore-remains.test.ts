/** Tests lua/permits/ when one key of a semaphore is lost (evicted, deleted) and its other keys still exist. */
import { expect } from 'vitest'
import { caller } from './callers.ts'
import { another, asker, TestSemaphore, test } from './semaphore.ts'
import { MEMORY } from './test-lock.ts'

const ada = asker(caller('ada'), '2/3')
const one = (wants: string) => ({ ...another(ada), wants })

test('I4 after the deadlines were lost, no permits stay taken without a holder', async ({ semaphore }) => {
  await semaphore.acquire(ada)
  await semaphore.redis.del(semaphore.names.deadlines)
  const next = one('1/3')
  expect(await semaphore.acquire(next)).toMatchObject({ status: 'granted' })
  expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [next.id], deadlines: [next.id] })
  expect(await semaphore.acquire(one('2/3'))).toMatchObject({ status: 'granted' })
})

test('I1 after the deadlines were lost, the semaphore still knows that it has groups', async ({ semaphore }) => {
  const { redis, names } = semaphore
  await semaphore.acquire(one('1/3;;;a'))
  await redis.del(names.deadlines)
  const next = one('1/3;;;b')
  await semaphore.acquire(next)
  expect(await redis.hgetall(names.lock)).toMatchObject({ queued: 'g', ':b': '1' })
  await semaphore.release(next)
  expect(await redis.hgetall(names.lock)).not.toHaveProperty(':b')
})

test('I4 after the deadlines were lost, a heartbeat of a waiter that had been granted permits still works', async () => {
  const semaphore = await TestSemaphore.on()
  const ear = semaphore.redis.duplicate()
  await ear.subscribe(`lock:inbox:${ada.client}`)
  const holder = one('3/3')
  await semaphore.acquire(holder)
  const { ticket } = (await semaphore.acquire(ada, 'queue')) as { ticket: number }
  await semaphore.release(holder)
  expect((await semaphore.state()).holders).toEqual([ada.id])
  await semaphore.redis.del(semaphore.names.deadlines)
  await semaphore.acquire(one('1/3'))
  await semaphore.tend([ada, ticket])
  const { holders, deadlines } = await semaphore.state()
  expect(deadlines).toEqual(holders)
})

test('I9 after the lock was lost, a refusal reports the end of a present lease, not of a lost one', async () => {
  const semaphore = await TestSemaphore.on()
  await semaphore.acquire({ ...one('1/3'), lease: 5_000 })
  await semaphore.redis.del(semaphore.names.lock)
  await semaphore.acquire({ ...one('3/3'), lease: 20_000 })
  const { ttl } = (await semaphore.acquire(one('1/3'))) as { ttl: number }
  expect(ttl).toBeGreaterThan(15_000)
})

test('a server at maxmemory refuses to grant a new semaphore, and writes nothing', async () => {
  const semaphore = await TestSemaphore.onOwnServer()
  await semaphore.redis.config('SET', 'maxmemory', '1')
  await expect(semaphore.acquire(ada)).rejects.toMatchObject({ cause: { message: expect.stringMatching(/^OOM/) } })
  expect(await semaphore.redis.dbsize()).toBe(0)
})

test('I7 idle groups are forgotten after MEMORY, a few with each call, also while the semaphore stays in use', async () => {
  const semaphore = await TestSemaphore.on()
  const { redis, names } = semaphore
  await semaphore.acquire(one('1/3'))
  const use = async (group: string) => {
    const job = one(`1/3;;;${group}`)
    await semaphore.acquire(job)
    await semaphore.release(job)
  }
  for (let i = 0; i < 100; i++) await use(`tenant${i}`)
  const idle = await redis.zrange(names.turns, 0, '-1')
  expect(idle).toHaveLength(100)
  for (const member of idle.slice(1)) await redis.zincrby(names.turns, -MEMORY - 1_000, member)
  for (let i = 0; i < 10; i++) await use('last')
  expect(await redis.zrange(names.turns, 0, '-1')).toEqual([idle[0], ':last'])
  const known = Object.keys(await redis.hgetall(names.shares)).sort()
  expect(known.filter(name => name.includes('tenant'))).toEqual([`f${idle[0]!.slice(1)}`, `l${idle[0]!.slice(1)}`])
})

test('I7 with the last group, everything about groups but the virtual time is gone, and all keys expire', async () => {
  const semaphore = await TestSemaphore.on()
  const { redis, names } = semaphore
  const [plain, first, second] = [one('3/3'), one('1/3;1;;a'), one('1/3;1;;a')]
  await semaphore.acquire(plain)
  for (const waiter of [first, second]) await semaphore.acquire(waiter, 'queue')
  expect((await redis.hget(names.lock, 'queued'))?.[0]).toBe('g')
  await semaphore.release(plain)
  expect(await redis.hgetall(names.lock)).toMatchObject({ taken: '1', grouped: '1', ':a': '1' })
  await semaphore.release(first)
  await semaphore.release(second)
  const left = await redis.hgetall(names.lock)
  expect(Object.keys(left).sort()).toEqual(['clock', 'keep', 'pace', 'taken'])
  expect(await redis.exists(names.waiting, names.queue, names.deadlines)).toBe(0)
  for (const key of await redis.keys(`${names.lock}*`)) expect(await redis.pttl(key)).toBeGreaterThan(0)
})

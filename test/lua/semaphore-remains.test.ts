/** Tests lua/permits/ when one key of a semaphore is lost (evicted, deleted) and its other keys still exist. */
import { expect, test } from 'vitest'
import { caller } from './callers.ts'
import { another, asker, TestSemaphore } from './semaphore.ts'

const ada = asker(caller('ada'), '2/3')
const one = (wants: string) => ({ ...another(ada), wants })

test('I4 after the deadlines were lost, no permits stay taken without a holder', async () => {
  const semaphore = await TestSemaphore.on()
  await semaphore.acquire(ada)
  await semaphore.redis.del(semaphore.names.deadlines)
  const next = one('1/3')
  expect(await semaphore.acquire(next)).toMatchObject({ status: 'granted' })
  expect(await semaphore.state()).toMatchObject({ taken: 1, holders: [next.id], deadlines: [next.id] })
  expect(await semaphore.acquire(one('2/3'))).toMatchObject({ status: 'granted' })
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

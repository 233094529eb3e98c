/**
 * Tests exclusion (I1): many callers add 1 to the same number, each while it holds the lock. The sum is right only if
 * no two of them add at the same time.
 */
import { expect, test } from 'vitest'
import { client, freshKey, plainRedis } from '../../kit/redis.ts'
import { increment } from '../../kit/witness.ts'

test.each([true, false])('15 owners in one client add up to 15 (fair: %s)', async fair => {
  const key = freshKey()
  const [locks, redis] = [client(), plainRedis()]
  const add = () => locks.using(key, { fair }, () => increment(redis, `${key}:counter`))
  await Promise.all(Array.from({ length: 15 }, add))
  expect(await redis.get(`${key}:counter`)).toBe('15')
})

test('15 named owners in one client add up to 15', async () => {
  const key = freshKey()
  const [locks, redis] = [client(), plainRedis()]
  const add = (_: unknown, i: number) =>
    locks.runAs(`owner ${i}`, () => locks.using(key, () => increment(redis, `${key}:counter`)))
  await Promise.all(Array.from({ length: 15 }, add))
  expect(await redis.get(`${key}:counter`)).toBe('15')
})

test.each([true, false])('30 clients add up to 30 (fair: %s)', async fair => {
  const key = freshKey()
  const redis = plainRedis()
  const clients = Array.from({ length: 30 }, () => client())
  await Promise.all(clients.map(locks => locks.using(key, { fair }, () => increment(redis, `${key}:counter`))))
  expect(await redis.get(`${key}:counter`)).toBe('30')
})

test('8 clients of 30 rounds, half of them fair, add up to 240', async () => {
  const key = freshKey()
  const redis = plainRedis()
  const work = async (_: unknown, i: number) => {
    const locks = client()
    for (let round = 0; round < 30; round++) {
      await locks.using(key, { fair: i % 2 === 0 }, () => increment(redis, `${key}:counter`))
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  expect(await redis.get(`${key}:counter`)).toBe('240')
})

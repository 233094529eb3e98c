/** What a client of a single server may be made from, beside an instance. */
import { expect, test } from 'vitest'
import { client, freshKey, keysWith, plainRedis, redisUrl } from '../support/redis.ts'

test('a client is made from a URL', async () => {
  expect((await client({}, redisUrl()).lock(freshKey())).held).toBe(true)
})

test('a client is made from a URL with a database', async () => {
  const key = freshKey()
  await client({}, `${redisUrl()}/5`).lock(key)
  expect(await client({}, `${redisUrl()}/6`).isLocked(key)).toBe(false)
  expect(await client({}, `${redisUrl()}/5`).isLocked(key)).toBe(true)
})

test('a client is made from options of ioredis, which it does not change', async () => {
  const { hostname, port } = new URL(redisUrl())
  const options = Object.freeze({ host: hostname, port: Number(port), db: 3, keyPrefix: 'y:' })
  const key = freshKey()
  await client({}, options).lock(key)
  expect(await keysWith(plainRedis(`${redisUrl()}/3`), key)).toEqual([expect.stringMatching(/^y:lock:/)])
})

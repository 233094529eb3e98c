import { expect, onTestFinished, test } from 'vitest'
import { client, freshKey, plainRedis } from '../../kit/redis.ts'

test('a key of another kind where the queue of a lock would be hides no other lock', async () => {
  const prefix = freshKey('prefix')
  const locks = client({ prefix })
  await locks.lock('a lock')
  await locks.lock('foreign')
  const redis = plainRedis()
  await redis.set(`${prefix}:{foreign}:queue`, 'no queue')
  onTestFinished(async () => void (await redis.del(`${prefix}:{foreign}:queue`)))
  const found: string[] = []
  for await (const { key } of locks.list()) found.push(key)
  expect(found).toEqual(['a lock'])
  const cause = { message: expect.stringMatching(/^WRONGTYPE/) }
  await expect(locks.inspect('foreign')).rejects.toMatchObject({ cause })
})

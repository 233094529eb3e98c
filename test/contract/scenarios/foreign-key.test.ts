/** Tests what happens if another program uses a Redis key whose name a lock needs. */
import { expect, onTestFinished } from 'vitest'
import { LockConnectionError } from '../../../src/index.ts'
import { rejection } from '../../kit/outcomes.ts'
import { client, freshKey, plainRedis, test } from '../../kit/redis.ts'

test('a key of another type in place of a lock’s queue does not hide other locks', async () => {
  const prefix = freshKey('prefix')
  const locks = client({ prefix })
  await locks.lock('a lock')
  await locks.lock('foreign')
  const redis = plainRedis()
  await redis.set(`${prefix}:{foreign}:q`, 'no queue')
  await redis.set(`${prefix}:{other}`, 'no lock')
  onTestFinished(async () => void (await redis.del(`${prefix}:{foreign}:q`, `${prefix}:{other}`)))
  const found: string[] = []
  for await (const { key } of locks.list()) found.push(key)
  expect(found).toEqual(['a lock'])
  const cause = { message: expect.stringMatching(/^WRONGTYPE/) }
  await expect(locks.inspect('foreign')).rejects.toMatchObject({ cause })
})

test('a lock is refused if one of its keys has another type; the error names the key and its type', async ({ key }) => {
  const locks = client()
  const redis = plainRedis()
  for (const [lock, name] of [
    [locks.mutex(key), `lock:{${key}}`],
    [locks.semaphore(key, 1), `lock:%semaphore/{${key}}`],
  ] as const) {
    await redis.set(name, 'mine')
    const string = await rejection(lock.tryLock(), LockConnectionError)
    expect(string.message).toMatch(
      `the key "${name}" is a string that no lock has written; remove this key, or use a different prefix for the locks: WRONG`,
    )
    expect(string).toMatchObject({ key, cause: { message: expect.stringMatching(/^WRONGTYPE/) } })
    await redis.del(name)
    const lease = await lock.lock()
    await redis.rpush(`${name}:q`, 'mine')
    const list = await rejection(lock.lock({ fair: true }), LockConnectionError)
    expect(list.message).toContain(`"${name}:q" is a list that no lock has written`)
    await redis.del(`${name}:q`)
    expect(await lease.release()).toBe(true)
  }
})

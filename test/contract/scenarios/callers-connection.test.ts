/**
 * Tests that a client made from an ioredis instance only copies the instance's settings. The instance itself remains
 * the caller's, and the client never uses it.
 */
import type { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { park } from '../../kit/parking.ts'
import { client, freshKey, keysWith, ownServer, plainRedis } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

/** Returns everything that a lock client could change in an ioredis instance: the settings and the state. */
function looks(redis: Redis) {
  return {
    own: Object.getOwnPropertyNames(redis).sort(),
    prototype: Object.getPrototypeOf(redis),
    options: { ...redis.options },
    listeners: redis.eventNames().map(name => [name, redis.listenerCount(name)]),
    status: redis.status,
    mode: redis.mode,
    commands: redis.getBuiltinCommands().length,
    scripts: Object.keys((redis as unknown as { scriptsSet: object }).scriptsSet),
  }
}

test('its keyPrefix applies to keys and channels, and the instance is unchanged', async () => {
  const { url } = await ownServer()
  const plain = plainRedis(url)
  const redis = plainRedis(url)
  redis.options.keyPrefix = 'shop:'
  await redis.set('stock', 1)
  const before = looks(redis)
  const connected = async () =>
    String(await plain.client('LIST'))
      .trim()
      .split('\n').length
  const key = freshKey()

  const locks = client({}, redis)
  const other = client({ prefix: 'shop:lock' }, url)
  const held = await locks.lock(key)
  expect(await other.inspect(key), 'the same lock, spelled out').toMatchObject({ locked: true, owner: held.owner })
  const fair = await park(other, key, { fair: true })
  const unfair = await park(locks, key)
  const channels = async () => (await plain.pubsub('CHANNELS', '*')) as string[]
  await eventually(async () => (await channels()).some(name => name.includes(`{${key}}`)))
  for (const name of [...(await keysWith(plain, '')), ...(await channels())]) expect(name).toMatch(/^shop:/)
  expect(looks(redis), 'while the client works').toEqual(before)

  await held.release()
  await (await fair.lease).release()
  expect(await (await unfair.lease).release()).toBe(true)
  const beforeClose = await connected()
  await locks.close()
  await eventually(async () => (await connected()) === beforeClose - 2)
  expect(looks(redis), 'after the client was closed').toEqual(before)
  expect(await redis.get('stock')).toBe('1')
})

test('an instance that has not connected is left unconnected', async () => {
  const redis = plainRedis().duplicate({ lazyConnect: true, keyPrefix: 'lazy:' })
  const before = looks(redis)
  const locks = client({}, redis)
  const key = freshKey()
  await locks.using(key, async () => {
    expect(await keysWith(plainRedis(), key)).toEqual([`lazy:lock:{${key}}`])
  })
  await locks.close()
  expect(looks(redis)).toEqual(before)
  expect(redis.status).toBe('wait')
})

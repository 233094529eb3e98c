/** Tests clients of a single server that are made from a URL or from options of ioredis. */
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis-5'
import { describe, expect, onTestFinished } from 'vitest'
import { FaultProxy } from '../kit/fault-proxy.ts'
import { promptly } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { client, freshKey, keysWith, ownServer, plainRedis, redisUrl, test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'

test('a client is made from a URL', async () => {
  expect((await client({}, redisUrl()).lock(freshKey())).held).toBe(true)
})

test('a client is made from options of ioredis, which it does not change', async ({ key }) => {
  const { hostname, port } = new URL(redisUrl())
  const options = Object.freeze({ host: hostname, port: Number(port), db: 3, keyPrefix: 'y:' })
  await client({}, options).lock(key)
  expect(await keysWith(plainRedis(`${redisUrl()}/3`), key)).toEqual([expect.stringMatching(/^y:lock:/)])
})

describe.each([
  ['6', Redis],
  ['5', Redis5 as unknown as typeof Redis],
])('I1: locks are in the database in which an instance of ioredis %s is', (_, Redis) => {
  test('after it has selected one, also while it reconnects, and after it was closed', async ({ key }) => {
    const { url } = await ownServer()
    const proxy = await FaultProxy.open(url)
    const redis = new Redis(proxy.url, { db: 1, retryStrategy: () => 10 })
    onTestFinished(async () => {
      redis.disconnect()
      await proxy.close()
    })
    redis.on('error', () => {})
    const locksIn = async (db: number) => (await keysWith(plainRedis(`${url}/${db}`), key)).length
    await client({}, redis).tryLock(key)
    expect([await locksIn(1), redis.options.db]).toEqual([1, 1])
    await redis.select(2)
    const second = client({}, redis)
    await redis.select(3)
    await second.tryLock(key)
    expect([await locksIn(2), await locksIn(3)]).toEqual([1, 0])

    proxy.swallow('down')
    proxy.cut()
    await eventually(() => redis.status === 'connect')
    const third = client({}, redis)
    proxy.heal()
    proxy.cut()
    await promptly(third.tryLock(key, { timeout: 2_000 }))
    expect([await locksIn(1), await locksIn(3)]).toEqual([1, 1])

    await eventually(() => redis.status === 'ready')
    // ioredis selects its database again when it is ready, and handles no failure of that.
    await redis.ping()
    redis.select(4).catch(() => {})
    redis.disconnect()
    await client({}, redis).tryLock(key)
    expect(await locksIn(4)).toBe(1)
  })
})

describe('a URL with keyPrefix', () => {
  const prefixed = () => `${redisUrl()}?keyPrefix=app:`

  test('I1: its clients and those of an instance with the same prefix exclude each other', async ({ key }) => {
    const redis = new Redis(redisUrl(), { keyPrefix: 'app:' })
    onTestFinished(() => redis.disconnect())
    const [one, two] = [client({}, prefixed()), client({}, redis)]
    const lease = await one.lock(key)
    expect(await two.tryLock(key)).toBeNull()
    expect(await keysWith(plainRedis(), key)).toEqual([`app:lock:{${key}}`])
    await lease.release()
    expect((await two.tryLock(key))?.held).toBe(true)
    expect(await one.tryLock(key)).toBeNull()
  })
})

// Each of these settings would break the client's connections if the client did not ignore the setting.
test.for(['monitor=true', 'scripts=x', 'stringNumbers=true'])(
  'connection settings in a URL that a lock cannot use are ignored: %s',
  async (said, { key }) => {
    const url = `${redisUrl()}?${said}`
    const [holder, waiter] = [client({}, url), client({}, url)]
    const lease = await promptly(holder.lock(key))
    const parked = await park(waiter, key)
    expect(await lease.release()).toBe(true)
    const next = await promptly(parked.lease)
    expect(next.via).toBe('wakeup')
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken)
  },
)

test('other settings in a URL take effect', async () => {
  const name = freshKey('me')
  await client({}, `${redisUrl()}/4?lazyConnect=&connectionName=${name}`).lock(freshKey())
  const lines = String(await plainRedis().client('LIST')).split('\n')
  const own = lines.filter(line => line.includes(` name=${name} `))
  expect(own).not.toEqual([])
  for (const line of own) expect(line).toContain(' db=4 ')
})

/** What a client may be made from, and that an instance passed in stays the caller's. */
import { Redis, type RedisOptions } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { client, freshKey, keysWith, ownServer, plainRedis, redisUrl } from '../support/redis.ts'
import { park, promptly, queueUp } from './support.ts'

function instance(options: Omit<RedisOptions, 'replyMapping'> = {}, url = redisUrl()): Redis {
  const redis = new Redis(url, options)
  onTestFinished(() => {
    redis.disconnect()
  })
  return redis
}

/** Everything of an instance that a guest could have changed. */
function portrait(redis: Redis) {
  const names = (of: object) => Reflect.ownKeys(of).map(String).sort()
  const emitter = redis as unknown as {
    eventNames(): (string | symbol)[]
    listenerCount(name: string | symbol): number
  }
  return {
    own: names(redis),
    prototype: names(Object.getPrototypeOf(redis)),
    listeners: emitter.eventNames().map(name => [String(name), emitter.listenerCount(name)]),
    options: { ...redis.options },
    status: redis.status,
    mode: redis.mode,
    scripts: Object.keys((redis as unknown as { scriptsSet: object }).scriptsSet),
  }
}

/** Uses every part of a client once. */
async function exercise(source: Redis): Promise<void> {
  const [one, two] = [client({}, source), client({}, source)]
  const key = freshKey()
  const lease = await one.lock(key)
  const queued = await queueUp(two, key, 1)
  const parked = await park(two, key)
  await lease.release()
  await (await queued.lease).release()
  await (await parked.lease).renew()
  await one.inspect(key)
  for await (const _ of one.list(key));
  await one.forceRelease(key)
  await one.close()
  await two.close()
}

describe('a client is made from', () => {
  test('a URL', async () => {
    expect((await client({}, redisUrl()).lock(freshKey())).held).toBe(true)
  })

  test('a URL with a database', async () => {
    const key = freshKey()
    await client({}, `${redisUrl()}/5`).lock(key)
    expect(await client({}, `${redisUrl()}/6`).isLocked(key)).toBe(false)
    expect(await client({}, `${redisUrl()}/5`).isLocked(key)).toBe(true)
  })

  test('options of ioredis, which it does not change', async () => {
    const { hostname, port } = new URL(redisUrl())
    const options = Object.freeze({ host: hostname, port: Number(port), db: 3, keyPrefix: 'y:' })
    const key = freshKey()
    await client({}, options).lock(key)
    expect(await keysWith(plainRedis(`${redisUrl()}/3`), key)).toEqual([expect.stringMatching(/^y:lock:/)])
  })

  test('an instance that is connected', async () => {
    const redis = instance()
    await redis.ping()
    expect((await client({}, redis).lock(freshKey())).held).toBe(true)
  })

  test('an instance that connects on demand', async () => {
    const redis = instance({ lazyConnect: true })
    expect((await promptly(client({}, redis).lock(freshKey()))).held).toBe(true)
    expect(redis.status).toBe('wait')
    expect(await redis.ping()).toBe('PONG')
  })

  test('an instance that was closed', async () => {
    const redis = instance()
    await redis.ping()
    redis.disconnect()
    const locks = client({}, redis)
    expect((await promptly(locks.lock(freshKey()))).held).toBe(true)
  })

  test('an instance that is subscribed, and goes on being so', async () => {
    const redis = instance()
    const channel = freshKey('channel')
    const messages: string[] = []
    redis.on('message', (_, message) => messages.push(message))
    await redis.subscribe(channel)
    await exercise(redis)
    await plainRedis().publish(channel, 'still here')
    await expect.poll(() => messages).toEqual(['still here'])
  })

  test('an instance with manners that a lock cannot use', async () => {
    const redis = instance({
      commandTimeout: 1_000,
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      stringNumbers: true,
    })
    const locks = client({}, redis)
    const key = freshKey()
    const lease = await locks.lock(key)
    expect(lease.fencingToken).toBeTypeOf('number')
    expect((await locks.inspect(key)).holds).toBe(1)
  })
})

describe('an instance passed in stays the caller’s', () => {
  test.each([
    ['connected', {}],
    ['lazy', { lazyConnect: true }],
    ['with a key prefix', { keyPrefix: 'own:' }],
  ])('%s: it has the same listeners, methods, options and status after use and close', async (_, options) => {
    const redis = instance(options)
    if (!('lazyConnect' in options)) await redis.ping()
    const before = portrait(redis)
    await exercise(redis)
    expect(portrait(redis)).toEqual(before)
    expect(await redis.ping()).toBe('PONG')
  })

  test('it is not used at all: no command, no subscription', async () => {
    const server = await ownServer()
    const redis = instance({}, server.url)
    await redis.ping()
    const id = await redis.client('ID')
    await exercise(redis)
    const list = (await plainRedis(server.url).client('LIST')) as string
    const line = list.split('\n').find(each => each.startsWith(`id=${id} `))
    expect(line).toMatch(/ sub=0 psub=0 /)
    expect(line).toMatch(/ cmd=client/)
  })

  test('I7: after close nothing of the client is left on the server but the clocks of its locks', async () => {
    const server = await ownServer()
    const redis = plainRedis(server.url)
    const key = freshKey()
    const [one, two] = [client({}, server.url), client({}, server.url)]
    await one.lock(key)
    await queueUp(two, key, 1)
    await Promise.all([one.close(), two.close()])
    await expect.poll(() => redis.pubsub('CHANNELS', '*')).toEqual([])
    await expect.poll(async () => ((await redis.client('LIST')) as string).trim().split('\n').length).toBe(1)
    const names = await keysWith(redis, '')
    expect(names).toHaveLength(1)
    expect(await redis.pttl(names[0]!)).toBeGreaterThan(0)
  })
})

describe('keyPrefix of the instance', () => {
  test('is honoured for keys and channels alike', async () => {
    const server = await ownServer()
    const redis = plainRedis(server.url)
    const source = instance({ keyPrefix: 'x:' }, server.url)
    const [one, two, three] = [1, 2, 3].map(() => client({}, source))
    const key = freshKey()
    await one!.lock(key)
    await park(two!, key)
    await queueUp(three!, key, 1)
    for (const name of await keysWith(redis, '')) expect(name).toMatch(/^x:lock:/)
    const channels = (await redis.pubsub('CHANNELS', '*')) as string[]
    expect(channels.length).toBeGreaterThanOrEqual(2)
    for (const channel of channels) expect(channel).toMatch(/^x:/)
  })

  test('I1: clients with and without it do not exclude each other, and do not see each other', async () => {
    const [prefixed, same] = [client({}, instance({ keyPrefix: 'x:' })), client({}, instance({ keyPrefix: 'x:' }))]
    const plain = client()
    const key = freshKey()
    const lease = await prefixed.lock(key)
    const other = await plain.tryLock(key)
    expect(other?.held).toBe(true)
    expect(await same.tryLock(key)).toBeNull()
    const [waitsForPrefixed, waitsForPlain] = [await park(same, key), await park(client(), key)]
    await other?.release()
    expect((await waitsForPlain.lease).via).toBe('wakeup')
    await lease.release()
    expect((await waitsForPrefixed.lease).via).toBe('wakeup')
  })

  test('hand-off and list work with it', async () => {
    const source = instance({ keyPrefix: 'x:' })
    const [one, two] = [client({}, source), client({}, source)]
    const key = freshKey()
    const lease = await one.lock(key)
    const queued = await queueUp(two, key, 1)
    await lease.release()
    expect((await queued.lease).via).toBe('handoff')
    const found = []
    for await (const state of one.list(key)) found.push(state.key)
    expect(found).toEqual([key])
  })
})

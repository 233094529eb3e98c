/** Tests what docs/migrating.md, and the page for each library, say of other libraries. */
import { readFileSync } from 'node:fs'
import { Redlock } from '@sesamecare-oss/redlock'
import type { Redis } from 'ioredis'
import { MultiSemaphore, Mutex, Semaphore } from 'redis-semaphore'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { parse } from 'yaml'
import { load } from '../../../benchmarks/rivals/installed.ts'
import { runNode } from '../../kit/program.ts'
import { client, freshKey, ownServer, plainRedis, redisUrl, test } from '../../kit/redis.ts'
import { eventually, sleep } from '../../kit/time.ts'

// The package redlock hides its type declarations. So the test uses the types of the fork @sesamecare-oss/redlock,
// which has the same calls as redlock.
const { default: Redlock5 } = await load<{ default: typeof Redlock }>('redlock')
const redlocks = [
  ['redlock', Redlock5],
  ['@sesamecare-oss/redlock', Redlock],
] as const

test('locks of different libraries do not exclude each other, even under one name', async () => {
  const [redis, key] = [plainRedis(), freshKey()]
  const mutex = new Mutex(redis, key)
  await mutex.acquire()
  const lock = await new Redlock([redis]).acquire([key], 5_000, { retryCount: 0 })
  const lease = await client().tryLock(key)
  expect([mutex.isAcquired, lock.expiration > Date.now(), lease?.held]).toEqual([true, true, true])
  expect(await redis.exists(`mutex:${key}`, key, `lock:{${key}}`)).toBe(3)
  await Promise.all([mutex.release(), lock.release()])
})

test.each([
  ['redis-semaphore', 'the same with `acquireAttemptsLimit: 1`'],
  ['redlock', '`retryCount: 0`'],
  ['redisson', '`lock.tryLock()`'],
])(
  'one attempt of %s (%s) is also one attempt here, even for a client with the recommended timeout',
  async (library, theirs) => {
    const page = readFileSync(new URL(`../../../docs/migrating-from-${library}.md`, import.meta.url), 'utf8')
    const row = page.split('\n').find(line => line.startsWith(`| ${theirs} |`))
    const [, options] = /`await locks\.tryLock\(key(?:, (\{.*\}))?\)` \|$/.exec(row ?? '') ?? []
    const [key, locks] = [freshKey(), client({ timeout: 1_000 })]
    await client().lock(key)
    expect(await locks.tryLock(key, options ? parse(options) : {})).toBeNull()
    const { refused, timedOut } = locks.stats()
    expect({ refused, timedOut }).toEqual({ refused: 1, timedOut: 0 })
  },
)

describe('redis-semaphore', () => {
  test('a semaphore and a multi-semaphore share their permits, but not with ours; each caller uses its own total', async () => {
    const [redis, key] = [plainRedis(), freshKey()]
    const once = { acquireAttemptsLimit: 1 }
    const two = new MultiSemaphore(redis, key, 3, 2, once)
    const one = new Semaphore(redis, key, 3, once)
    expect([await two.tryAcquire(), await one.tryAcquire()]).toEqual([true, true])
    expect(await new Semaphore(redis, key, 3, once).tryAcquire()).toBe(false)
    const more = new Semaphore(redis, key, 4, once)
    expect(await more.tryAcquire()).toBe(true)
    const lease = await client().semaphore(key, 3).tryLock({ permits: 3 })
    expect(lease?.held).toBe(true)
    await Promise.all([two.release(), one.release(), more.release()])
  })

  test('a client whose clock is ahead by a lease takes semaphore permits that are in use', async () => {
    const [redis, key] = [plainRedis(), freshKey()]
    const [first, second] = [1, 2].map(
      () => new Semaphore(redis, key, 1, { acquireAttemptsLimit: 1, lockTimeout: 10_000 }),
    )
    expect([await first!.tryAcquire(), await second!.tryAcquire()]).toEqual([true, false])
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 11_000 })
    onTestFinished(() => void vi.useRealTimers())
    expect(await second!.tryAcquire()).toBe(true)
    expect(first!.isAcquired).toBe(true)
    await Promise.all([first!.release(), second!.release()])
  })

  test.each([
    ['the lock is gone', `await redis.del('mutex:' + key)`],
    ['Redis cannot be asked', 'redis.disconnect()'],
  ])('a refresh that fails because %s ends the process, unless configured otherwise', async (_, break_) => {
    const program = `
      import { Redis } from 'ioredis'
      import { MultiSemaphore, Mutex, Semaphore } from 'redis-semaphore'
      const redis = new Redis(process.env.REDIS_URL)
      const key = '${freshKey()}'
      await new Mutex(redis, key, { lockTimeout: 200 }).acquire()
      ${break_}
      setTimeout(() => process.exit(0), 2_000)`
    const env = { REDIS_URL: redisUrl() }
    const { code, errors } = await runNode(['--input-type=module', '--eval', program], { env })
    expect(code).toBe(1)
    expect(errors).toMatch(/Lost mutex for key|Connection is closed/)
  })
})

describe.each(redlocks)('%s', (name, Locks) => {
  const quick = { retryCount: 2, retryDelay: 20, retryJitter: 0 }

  test('a release that comes too late rejects after all its retries, and hides the routine’s result', async () => {
    const [redis, key] = [plainRedis(), freshKey()]
    const redlock = new Locks([redis], quick)
    const lock = await redlock.acquire([key], 5_000)
    await redis.del(key)
    const before = performance.now()
    await expect(lock.release()).rejects.toThrow('unable to achieve a quorum')
    expect(performance.now() - before).toBeGreaterThan(35)
    const routine = async () => {
      await redis.del(key)
      return 'done'
    }
    await expect(redlock.using([key], 5_000, routine)).rejects.toThrow('unable to achieve a quorum')
  })

  const counted = name === 'redlock' ? 'the call' : 'the attempt that succeeded'
  test(`a lease is counted from ${counted}`, async () => {
    const [redis, key] = [plainRedis(), freshKey()]
    const redlock = new Locks([redis], { ...quick, retryCount: -1, automaticExtensionThreshold: 100 })
    await redis.set(key, 'somebody', 'PX', 1_200)
    const aborted = await redlock.using([key], 1_000, async signal => {
      await sleep(50)
      return signal.aborted
    })
    expect(aborted).toBe(name === 'redlock')
  })
})

describe.each(redlocks)('%s over three servers', (_, Locks) => {
  test('keys that one attempt has set make the next attempts of the same call fail, until the call gives up', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => ownServer()))
    const [a, b, c] = servers.map(({ url }) => plainRedis(url)) as [Redis, Redis, Redis]
    const key = freshKey()
    // Another client holds the key on server a, and for a second on server b. So the first attempt gets the key only on
    // c.
    await a.set(key, 'somebody', 'PX', 60_000)
    await b.set(key, 'somebody', 'PX', 1_000)
    const redlock = new Locks([a, b, c], { retryCount: 20, retryDelay: 100, retryJitter: 0 })
    const call = redlock.acquire([key], 60_000)
    const refused = expect(call).rejects.toThrow('unable to achieve a quorum')
    // When the other client's key on b has expired, b and c could grant the key, and they are a majority. But on b and
    // c, each attempt of this call finds keys of the call's own earlier attempts, so b and c refuse the attempt.
    await eventually(async () => (await b.get(key)) === (await c.get(key)))
    await refused
    expect([await b.exists(key), await c.exists(key)]).toEqual([0, 0])
  })
})

test('@sesamecare-oss/redlock locks in database 0 by default, whatever its connection uses', async ({ key }) => {
  const [zero, one] = [plainRedis(), plainRedis()]
  await one.select(1)
  const lock = await new Redlock([one]).acquire([key], 5_000)
  expect(await zero.exists(key)).toBe(1)
  await one.select(1)
  expect(await one.exists(key)).toBe(0)
  await lock.release()
})

/** What the server refuses: LockConnectionError with the server's own error as its cause, and nothing left half done. */
import type { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { type LockClient, LockConnectionError } from '../../src/index.ts'
import { client, freshKey, keysWith, ownServer, plainRedis } from '../support/redis.ts'
import { eventually, sleep } from '../support/time.ts'
import { heard, park, promptly, queueOf, queueUp, rejection } from './support.ts'

/** The call is refused by the server, in its own words. */
async function refused(call: PromiseLike<unknown>, words: RegExp, key?: string): Promise<void> {
  const error = await rejection(call, LockConnectionError)
  const cause = error.cause as Error
  expect([cause.name, cause.message]).toEqual(['ReplyError', expect.stringMatching(words)])
  expect(error.message).toContain(cause.message)
  if (key) expect(error.key).toBe(key)
}

async function refusesAll(locks: LockClient, key: string, words: RegExp): Promise<void> {
  const calls = [locks.lock(key), locks.lock(key, { fair: true }), locks.tryLock(key), locks.using(key, () => 'ran')]
  await promptly(Promise.all(calls.map(call => refused(call, words, key))))
}

async function refusesLooks(locks: LockClient, key: string, words: RegExp): Promise<void> {
  const calls = [locks.inspect(key), locks.isLocked(key), locks.forceRelease(key)]
  await promptly(Promise.all(calls.map((call: Promise<unknown>) => refused(call, words, key))))
}

async function server(...args: string[]): Promise<{ url: string; redis: Redis; locks: LockClient; other: LockClient }> {
  const { url } = await ownServer(...args)
  return { url, redis: plainRedis(url), locks: client({}, url), other: client({}, url) }
}

describe('OOM', () => {
  test('a new lock is refused whole, and taken as soon as there is memory', async () => {
    const { redis, locks, other } = await server()
    const key = freshKey()
    await locks.isLocked(key)
    await redis.config('SET', 'maxmemory', '1')
    await refusesAll(locks, key, /^OOM /)
    expect(await redis.dbsize()).toBe(0)
    expect(await locks.isLocked(key)).toBe(false)
    await redis.config('SET', 'maxmemory', '0')
    expect((await promptly(other.lock(key))).held).toBe(true)
  })

  test('I7: a fair waiter is refused, not half queued', async () => {
    const { redis, locks, other } = await server()
    const key = freshKey()
    await locks.lock(key)
    await redis.config('SET', 'maxmemory', '1')
    await promptly(refused(other.lock(key, { fair: true }), /^OOM /, key))
    await redis.config('SET', 'maxmemory', '0')
    await queueOf(locks, key, 0)
    const queued = await queueUp(other, key, 1)
    await locks.forceRelease(key)
    expect((await promptly(queued.lease)).held).toBe(true)
  })

  test('I4: what is held can be renewed, released, handed on and taken away', async () => {
    const { redis, locks, other } = await server()
    const [a, b, c] = [freshKey('a'), freshKey('b'), freshKey('c')]
    const leases = [await locks.lock(a), await locks.lock(b), await locks.lock(c)]
    const queued = [await queueUp(other, b, 1), await queueUp(other, c, 1)]
    await redis.config('SET', 'maxmemory', '1')
    await leases[0]!.renew(60_000)
    expect(leases[0]!.remaining()).toBeGreaterThan(40_000)
    expect(await leases[0]!.release()).toBe(true)
    expect(await leases[1]!.release()).toBe(true)
    expect(await other.forceRelease(c)).toBe(true)
    for (const { lease } of queued) expect((await promptly(lease)).held).toBe(true)
    await eventually(() => leases[2]!.signal.aborted)
    expect(await other.isLocked(a)).toBe(false)
  })
})

test('READONLY: refused by a replica, and taken when it is the master again', async () => {
  const { redis, locks } = await server()
  const key = freshKey()
  await locks.isLocked(key)
  await redis.replicaof('127.0.0.1', 1)
  await refusesAll(locks, key, /^READONLY /)
  expect(await locks.isLocked(key)).toBe(false)
  await redis.replicaof('NO', 'ONE')
  expect((await promptly(locks.lock(key))).held).toBe(true)
})

describe('the password', () => {
  const secret = 'open sesame'

  test('NOAUTH without one', async () => {
    const { url } = await ownServer('--requirepass', secret)
    await refusesAll(client({}, url), freshKey(), /^NOAUTH /)
  })

  test('WRONGPASS with a wrong one, which no error shows', async () => {
    const { port } = await ownServer('--requirepass', secret)
    const locks = client({}, { host: '127.0.0.1', port, password: 'hunter2' })
    await refusesAll(locks, freshKey(), /^WRONGPASS /)
    const error = await rejection(locks.lock(freshKey()), LockConnectionError)
    expect(error.message).not.toContain('hunter2')
  })

  test('the right one opens', async () => {
    const { port } = await ownServer('--requirepass', secret)
    const locks = client({}, { host: '127.0.0.1', port, password: secret })
    expect((await promptly(locks.lock(freshKey()))).held).toBe(true)
  })
})

describe('NOPERM', () => {
  /** A user with all rights but these, on a server of its own, and one with all. */
  async function limited(...rules: string[]) {
    const { port, url } = await ownServer()
    const redis = plainRedis(url)
    await redis.acl('SETUSER', 'limited', 'on', '>pw', '~*', '&*', '+@all', ...rules)
    const locks = client({ waiterTtl: 900 }, { host: '127.0.0.1', port, username: 'limited', password: 'pw' })
    return { redis, locks, other: client({ waiterTtl: 900 }, url) }
  }

  test('without the right to run scripts every call is refused, and nothing is written', async () => {
    const { redis, locks } = await limited('-evalsha', '-eval')
    const key = freshKey()
    await refusesAll(locks, key, /^NOPERM /)
    await refusesLooks(locks, key, /^NOPERM /)
    expect(await redis.dbsize()).toBe(0)
  })

  test('without rights on the key every call is refused, and nothing is written', async () => {
    const { redis, locks } = await limited('resetkeys', '~others:*')
    await refusesAll(locks, freshKey(), /NOPERM/)
    expect(await redis.dbsize()).toBe(0)
  })

  test.each([
    ['the command', ['-subscribe', '-ssubscribe']],
    ['the channels', ['resetchannels']],
  ])(
    'I7: without the right to subscribe (%s) a call that has to wait is refused, and leaves no trace',
    async (_, rules) => {
      const { locks, other } = await limited(...rules)
      const key = freshKey()
      const lease = await other.lock(key)
      for (const fair of [true, false]) {
        await promptly(refused(locks.lock(key, { fair }), /^NOPERM /, key))
        await promptly(refused(locks.tryLock(key, { fair, timeout: 60_000 }), /^NOPERM /, key))
      }
      await queueOf(other, key, 0)
      expect(locks.stats().waiting).toBe(0)
      await lease.release()
      expect(await other.isLocked(key)).toBe(false)
    },
  )

  test('without the right to subscribe a call that need not wait is served', async () => {
    const { locks } = await limited('-subscribe')
    const key = freshKey()
    const lease = await promptly(locks.lock(key))
    expect(await promptly(locks.tryLock(key))).toBeNull()
    expect(await lease.release()).toBe(true)
  })

  test.each([
    ['the command', ['-publish']],
    ['the channels', ['resetchannels', '&lock:inbox:*']],
  ])(
    'I4: a release without the right to publish (%s) is whole: the next waiter is granted, if late',
    async (_, rules) => {
      const { locks, other } = await limited(...rules)
      for (const fair of [true, false]) {
        const key = freshKey()
        const lease = await locks.lock(key)
        const waits = fair ? await queueUp(other, key, 1) : await park(other, key)
        expect(await lease.release()).toBe(true)
        const next = await promptly(waits.lease)
        expect(next.held).toBe(true)
        expect(await next.release()).toBe(true)
      }
    },
  )
})

describe('BUSY', () => {
  /** Keeps the server busy with a script for this long; resolves when that has ended. */
  async function occupy(redis: Redis, killer: Redis, ms: number): Promise<void> {
    await killer.ping()
    const busy = redis.eval('for i = 1, 1e11 do end', 0).catch(() => {})
    await sleep(ms)
    await killer.script('KILL')
    await busy
  }

  test('I6: a call rides out a script that blocks the server for a while', async () => {
    const { url, redis, locks } = await server('--lua-time-limit', '50')
    await locks.isLocked(freshKey())
    const busy = occupy(redis, plainRedis(url), 1_000)
    await sleep(200)
    const lease = await locks.lock(freshKey(), { timeout: 15_000 })
    expect(lease.held).toBe(true)
    await busy
  })

  test('I6, I7: one that blocks for longer than outageTimeout is the cause', async () => {
    const { url, redis, other } = await server('--lua-time-limit', '50')
    const locks = client({ outageTimeout: 500 }, url)
    const key = freshKey()
    await locks.isLocked(key)
    const busy = occupy(redis, plainRedis(url), 2_000)
    await sleep(200)
    await refused(locks.lock(key), /^BUSY /, key)
    await busy
    expect((await other.lock(key, { timeout: 10_000 })).held).toBe(true)
  })
})

describe('LOADING', () => {
  /** Reloads a data set that takes about two seconds to read. */
  async function loading() {
    const { url, redis } = await server('--enable-debug-command', 'local')
    const [locks, hasty] = [client({}, url), client({ outageTimeout: 1_000 }, url)]
    await Promise.all([locks.isLocked('k'), hasty.isLocked('k')])
    await redis.mset(Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`key ${i}`, 'x'.repeat(100)])))
    await redis.config('SET', 'key-load-delay', '1000', 'loading-process-events-interval-bytes', '1024')
    const watcher = plainRedis(url)
    await watcher.ping()
    const loaded = redis.call('DEBUG', 'RELOAD')
    await eventually(async () => /loading:1/.test(await watcher.info('persistence')))
    return { locks, hasty, loaded }
  }

  test('I6: a call rides it out, or has it as its cause after outageTimeout', async () => {
    const { locks, hasty, loaded } = await loading()
    const patient = locks.lock(freshKey(), { timeout: 15_000 })
    const [lease] = await Promise.all([patient, refused(hasty.lock(freshKey()), /^LOADING /), loaded])
    expect(lease.held).toBe(true)
  })
})

test('WRONGTYPE: a key that is something else is refused and left alone; other locks work', async () => {
  const { redis, locks } = await server()
  const key = freshKey()
  await (await locks.lock(key)).release()
  const [name] = await keysWith(redis, key)
  await redis.set(name!, 'mine')
  const errors = heard(locks, 'error')
  await refusesAll(locks, key, /^WRONGTYPE /)
  await refusesLooks(locks, key, /^WRONGTYPE /)
  expect(await redis.get(name!)).toBe('mine')
  expect(await keysWith(redis, '')).toEqual([name])
  expect((await locks.lock(freshKey())).held).toBe(true)
  expect(errors).toEqual([])
})

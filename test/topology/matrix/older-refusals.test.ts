/**
 * Tests refusals by servers of all versions. Before Redis 7, an error inside a script is embedded in another error. A
 * refused call must reject with LockConnectionError. The cause of that error must be the server's error, and nothing
 * may be left half done.
 */
import { describe, expect } from 'vitest'
import { LockConnectionError } from '../../../src/index.ts'
import { PROMPT, promptly, rejection, within } from '../../kit/outcomes.ts'
import { park, queueOf } from '../../kit/parking.ts'
import { client, freshKey, keysWith, ownServer, plainRedis, test } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'

async function server(...args: string[]) {
  const { port, url } = await ownServer(...args)
  return { port, url, redis: plainRedis(url), locks: client({}, url), other: client({ outageTimeout: 1_000 }, url) }
}

/** Expects the call to reject within `limit` ms because of a server error that contains this word. */
async function refused(call: PromiseLike<unknown>, word: string, key: string, limit = PROMPT): Promise<void> {
  const error = await within(limit, rejection(call, LockConnectionError))
  const cause = error.cause as Error
  expect([cause.name, cause.message]).toEqual(['ReplyError', expect.stringMatching(new RegExp(`\\b${word}\\b`))])
  expect(error.key).toBe(key)
}

test('OOM: a lock is refused as a whole, and so is a fair waiter; holds can be renewed, handed on and released', async () => {
  const { redis, locks, other } = await server()
  const [held, free] = [freshKey('held'), freshKey('free')]
  const lease = await locks.lock(held)
  const queued = await park(other, held, { fair: true })
  await redis.config('SET', 'maxmemory', '1')
  await refused(locks.lock(free), 'OOM', free)
  await refused(locks.lock(held, { fair: true, owner: 'another' }), 'OOM', held)
  expect(await keysWith(redis, free)).toEqual([])
  await lease.renew(60_000)
  expect(await lease.release()).toBe(true)
  const next = await promptly(queued.lease)
  expect(await next.release()).toBe(true)
  await redis.config('SET', 'maxmemory', '0')
  expect((await promptly(locks.lock(free))).held).toBe(true)
})

test('READONLY: a replica refuses after outageTimeout; the lock is taken once the server is the master again', async () => {
  const { redis, locks, other } = await server()
  const key = freshKey()
  await redis.replicaof('127.0.0.1', 1)
  await refused(other.lock(key), 'READONLY', key)
  await redis.replicaof('NO', 'ONE')
  expect((await promptly(locks.lock(key))).held).toBe(true)
})

test('WRONGTYPE: a key of another type is refused and left alone', async ({ key }) => {
  const { redis, locks } = await server()
  await (await locks.lock(key)).release()
  const [name] = await keysWith(redis, key)
  await redis.set(name!, 'mine')
  await refused(locks.lock(key), 'WRONGTYPE', key)
  expect(await redis.get(name!)).toBe('mine')
})

test('I6: BUSY: a call waits; after outageTimeout it rejects with BUSY as the cause', async ({ key }) => {
  const { url, redis, locks } = await server('--lua-time-limit', '50')
  // A client gives a connection up after a third of `outageTimeout` without any answer. While the script runs, a busy
  // machine may delay the server's answers for some hundred ms.
  const outageTimeout = 4_500
  const other = client({ outageTimeout }, url)
  await Promise.all([redis.ping(), locks.isLocked(key), other.isLocked(key)])
  const killer = redis.duplicate()
  await killer.ping()
  const busy = redis.eval('for i = 1, 1e11 do end', 0).catch(() => {})
  await sleep(200)
  const patient = locks.lock(key)
  await refused(other.lock(key), 'BUSY', key, outageTimeout + PROMPT)
  await killer.script('KILL')
  await busy
  killer.disconnect()
  expect((await promptly(patient)).held).toBe(true)
})

describe('NOPERM', () => {
  /**
   * Creates a user that may run all commands, and then applies `rules` to this user. Redis before 6.2 has no rights on
   * channels, and refuses the rule `allchannels`. This error is ignored.
   */
  async function limited(...rules: string[]) {
    const { port, url, redis, other } = await server()
    await redis.call('ACL', 'SETUSER', 'limited', 'on', '>pw', '+@all', ...rules)
    await redis.call('ACL', 'SETUSER', 'limited', 'allchannels').catch(() => {})
    return { url, redis, other, locks: client({}, { host: '127.0.0.1', port, username: 'limited', password: 'pw' }) }
  }

  test('to run scripts: every call is refused', async ({ key }) => {
    const { redis, locks } = await limited('allkeys', '-evalsha', '-eval')
    await refused(locks.lock(key), 'NOPERM', key)
    await refused(locks.inspect(key), 'NOPERM', key)
    expect(await redis.dbsize()).toBe(0)
  })

  test('on the key: a lock is refused, and nothing is written', async ({ key }) => {
    const { redis, locks } = await limited('~others:*')
    await refused(locks.lock(key), 'NOPERM', key)
    expect(await redis.dbsize()).toBe(0)
  })

  test('I7: to subscribe: a call that has to wait is refused, and leaves no trace', async ({ key }) => {
    const { locks, other } = await limited('allkeys', '-subscribe')
    const lease = await other.lock(key)
    for (const fair of [true, false]) await refused(locks.lock(key, { fair }), 'NOPERM', key)
    await queueOf(other, key, 0)
    await lease.release()
    expect(await other.isLocked(key)).toBe(false)
  })

  test('I4: to publish: a release is complete, and the next waiter is granted nevertheless', async ({ key }) => {
    const { url, locks } = await limited('allkeys', '-publish')
    const lease = await locks.lock(key)
    const queued = await park(client({ waiterTtl: 900 }, url), key, { fair: true })
    expect(await lease.release()).toBe(true)
    expect((await promptly(queued.lease)).held).toBe(true)
  })
})

test('NOAUTH without the password, WRONGPASS with a wrong one', async ({ key }) => {
  const { port, redis } = await server()
  await redis.config('SET', 'requirepass', 'open sesame')
  await refused(client({}, { host: '127.0.0.1', port }).lock(key), 'NOAUTH', key)
  await refused(client({}, { host: '127.0.0.1', port, password: 'hunter2' }).lock(key), 'WRONGPASS', key)
})

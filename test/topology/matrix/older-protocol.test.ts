/**
 * Tests a server without two newer features: RESP3, which a client requests with HELLO, and sharded pub/sub. On a
 * single server a lock needs neither. ioredis requests RESP3, but uses RESP2 if the server does not know HELLO.
 */
import type { Redis, RedisOptions } from 'ioredis'
import { describe, expect } from 'vitest'
import type { RunningServer } from '../../../local-redis/index.ts'
import { LockLostError } from '../../../src/index.ts'
import { heard, promptly, rejection } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { client, freshKey, keysWith, ownServer, plainRedis, test } from '../../kit/redis.ts'
import { eventually } from '../../kit/time.ts'

const newer = ['HELLO', 'SSUBSCRIBE', 'SUNSUBSCRIBE', 'SPUBLISH']

async function known(redis: Redis, command: string): Promise<boolean> {
  const [info] = (await redis.command('INFO', command)) as unknown[]
  return info !== null
}

/** Starts a server that does not know the newer commands, because it is old or because they were disabled. */
async function older(): Promise<RunningServer> {
  const shared = plainRedis()
  const args: string[] = []
  for (const command of newer) if (await known(shared, command)) args.push('--rename-command', command, `NO-${command}`)
  const server = await ownServer(...args)
  const redis = plainRedis(server.url)
  for (const command of newer) expect(await known(redis, command)).toBe(false)
  return server
}

/** Uses a lock in every way that requires a script or a message: a hand-off, a wake-up, a forced release and a loss. */
async function locksAsEver(options: RedisOptions): Promise<void> {
  const [one, two] = [client({}, options), client({}, options)]
  const key = freshKey()
  const first = await promptly(one.lock(key))
  const fair = await park(two, key, { fair: true })
  expect(await first.release()).toBe(true)
  const second = await promptly(fair.lease)
  expect([second.via, second.fencingToken > first.fencingToken]).toEqual(['handoff', true])

  const unfair = await park(one, key)
  expect(await second.release()).toBe(true)
  const third = await promptly(unfair.lease)
  expect(third.via).toBe('wakeup')

  const lost = heard(one, 'lost')
  expect(await two.forceRelease(key)).toBe(true)
  await eventually(() => lost.length === 1)
  await rejection(third.renew(), LockLostError)
  expect(await promptly(two.using(key, lease => lease.held))).toBe(true)
}

describe('without HELLO and sharded pub/sub', () => {
  test('I1, I3, I4, I8: locks work as usual', { timeout: 40_000 }, async () => {
    const { port } = await older()
    await locksAsEver({ host: '127.0.0.1', port })
  })

  test('I4: a waiter is granted after the server was away', { timeout: 40_000 }, async () => {
    const server = await older()
    const key = freshKey()
    const [holder, waiting] = [client({}, server.url), client({}, server.url)]
    await holder.lock(key)
    const queued = await park(waiting, key, { fair: true })
    await server.restart()
    expect((await queued.lease).held).toBe(true)
  })

  test('with a password and the option set: before login, Valkey 9 does not report unknown commands', async () => {
    const { port, url } = await older()
    await plainRedis(url).config('SET', 'requirepass', 'open sesame')
    const locks = client({}, { host: '127.0.0.1', port, password: 'open sesame', protocol: 2 })
    expect((await promptly(locks.lock(freshKey()))).held).toBe(true)
  })
})

describe('RESP2 by the option `protocol` of ioredis', () => {
  test('I1, I3, I4, I8: locks work as usual', { timeout: 40_000 }, async () => {
    const { port } = await ownServer()
    await locksAsEver({ host: '127.0.0.1', port, protocol: 2 })
    const clients = String(await plainRedis(`redis://127.0.0.1:${port}`).client('LIST')).split('\n')
    const ours = clients.filter(line => / cmd=(evalsha|subscribe|publish) /.test(line))
    expect(ours.length).toBeGreaterThanOrEqual(2)
    // Redis 6 does not report which protocol a client uses.
    for (const line of ours) expect(/ resp=(\d)/.exec(line)?.[1] ?? '2').toBe('2')
  })

  test('a user without the right to HELLO does not need it: every user may send it as a greeting', async ({ key }) => {
    const { port, url } = await ownServer()
    const admin = plainRedis(url)
    await admin.call('ACL', 'SETUSER', 'limited', 'on', '>pw', 'allkeys', '+@all', '-hello')
    if (await known(admin, 'SSUBSCRIBE')) await admin.call('ACL', 'SETUSER', 'limited', 'allchannels')
    const locks = client({}, { host: '127.0.0.1', port, username: 'limited', password: 'pw' })
    const lease = await promptly(locks.lock(key))
    expect(lease.held).toBe(true)
    expect(await keysWith(admin, key)).toHaveLength(1)
  })
})

/** Tests what happens when an administrator revokes rights by ACL while a client holds locks and waits for locks. */
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis-5'
import { createClient } from 'redis'
import { createClient as createClient5 } from 'redis-5'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LockConnectionError } from '../../src/index.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { aborted, outcomeOf, settles, within, wordsOf } from '../kit/outcomes.ts'
import { parkQuietly } from '../kit/parking.ts'
import { Peer } from '../kit/peer.ts'
import { client, freshKey, nothingLeft, ownServer, plainRedis } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const options = { lease: 1_800, waiterTtl: 900, outageTimeout: 2_500 }

/**
 * Fails the test if this process has an unhandled rejection. Without this check, the test runner would report the
 * rejection for the whole run, but not for this test.
 */
function watchRejections(): void {
  const unheard: unknown[] = []
  const note = (reason: unknown) => unheard.push(reason)
  process.on('unhandledRejection', note)
  onTestFinished(async () => {
    await sleep(20)
    process.off('unhandledRejection', note)
    expect(unheard).toEqual([])
  })
}

async function scene({ client } = kinds[0]!) {
  watchRejections()
  const { port, url } = await ownServer()
  const redis = plainRedis(url)
  await redis.acl('SETUSER', 'limited', 'on', '>pw', '~*', '&*', '+@all')
  const limitedUrl = `redis://limited:pw@127.0.0.1:${port}`
  return { redis, limitedUrl, url, limited: client(options, limitedUrl), other: client(options, url), key: freshKey() }
}

/**
 * The rights that the tests revoke. For each right: its name, the ACL rules that revoke it, and a pattern for the
 * server's refusal.
 */
const rights: [name: string, rules: string[], words: RegExp][] = [
  ['to run scripts', ['-evalsha', '-eval'], /NOPERM .*'eval(sha)?'/],
  ['to the keys of locks', ['resetkeys', '~others:*'], /NOPERM .*key/i],
  ['to a command that scripts need', ['-hmget'], /hmget/i],
  ['to log in', ['off'], /WRONGPASS|NOAUTH/],
  ['the user itself', [], /WRONGPASS|NOAUTH/],
]

describe.each(rights)('the right is revoked: %s', (name, rules, words) => {
  const revoke = async (redis: Awaited<ReturnType<typeof scene>>['redis']) => {
    if (name === 'the user itself') await redis.acl('DELUSER', 'limited')
    else await redis.acl('SETUSER', 'limited', ...rules)
    // Redis does not close the connections of a disabled user, so kill them.
    await redis.call('CLIENT', 'KILL', 'USER', 'limited').catch(() => {})
  }

  // This test fails if `return this.#fail(call, refusedBy(error))` becomes `return this.#fail(call, new
  // LockConnectionError('no'))` in src/redis/connection.ts: the error does not name the missing right.
  test('I6: every call is rejected, and the error names what is missing', async () => {
    const { redis, limited, key } = await scene()
    const held = await limited.lock(key, { lease: 30_000 })
    await revoke(redis)
    await sleep(50)
    const free = freshKey('free')
    const calls: Promise<unknown>[] = [
      limited.lock(free),
      limited.lock(free, { fair: true }),
      limited.tryLock(free, { timeout: 30_000 }),
      limited.using(free, () => 'ran'),
      limited.inspect(free),
      held.renew(),
      held.release(),
    ]
    // A login that the server accepted before may be accepted again, so these calls wait for `outageTimeout`.
    const limit = /WRONGPASS/.test(words.source) ? options.outageTimeout + 1_500 : 1_500
    for (const { error } of await within(limit, Promise.all(calls.map(outcomeOf)))) {
      expect(error).toBeInstanceOf(LockConnectionError)
      expect(error?.message).toMatch(words)
    }
    await within(3_000, limited.close())
  })

  // This test fails if `this.#leaveBehind(hold, why)` becomes `this.#remove(hold)` in src/key/holds.ts: the holder is
  // not notified. It also fails if `this.#outage.silent(key, begun, failure)` is removed in src/key/requests.ts: fair
  // waiters wait for ever.
  test('I1 I6 I8: a holder is notified when its lease runs out; its waiters are rejected; others get the lock', async () => {
    const { redis, limited, other, key } = await scene()
    const mine = await limited.lock(key)
    const notified = aborted(mine.signal)
    const theirs = freshKey('theirs')
    const lease = await other.lock(theirs)
    const { lease: fair } = await parkQuietly(limited, theirs, { fair: true })
    const { lease: unfair } = await parkQuietly(limited, theirs)
    const { lease: next } = await parkQuietly(other, key, { fair: true })
    const waits = Promise.all([fair, unfair].map(outcomeOf))
    await revoke(redis)
    expect(mine.held).toBe(true)
    const granted = await within(options.lease + 600, next)
    expect(mine.held).toBe(false)
    await within(50, notified)
    for (const { error } of await within(options.outageTimeout + 1_500, waits)) {
      expect(error).toBeInstanceOf(LockConnectionError)
      expect(error?.message).toMatch(words)
    }
    expect(limited.stats()).toMatchObject({ waiting: 0, holding: 0 })
    expect(await granted.release()).toBe(true)
    expect(await lease.release()).toBe(true)
    await nothingLeft(redis, other, key)
    await sleep(2 * options.waiterTtl)
    await nothingLeft(redis, other, theirs)
  })

  // This test fails if `this.redis.connect().catch(() => {})` becomes `this.redis.connect()` in
  // src/redis/uplink.ts: if the client cannot log in, its process has an unhandled rejection.
  test('a separate process has no unhandled rejection, and can be closed', async () => {
    const { redis, limitedUrl, other, key } = await scene()
    const peer = await Peer.start(options, limitedUrl)
    const hold = await peer.lock(key)
    await other.lock(freshKey())
    const waiting = outcomeOf(peer.lock(key, { fair: true }))
    await sleep(100)
    await revoke(redis)
    await sleep(options.lease + 200)
    expect(await peer.state(hold.id)).toMatchObject({ held: false, aborted: true })
    expect((await within(options.outageTimeout + 1_000, waiting)).error?.message).toMatch(words)
    await within(3_000, peer.close())
  })
})

/** The sources of connections whose options have a password that a program may change at any time. */
const sources: [string, (login: { port: number; username: string; password: string }) => { options: object }][] = [
  ['an instance of ioredis 6', login => new Redis({ ...login, lazyConnect: true })],
  ['an instance of ioredis 5', login => new Redis5({ ...login, lazyConnect: true })],
  ['a client of node-redis 6', ({ port, ...login }) => createClient({ socket: { port }, ...login })],
  ['a client of node-redis 5', ({ port, ...login }) => createClient5({ socket: { port }, ...login })],
  ['an object of options', login => ({ options: login })],
]

describe('the password is changed', () => {
  // This test fails if `return this.accepted && isUninvited(error)` becomes `return false` in
  // src/redis/uplink.ts: the refused password counts as the last word.
  test.each(sources)('I6 I8: calls wait until %s knows the new one, and no hold is lost', async (_, make) => {
    const { redis, key } = await scene()
    const login = { port: (redis.options as { port: number }).port, username: 'limited', password: 'pw' }
    const source = make(login)
    const locks = client({ outageTimeout: 10_000 }, 'duplicate' in source ? (source as Redis) : source.options)
    const held = await locks.lock(key)
    await redis.acl('SETUSER', 'limited', 'resetpass', '>second')
    await redis.call('CLIENT', 'KILL', 'USER', 'limited')
    const call = locks.lock(freshKey())
    await eventually(async () => ((await redis.acl('LOG')) as unknown[]).length > 0)
    expect(await settles(call, 200)).toBe(false)
    Object.assign(source.options, { password: 'second' })
    expect((await within(3_000, call)).held).toBe(true)
    expect(await held.release()).toBe(true)
  })
})

/** The rules that prevent a client from receiving messages, for each kind and each way to wait. */
const deafened = kinds.flatMap(each => [
  { ...each, what: 'the command', rules: ['-subscribe'] },
  { ...each, what: 'the channels', rules: ['resetchannels'] },
])

describe('a right that only affects speed is revoked', () => {
  // This test fails if `redis.pcall('PUBLISH', INBOX .. client` becomes `redis.call('PUBLISH', INBOX .. client` in
  // lua/lock.lua: a release that hands the lock on to a fair waiter stops half-way. It also fails if
  // `redis.pcall('PUBLISH'` becomes `redis.call('PUBLISH'` in lua/mutex/release.lua: a release that wakes an unfair
  // waiter stops half-way. It also fails if `if taken == 0 or not readers or wants ~= '1' then redis.pcall('PUBLISH'`
  // becomes `if taken == 0 or not readers or wants ~= '1' then redis.call('PUBLISH'` in lua/permits/release.lua, for
  // the same reason.
  test.each(kindsAndWays)(
    'to publish: I4 I6, releases are complete, waiters notice them by heartbeat ($kind, fair: $fair)',
    async ({ fair, ...kind }) => {
      const { redis, limited, other, key } = await scene(kind)
      const held = await limited.lock(key)
      const { lease: wait } = await parkQuietly(other, key, { fair })
      await redis.acl('SETUSER', 'limited', '-publish')
      await sleep(50)
      expect(await held.release()).toBe(true)
      expect(await (await within(options.waiterTtl / 3 + 600, wait)).release()).toBe(true)
      await nothingLeft(redis, other, key)
    },
  )

  // This test fails if `promote(s, how, client, nil)` becomes `promote(s, how, nil, nil)` in lua/mutex/tend.lua: a
  // waiter whose inbox has no subscriber is passed over each time. It also fails if `admit(s, word, nil, client, line,
  // probe(s, client, ttl))` becomes `admit(s, word, nil, nil, nil, probe(s, client, ttl))` in lua/permits/tend.lua, for
  // the same reason.
  test.each(deafened)(
    'to subscribe ($what): I4 I6, a queued waiter is granted by its heartbeat ($kind)',
    async ({ rules, ...kind }) => {
      const { redis, limited, other, key } = await scene(kind)
      const held = await other.lock(key)
      const { lease: wait } = await parkQuietly(limited, key, { fair: true })
      await redis.acl('SETUSER', 'limited', ...rules)
      await redis.client('KILL', 'TYPE', 'PUBSUB')
      await sleep(200)
      expect(await held.release()).toBe(true)
      const { value, error } = await within(options.waiterTtl / 3 + 1_000, outcomeOf(wait))
      if (error) expect(wordsOf(error)).toMatch(/NOPERM/)
      else expect(await value.release()).toBe(true)
      // The client rejects a new caller that has to wait, and the error gives the reason.
      const again = await other.lock(freshKey('again'))
      const refused = await within(1_500, outcomeOf(limited.lock(again.key, { fair: true })))
      expect(wordsOf(refused.error)).toMatch(/^NOPERM .*(subscribe|channel)/)
      await nothingLeft(redis, other, key)
    },
  )

  // This test fails if `if (channel.asked !== server) return` becomes `return channel.need?.done(error)` in
  // src/redis/subscriber.ts: a refused subscription is never requested again, and refuses each later caller.
  test('the right is restored: I4, waiters receive messages again', async () => {
    const { redis, limitedUrl, other, key } = await scene()
    // With this waiterTtl, no heartbeat comes during the test.
    const limited = client({ waiterTtl: 60_000 }, limitedUrl)
    await redis.acl('SETUSER', 'limited', '-subscribe')
    await redis.client('KILL', 'TYPE', 'PUBSUB')
    await sleep(200)
    await redis.acl('SETUSER', 'limited', '+subscribe')
    const held = await other.lock(key)
    const wait = eventually(() => limited.lock(key, { fair: true }).catch(() => undefined))
    await eventually(async () => (await other.inspect(key)).waiters.length === 1)
    expect(await held.release()).toBe(true)
    const lease = await within(1_500, wait)
    expect(await lease?.release()).toBe(true)
  })
})

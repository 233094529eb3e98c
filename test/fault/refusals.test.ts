/** Tests a Redis that refuses all commands that write, all commands that need memory, or all new connections. */
import { rm } from 'node:fs/promises'
import type { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { type ClientOptions, LockConnectionError } from '../../src/index.ts'
import { Memory, RecordedClient, violationsIn } from '../history/recorded.ts'
import { kinds } from '../kit/kinds.ts'
import { aborted, outcomeOf, within, wordsOf } from '../kit/outcomes.ts'
import { parkQuietly } from '../kit/parking.ts'
import { freshKey, nothingLeft, plainRedis, serverIn } from '../kit/redis.ts'
import { emptyFolder } from '../kit/temp.ts'
import { eventually, sleep } from '../kit/time.ts'

interface Refusal {
  words: RegExp
  /** Whether calls wait for `outageTimeout`, because the name of the master may lead to another server soon. */
  passes?: true
  begin(redis: Redis, dir: string): Promise<unknown>
  end(redis: Redis): Promise<unknown>
}

const refusals: Record<string, Refusal> = {
  '-READONLY': {
    words: /^READONLY /,
    passes: true,
    begin: redis => redis.replicaof('127.0.0.1', 1),
    end: redis => redis.replicaof('NO', 'ONE'),
  },
  '-NOREPLICAS': {
    words: /^NOREPLICAS /,
    begin: redis => redis.config('SET', 'min-replicas-to-write', 1),
    end: redis => redis.config('SET', 'min-replicas-to-write', 0),
  },
  '-MISCONF': {
    words: /^MISCONF /,
    async begin(redis, dir) {
      await rm(dir, { recursive: true })
      await redis.config('SET', 'save', '3600 1', 'stop-writes-on-bgsave-error', 'yes')
      await redis.bgsave()
      await eventually(async () => /rdb_last_bgsave_status:err/.test(await redis.info('persistence')))
    },
    end: redis => redis.config('SET', 'stop-writes-on-bgsave-error', 'no'),
  },
}

/** Short times, so that a lease ends and heartbeats are sent while a test runs. */
const times = { waiterTtl: 900, lease: 2_400 }

async function scene({ client } = kinds[0]!, options: ClientOptions = times) {
  const dir = await emptyFolder()
  const server = await serverIn(dir)
  const redis = plainRedis(server.url)
  const [holder, queuing, parking] = [1, 2, 3].map(() => client(options, server.url))
  const key = freshKey()
  return { dir, url: server.url, redis, key, holder: holder!, queuing: queuing!, parking: parking! }
}

describe.each(Object.entries(refusals))('%s', (_, { words, passes, begin, end }) => {
  /** How long calls may wait, in ms, and how long it may take then until the client is connected again. */
  const [outageTimeout, pause] = passes ? [700, 1_250] : [15_000, 0]

  // This test fails if `return this.#fail(call, refusedBy(error))` is removed in src/redis/connection.ts: calls keep
  // waiting although the refusal is final.
  test('I6: every call is rejected with the server’s own message, and writes nothing', async () => {
    const { dir, redis, key, holder } = await scene(kinds[0], { ...times, outageTimeout })
    const held = await holder.lock(key)
    const free = freshKey('free')
    await begin(redis, dir)
    const keys = await redis.dbsize()
    const calls: Promise<unknown>[] = [
      holder.lock(free),
      holder.lock(free, { fair: true }),
      holder.tryLock(free, { timeout: 30_000 }),
      holder.using(free, () => 'ran'),
      holder.forceRelease(key),
      held.renew(),
    ]
    const outcomes = await within(1_500 + (passes ? outageTimeout : 0), Promise.all(calls.map(outcomeOf)))
    for (const { error } of outcomes) {
      expect(error).toBeInstanceOf(LockConnectionError)
      expect(wordsOf(error)).toMatch(words)
    }
    expect(held.held).toBe(true)
    expect(await redis.dbsize()).toBe(keys)
    await end(redis)
    await held.renew()
    expect(await held.release()).toBe(true)
    await nothingLeft(redis, holder, free)
  })

  // This test fails if `const answer = answers?.[i] ?? 'unknown'` becomes `const answer = answers?.[i] ?? 'lost'` in
  // src/key/renewals.ts: a refused renewal counts as a lost lock. It also fails if `Math.max(waiter.call.begun, since)
  // + this.#patience` becomes `since` in src/key/limits.ts: the waiter gives up at the first heartbeat that is refused.
  test('I1 I4 I8: a refusal shorter than a lease: the holder keeps the lock, and the fair waiter its position', async () => {
    const { dir, redis, key, holder, queuing } = await scene()
    const held = await holder.lock(key)
    const { lease: wait } = await parkQuietly(queuing, key, { fair: true })
    await begin(redis, dir)
    await sleep(1_100)
    await end(redis)
    await sleep(1_500)
    expect(held.held).toBe(true)
    expect(await held.release()).toBe(true)
    expect(await (await within(1_200, wait)).release()).toBe(true)
    await nothingLeft(redis, holder, key)
  })

  // The end of a lease is noticed in two ways: by the client's own clock, and by asking Redis. This test fails if
  // `this.#leaveBehind(hold, why)` is removed in src/key/holds.ts and `this.#lose(hold, 'Redis no longer knows this
  // hold')` is removed in src/key/holds.ts: the holder is not notified in either way.
  test('I1 I4 I6 I8: a refusal longer than a lease: the holder is notified, and the next waiter is granted when the refusal ends', async () => {
    const { dir, redis, key, holder, queuing, parking } = await scene()
    const history = new Memory()
    const [mine, theirs] = [new RecordedClient('mine', holder, history), new RecordedClient('theirs', queuing, history)]
    const held = await mine.lock(key)
    const notified = aborted(held.signal)
    const { lease: wait } = await parkQuietly(queuing, key, { fair: true })
    const { lease: unfair } = await parkQuietly(parking, key)
    const settled = outcomeOf(unfair.then(lease => lease.release()))
    const released = await holder.lock(freshKey())
    await begin(redis, dir)
    const { value, error: why } = await outcomeOf(released.release())
    if (passes) expect(value).toBe(false)
    else expect(wordsOf(why)).toMatch(words)
    await within(times.lease + 300, notified)
    expect(held.held).toBe(false)
    await sleep(300)
    await end(redis)
    // By now the lease has ended in Redis, too. So Redis grants the lock when the waiter's next heartbeat arrives.
    const next = theirs.granted(await within(times.waiterTtl / 3 + 500 + pause, wait))
    expect(await theirs.release(next)).toBe(true)
    expect(violationsIn(history.events)).toEqual([])
    // The unfair waiter tried again during the refusal, and may have been rejected.
    const last = await within(3_000, settled)
    if (passes || !last.error) expect(last.value).toBe(true)
    else expect(wordsOf(last.error)).toMatch(words)
    await nothingLeft(redis, holder, key)
  })
})

// This test fails if `'ERR max number of clients': 'not now',` is removed in src/redis/refusals.ts: new calls and the
// unfair waiter are rejected at once.
test('I4 I6: the server has too many connections for a while: calls, waiters and holders wait', async () => {
  const { redis, key, holder, queuing, parking } = await scene()
  const [held, free] = [await holder.lock(key), freshKey('free')]
  const { lease: fair } = await parkQuietly(queuing, key, { fair: true })
  const { lease: unfair } = await parkQuietly(parking, key)
  await redis.config('SET', 'maxclients', 1)
  for (const type of ['pubsub', 'normal']) await redis.call('CLIENT', 'KILL', 'TYPE', type)
  const calls = [holder.lock(free), queuing.tryLock(freshKey(), { timeout: 10_000 })]
  await eventually(async () => Number(/rejected_connections:(\d+)/.exec(await redis.info('stats'))?.[1]) > 20)
  await redis.config('SET', 'maxclients', 1_000)
  for (const lease of await within(5_000, Promise.all(calls))) expect(lease?.held).toBe(true)
  expect(await held.release()).toBe(true)
  // A fair waiter whose client is not connected again when the lock becomes free is passed over, so either may be first.
  const released = [fair, unfair].map(async wait => (await wait).release())
  expect(await within(10_000, Promise.all(released))).toEqual([true, true])
})

describe.each(kinds)('maxmemory is reached ($kind)', kind => {
  const full = (redis: Redis) => redis.config('SET', 'maxmemory', 1)

  // This test fails if `redis.call('PEXPIREAT', lock, s.keep)` is removed in lua/mutex/renew.lua: the script's first
  // write is then HSET, which the server refuses. It also fails if `redis.call('PEXPIREAT', lock, s.keep)` becomes
  // `redis.call('HSET', lock, 'keep', s.keep)` in lua/permits/renew.lua, for the same reason.
  test('I1 I8: a lease is still renewed', async () => {
    const { redis, key, holder, queuing } = await scene(kind)
    const held = await holder.lock(key)
    await full(redis)
    await sleep(times.lease * 1.5)
    expect(held.held).toBe(true)
    expect(await queuing.tryLock(key).catch(wordsOf)).toBeNull()
    expect(await held.release()).toBe(true)
  })

  // This test fails if `local holder, client = fields[1], id:sub(1, CLIENT_END)` becomes `local holder, client =
  // fields[1], id:sub(1, CLIENT_END); redis.call('HSET', lock, 'keep', fields[4])` in lua/mutex/release.lua: the
  // script's first write is then HSET, so the server refuses the whole release. It also fails if `if not record then
  // return 'ended' end` becomes `if not record then return 'ended' end; redis.call('HSET', lock, 'taken', fields[1])`
  // in lua/permits/release.lua, for the same reason.
  test('I4: a release works, hands on to fair waiters in order, and wakes unfair ones', async () => {
    const { redis, key, holder, queuing, parking } = await scene(kind)
    const held = await holder.lock(key)
    const { lease: first } = await parkQuietly(queuing, key, { fair: true })
    const { lease: second } = await parkQuietly(holder, key, { fair: true })
    const { lease: unfair } = await parkQuietly(parking, key)
    const settled = outcomeOf(unfair)
    await full(redis)
    expect(await held.release()).toBe(true)
    expect(await (await within(600, first)).release()).toBe(true)
    expect(await (await within(600, second)).release()).toBe(true)
    // A new grant needs memory, so the call is rejected with this error.
    expect(wordsOf((await within(2_000, settled)).error)).toMatch(/^OOM /)
    expect(await holder.isLocked(key)).toBe(false)
  })

  // This test fails if `trim(s, WAITER)` is removed in lua/mutex/tend.lua: the script's first write is then ZADD, so
  // the server refuses all heartbeats, and the release passes over the waiter. It also fails if `trim(s, WAITER)` is
  // removed in lua/permits/tend.lua, for the same reason.
  test('I3 I4: heartbeats keep a waiter in its place', async () => {
    const { redis, key, holder, queuing } = await scene(kind)
    const held = await holder.lock(key)
    const { lease: wait } = await parkQuietly(queuing, key, { fair: true })
    await full(redis)
    await sleep(times.waiterTtl * 2)
    expect((await holder.inspect(key)).waiters).toHaveLength(1)
    expect(await held.release()).toBe(true)
    const next = await within(250, wait)
    expect(next.via).toBe('handoff')
    expect(await next.release()).toBe(true)
  })

  // This test fails if `local outcome = 'absent'` becomes `local outcome = 'absent'; redis.call('HSET', lock, 'keep',
  // fields[4] or 0)` in lua/mutex/leave.lua: the script's first write is then HSET, so the server refuses every leave.
  // It also fails if `local outcome = 'absent'` becomes `local outcome = 'absent'; redis.call('HSET', lock, 'keep',
  // fields[4] or 0)` in lua/permits/leave.lua, for the same reason.
  test('I7: a waiter can leave', async () => {
    const { redis, key, holder, queuing } = await scene(kind)
    await holder.lock(key)
    const controller = new AbortController()
    const { lease: wait } = await parkQuietly(queuing, key, { fair: true, signal: controller.signal })
    const settled = outcomeOf(wait)
    await full(redis)
    controller.abort(new Error('no longer'))
    expect((await settled).error?.message).toBe('no longer')
    await eventually(async () => (await holder.inspect(key)).waiters.length === 0, 500)
  })
})

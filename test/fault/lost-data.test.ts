/** Tests a Redis that answers but has lost the data of a lock, or has another value in its place. */
import type { Redis } from 'ioredis'
import { describe, expect } from 'vitest'
import { type Lock, LockConnectionError, LockLostError } from '../../src/index.ts'
import type { SemaphoreOptions } from '../../src/options.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { aborted, outcomeOf, within } from '../kit/outcomes.ts'
import { parkQuietly } from '../kit/parking.ts'
import { client, nothingLeft, ownServer, plainRedis, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const options = { lease: 1_800, waiterTtl: 1_500 }

type Loss = (redis: Redis, lock: string) => Promise<unknown>

async function evict(redis: Redis, lock: string): Promise<void> {
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  await redis.config('SET', 'maxmemory-policy', 'allkeys-lru', 'maxmemory', used + 2_000_000)
  // The loop ends when the first of the lock's keys is evicted. The lock may then be granted again, and a longer loop
  // might evict keys of that new grant.
  // The deadlines of a mutex without re-entries are those of its waiters, so their loss does not end the hold.
  const names = lock.includes('%') ? [lock, `${lock}:d`] : [lock]
  const before = await redis.exists(names)
  for (let batch = 0; (await redis.exists(names)) === before && batch < 400; batch++) {
    const filling = redis.pipeline()
    for (let i = 0; i < 20; i++) filling.set(`filler ${batch} ${i}`, 'x'.repeat(5_000))
    await filling.exec()
  }
  expect(await redis.exists(names)).toBeLessThan(before)
  await redis.config('SET', 'maxmemory', 0)
}

const losses: Record<string, Loss> = {
  FLUSHALL: redis => redis.flushall(),
  'DEL of the lock': (redis, lock) => redis.del(lock),
  'DEL of the lock and its queue': (redis, lock) => redis.del(lock, `${lock}:q`),
  'eviction by allkeys-lru': evict,
  'DEL of the deadlines': (redis, lock) => redis.del(`${lock}:d`),
}
/** Returns the kinds of lock for which the loss `name` is possible. A mutex without re-entries has no deadlines of holds. */
const losing = (name: string) =>
  name === 'DEL of the deadlines' ? kindsAndWays.filter(({ kind }) => kind !== 'mutex') : kindsAndWays

describe.each(Object.entries(losses))('%s', (name, lose) => {
  // This test fails if `if s.clock < s.micros then` becomes `if s.clock < 1e15 then s.clock = 1e15 - 1 end if false
  // then` in lua/lock.lua and `last ~= NO_CLOCK and last < micros` becomes `false` in lua/mutex/acquire.lua: tokens are
  // only counted, and the count starts again after the loss (I2). (With fair callers the test does not fail. A waiter
  // joins again with its old ticket, which is larger than the token of the lost hold, and then gets a token that is
  // larger than its ticket.) It also fails if `Math.min(ttl + AFTER_LAPSE, this.#port.pause)` becomes `ttl +
  // AFTER_LAPSE` in src/key/key.ts: no waiter asks before the time at which the lost lease would have ended (I4). It
  // also fails if `return hold.keeper.onUnknown(hold)` becomes `renewed = this.#clock.now() + question.ms` in
  // src/key/renewals.ts: a missing hold counts as renewed, and the holder is never notified (I8). It also fails if
  // `elseif holds == 0 then` becomes `elseif false then` in lua/permits.lua: a hold without a deadline never ends.
  test.for(losing(name))(
    'I2 I4 I5 I8: the next caller is granted a larger token; the holder is notified and harms no other caller ($kind, fair: $fair)',
    async ({ fair, client, nameOf }, { key }) => {
      const { url } = await ownServer()
      const redis = plainRedis(url)
      const [holder, other, later] = [client(options, url), client(options, url), client(options, url)]
      const held = await holder.lock(key)
      const notified = aborted(held.signal)
      const { lease: wait } = await parkQuietly(other, key, { fair })
      const { lease: second } = await parkQuietly(later, key, { fair })
      await lose(redis, nameOf(key))

      const first = await within(options.waiterTtl / 3 + 600, Promise.race([wait, second]))
      expect(first.fencingToken).toBeGreaterThan(held.fencingToken)
      await within(options.lease / 3 + 600, notified)
      expect(held.signal.reason).toBeInstanceOf(LockLostError)
      expect(await held.release()).toBe(false)
      expect(await other.inspect(key)).toMatchObject({ fencingToken: first.fencingToken, holds: 1 })
      expect(first.held).toBe(true)
      expect(await first.release()).toBe(true)
      const leases = await within(3_000, Promise.all([wait, second]))
      const last = leases.find(lease => lease !== first)
      expect(last?.fencingToken).toBeGreaterThan(first.fencingToken)
      expect(await last?.release()).toBe(true)
      await nothingLeft(redis, other, key)
    },
  )
})

// This test fails if `joins[#joins + 1] = ticket` becomes `joins[#joins + 1] = string.format('%.0f', s.micros + i)` in
// lua/mutex/tend.lua: positions in the queue follow the order of the heartbeats, and not the tickets. It also fails if
// `joins[#joins + 1] = ticket` becomes `joins[#joins + 1] = string.format('%.0f', s.micros + i)` in
// lua/permits/tend.lua, for the same reason.
test.for(kinds)(
  'only the queue is lost: I3 I4, waiters join again in their old positions ($kind)',
  async ({ client, nameOf }, { key }) => {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    const [holder, slow, quick] = [client({}, url), client({ waiterTtl: 3_000 }, url), client({ waiterTtl: 900 }, url)]
    const held = await holder.lock(key)
    const { lease: first } = await parkQuietly(slow, key, { fair: true })
    const { lease: second } = await parkQuietly(quick, key, { fair: true })
    await redis.del(`${nameOf(key)}:q`)
    await eventually(async () => (await holder.inspect(key)).waiters.length === 2)
    await held.release()
    expect(await Promise.race([first.then(() => 1), second.then(() => 2)])).toBe(1)
    expect(await (await first).release()).toBe(true)
    expect(await (await second).release()).toBe(true)
  },
)

// This test fails if `return hold.keeper.onUnknown(hold)` becomes `renewed = this.#clock.now() + question.ms` in
// src/key/renewals.ts: a missing hold counts as renewed, and the holder is never notified.
test.for(kinds)(
  'a restart without data: I2 I4 I8, processes are notified, and continue ($kind)',
  async ({ client, peer }, { key }) => {
    const server = await ownServer()
    const terms = { ...options, lease: 12_000 }
    const [first, second] = [await peer(terms, server.url), await peer(terms, server.url)]
    const held = await first.lock(key)
    const waiting = second.lock(key, { fair: true })
    await eventually(async () => (await client({}, server.url).inspect(key)).waiters.length === 1)
    await server.kill()
    await server.restart()
    const next = await within(4_000, waiting)
    expect(next.token).toBeGreaterThan(held.token)
    await eventually(async () => (await first.state(held.id)).aborted, 5_000)
    expect(await first.release(held.id)).toBe(false)
    expect(await second.state(next.id)).toMatchObject({ held: true })
    expect(await second.release(next.id)).toBe(true)
  },
)

describe.each(['', ':q', ':d'])('the key <lock>%s has the wrong type', suffix => {
  // This test fails if `this.#outage.silent(key, begun, failure)` is removed in src/key/requests.ts: the fair waiter is
  // never rejected.
  test.for(kinds.filter(({ kind }) => kind !== 'mutex' || suffix !== ':d'))(
    'I6 I8: holder and waiters settle with a clear error; the key is left alone; once it is deleted, the lock works again ($kind)',
    async ({ client, nameOf }, { key }) => {
      const { url } = await ownServer()
      const redis = plainRedis(url)
      const terms = { ...options, outageTimeout: 1_000 }
      const [holder, other] = [client(terms, url), client(terms, url)]
      const name = nameOf(key) + suffix
      const held = await holder.lock(key)
      const notified = aborted(held.signal)
      const { lease: wait } = await parkQuietly(other, key, { fair: true })
      await redis.set(name, 'mine')
      const newcomer = await within(1_000, outcomeOf(other.lock(key, { fair: true })))
      expect(newcomer.error).toBeInstanceOf(LockConnectionError)
      expect(newcomer.error?.message).toMatch(/WRONGTYPE/)
      const waited = await within(terms.outageTimeout + terms.waiterTtl, outcomeOf(wait))
      expect(waited.error).toBeInstanceOf(LockConnectionError)
      expect(waited.error?.message).toMatch(/WRONGTYPE/)
      if (suffix === '') {
        await within(terms.lease + 300, notified)
        expect(await held.release()).toBe(false)
      } else {
        expect(held.held).toBe(true)
        expect((await outcomeOf(held.release())).error?.message ?? 'released').toMatch(/WRONGTYPE|released/)
      }
      expect(await redis.get(name)).toBe('mine')
      await redis.del(name)
      const lease = await within(terms.lease + 1_000, client({}, url).lock(key))
      expect(lease.fencingToken).toBeGreaterThan(held.fencingToken)
      expect(await lease.release()).toBe(true)
    },
  )
})

// This test fails if `return hold.keeper.onUnknown(hold)` becomes `renewed = this.#clock.now() + question.ms` in
// src/key/renewals.ts: a missing hold counts as renewed, and the holder is never notified.
test.for(kinds)(
  'a key expires because of an operator’s PEXPIRE: I4 I8, the effect is that of a deletion ($kind)',
  async ({ client, nameOf }, { key }) => {
    const redis = plainRedis()
    const terms = { ...options, lease: 4_500 }
    const [holder, other] = [client(terms), client(terms)]
    const held = await holder.lock(key)
    const { lease: wait } = await parkQuietly(other, key)
    await redis.pexpire(nameOf(key), 1)
    const next = await within(options.waiterTtl / 3 + 600, wait)
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
    await eventually(() => held.signal.aborted, 2_000)
    await sleep(50)
    expect(next.held).toBe(true)
    expect(await next.release()).toBe(true)
  },
)

// This test fails if `if room then` becomes `if room and stands ~= member then` in lua/groups.lua:
// a heartbeat does not bring a group back whose place in the turns was lost.
test.for(['', ':q', ':w', ':t', ':s'])(
  'only the key "%s" of a semaphore with groups is lost: I1 I3 I4, waiters continue in the order of their groups',
  async (suffix, { key }) => {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    const [one, two] = [client(options, url), client(options, url)].map(locks => locks.semaphore(key, 2)) as [
      Lock<SemaphoreOptions>,
      Lock<SemaphoreOptions>,
    ]
    const held = [await one.lock({ group: 'a', groupLimit: 1 }), await one.lock()]
    const granted: string[] = []
    const running = { a: 0, b: 0 }
    const waits = (['a', 'b', 'a', 'b'] as const).map(async (group, i) => {
      await sleep(100 * i)
      await (i % 2 ? one : two).using({ group, groupLimit: 1 }, async () => {
        granted.push(group + i)
        running[group] += 1
        expect(running[group]).toBe(1)
        await sleep(20)
        running[group] -= 1
      })
    })
    await eventually(async () => (await one.inspect()).waiters.length === 4)
    await redis.del(`lock:%semaphore/{${key}}${suffix}`)
    for (const lease of held) await lease.release()
    await within(5_000, Promise.all(waits))
    const of = (group: string) => granted.filter(name => name.startsWith(group))
    expect([of('a'), of('b')]).toEqual([
      ['a0', 'a2'],
      ['b1', 'b3'],
    ])
    expect(await one.inspect()).toMatchObject({ taken: 0, waiters: [] })
  },
)

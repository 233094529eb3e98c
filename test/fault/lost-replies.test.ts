/**
 * Tests requests that Redis executes although the reply is lost and the connection is cut. The client sends the request
 * again, but the request takes effect only once.
 */
import { describe, expect } from 'vitest'
import { Memory, RecordedClient, violationsIn } from '../history/recorded.ts'
import { kinds, kindsAndWays } from '../kit/kinds.ts'
import { outcomeOf, within } from '../kit/outcomes.ts'
import { park, parkQuietly, ways } from '../kit/parking.ts'
import { clientBehindProxy, hasty, warm } from '../kit/proxies.ts'
import { freshKey, nothingLeft, plainRedis, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** With these options, no heartbeat comes and no lease ends during a test. */
const patient = { waiterTtl: 60_000, lease: 60_000 }

describe.each([1, 3])('the reply is lost %i times in a row, and the connection cut each time', times => {
  // This test fails if `elseif ends and ends >= now then` becomes `elseif false then` in lua/mutex/acquire.lua: the
  // second execution is refused, because the first has taken the lock. It also fails if `if lives then` becomes `if
  // false then` in lua/permits/acquire.lua, for the same reason.
  test.for(kindsAndWays)(
    'of an acquire: I1 I5, there is one hold, and nothing of it is left after one release ($kind, fair: $fair)',
    async ({ fair, client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const lost = proxy.rule({ direction: 'down', name: 'acquire', times }, 'cut')
      const lease = await within(3_000, locks.lock(key, { fair }))
      expect(lost.count).toBe(times)
      expect(await client().inspect(key)).toMatchObject({ fencingToken: lease.fencingToken, holds: 1, waiters: [] })
      expect(await lease.release()).toBe(true)
      expect(await lease.release()).toBe(false)
      await nothingLeft(plainRedis(), client(), key)
    },
  )

  // This test fails if `redis.call('ZADD', queue, 'NX', ticket, claim)` becomes `redis.call('ZADD', queue, ticket,
  // claim)` in lua/mutex/acquire.lua: the second execution gives the waiter a new ticket, so it is behind the later
  // waiter. It also fails if `redis.call('ZADD', line, 'NX', ticket, claim)` becomes `redis.call('ZADD', line, ticket,
  // claim)` in lua/permits/acquire.lua, for the same reason.
  test.for(kinds)(
    'of an acquire that was queued: I3, the waiter has one position, the original one ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const [looking, later] = [client(patient), client(patient)]
      const held = await looking.lock(key)
      const lost = proxy.rule({ direction: 'down', name: 'acquire', times }, 'cut')
      void lost.happened.then(() => proxy.refuse())
      const first = locks.lock(key, { fair: true })
      await lost.happened
      const { lease: second } = await park(later, key, { fair: true })
      proxy.refuse(false)
      await eventually(() => lost.count === times && proxy.connections('commands') === 1)
      expect((await looking.inspect(key)).waiters).toHaveLength(2)

      expect(await held.release()).toBe(true)
      expect(await (await within(3_000, first)).release()).toBe(true)
      expect(await (await within(3_000, second)).release()).toBe(true)
      await nothingLeft(plainRedis(), looking, key)
    },
  )

  // This test fails if `status === 'released' || repeated` becomes `status === 'released'` in src/kinds/queued-kind.ts:
  // the release that ended the hold resolves to false. It also fails if `redis.call('HDEL', lock, id)` is removed in
  // lua/permits/release.lua and `redis.call('HDEL', s.lock, id)` is removed in lua/permits.lua: the second execution
  // ends the hold again, and so frees the next holder's permits.
  test.for(['another', 'the same'].flatMap(where => kindsAndWays.map(each => ({ ...each, where }))))(
    'of a release: I5, it resolves to true exactly once, and the next holder, of $where client, keeps the lock ($kind, fair: $fair)',
    async ({ where, fair, client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const next = where === 'the same' ? locks : client(patient)
      const lease = await locks.lock(key)
      const { signal } = lease
      const { lease: wait } = await parkQuietly(next, key, { fair })
      proxy.rule({ direction: 'down', name: 'release', times }, 'cut')
      const before = locks.stats().released
      const answers = await within(3_000, Promise.all([lease.release(), lease.release(), lease.release()]))
      expect(answers).toEqual([true, false, false])
      expect(signal.aborted).toBe(false)
      expect(locks.stats()).toMatchObject({ released: before + 1, lost: 0 })

      const successor = await within(3_000, wait)
      expect(await next.inspect(key)).toMatchObject({ fencingToken: successor.fencingToken, holds: 1 })
      expect(await client().tryLock(key)).toBeNull()
      expect(await successor.release()).toBe(true)
      await nothingLeft(plainRedis(), next, key)
    },
  )

  // This test fails if `if (!isReply(error)) call.repeated = true` is removed in src/redis/connection.ts: the release that
  // ended the last hold of the last group resolves to false.
  test('of the release after which a semaphore has no group any more: I5, it resolves to true', async () => {
    const { locks, proxy } = await clientBehindProxy(patient)
    const semaphore = locks.semaphore(freshKey(), 2)
    await (await semaphore.lock({ group: 'a' })).release()
    const lease = await semaphore.lock({ group: 'a' })
    proxy.rule({ direction: 'down', name: 'release', times }, 'cut')
    expect(await within(3_000, lease.release())).toBe(true)
    expect([lease.signal.aborted, locks.stats().lost]).toEqual([false, 0])
  })

  // This test fails if `not fields[5] and not (holder and holder:sub(HELD_ID_AT, HELD_ID_END) == id)` becomes `outcome
  // == 'left'` in lua/mutex/leave.lua and `elseif s.hold ~= id then` becomes `elseif not s.hold then` in
  // lua/holder.lua: a repeated leave ends the next holder's hold. (Only both changes together do harm.) It also fails
  // if `redis.call('HDEL', lock, id)` is removed in lua/permits/release.lua and `redis.call('HDEL', s.lock, id)` is
  // removed in lua/permits.lua: the second execution gives back the next holder's permits.
  test.for(kinds)(
    'of a leave that gave a grant back: I5 I7, the lock is handed on once ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const next = client(patient)
      const held = await next.lock(key)
      const { wait } = await parkAborted()
      const { lease: waitOfNext } = await park(next, key, { fair: true })
      proxy.rule({ direction: 'down', name: 'handoff' }, 'hold')
      const lost = proxy.rule({ direction: 'down', name: 'leave', times }, 'cut')
      await held.release()
      wait.controller.abort(new Error('no longer'))
      expect((await outcomeOf(wait.lease)).error?.message).toBe('no longer')

      const successor = await within(3_000, waitOfNext)
      await eventually(() => lost.count === times && proxy.connections() === 2)
      proxy.heal()
      await sleep(100)
      expect(await next.inspect(key)).toMatchObject({ fencingToken: successor.fencingToken, holds: 1, waiters: [] })
      expect(successor.held).toBe(true)
      expect(await client().tryLock(key)).toBeNull()
      expect(await successor.release()).toBe(true)
      await nothingLeft(plainRedis(), next, key)

      async function parkAborted() {
        const controller = new AbortController()
        const parked = await park(locks, key, { fair: true, signal: controller.signal })
        return { wait: { lease: parked.lease, controller } }
      }
    },
  )

  // This test fails if `) call.repeated = true` becomes `) return this.#fail(call, new LockConnectionError('unknown',
  // error))` in src/redis/connection.ts: a request without a reply is not sent again.
  test.for(kinds)(
    'of a renewal: the lease stays held, and its deadline is not later than Redis’s ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const lease = await locks.lock(key, { lease: 2_000 })
      const lost = proxy.rule({ direction: 'down', name: 'renew', times }, 'cut')
      await within(1_900, lease.renew(10_000))
      expect(lost.count).toBe(times)
      expect(lease.remaining()).toBeGreaterThan(8_000)
      const before = lease.remaining()
      const { ttl = 0 } = await client().inspect(key)
      expect(before).toBeLessThanOrEqual(ttl + (before - lease.remaining()) + 1)
      expect(await lease.release()).toBe(true)
      expect(locks.stats().lost).toBe(0)
    },
  )
})

// This test fails if `if (leaves) this.#port.leave(waiter)` is removed in src/key/key.ts: Redis has granted the lock to
// the woken waiter, which has given up, so no other caller gets the lock.
test.for(kinds)(
  'of the attempt of a woken waiter that gives up: I4 I6 I7, the lock is passed on at once ($kind)',
  async ({ client, clientBehindProxy }, { key }) => {
    const { locks, proxy } = await clientBehindProxy(patient)
    const other = client(patient)
    const held = await client().lock(key)
    const controller = new AbortController()
    const { lease: wait } = await parkQuietly(locks, key, { signal: controller.signal })
    const { lease: behind } = await parkQuietly(locks, key)
    const reply = proxy.rule({ direction: 'down', kind: 'commands' }, 'drop')
    await held.release()
    await reply.happened
    controller.abort(new Error('no longer'))
    expect((await outcomeOf(wait)).error?.message).toBe('no longer')

    const lease = await within(1_000, other.lock(key))
    proxy.cut('commands')
    reply.lift()
    expect(await lease.release()).toBe(true)
    expect(await (await within(1_000, behind)).release()).toBe(true)
    await nothingLeft(plainRedis(), other, key)
    expect(locks.stats()).toMatchObject({ waiting: 0, holding: 0 })
  },
)

// This test fails if `) call.repeated = true` becomes `) return this.#fail(call, new LockConnectionError('unknown',
// error))` in src/redis/connection.ts: the request is not sent again at once.
test.for(kinds)(
  'a leave that does not arrive is sent again: I7, no position in the queue stays taken ($kind)',
  async ({ client, clientBehindProxy }, { key }) => {
    const { locks, proxy } = await clientBehindProxy(patient)
    const looking = client()
    await looking.lock(key)
    const controller = new AbortController()
    const { lease: wait } = await park(locks, key, { fair: true, signal: controller.signal })
    const lost = proxy.rule({ direction: 'up', name: 'leave', times: 2 }, 'cut')
    controller.abort(new Error('no longer'))
    expect((await outcomeOf(wait)).error?.message).toBe('no longer')
    await eventually(async () => (await looking.inspect(key)).waiters.length === 0, 800)
    expect(lost.count).toBe(2)
  },
)

// This test fails if `) call.repeated = true` becomes `) return this.#fail(call, new LockConnectionError('unknown',
// error))` in src/redis/connection.ts: calls are rejected. It also fails if `status === 'released' || repeated` becomes
// `status === 'released'` in src/kinds/queued-kind.ts: a release resolves to false.
test.each(kinds)(
  'I1 I2 I5: replies of all scripts are lost all the time; every release resolves to true once ($kind)',
  async ({ client, clientBehindProxy }) => {
    const keys = [freshKey('a'), freshKey('b')]
    const parties = await Promise.all(Array.from({ length: 3 }, () => clientBehindProxy()))
    const history = new Memory()
    const recorded = parties.map(({ locks }, i) => new RecordedClient(`client ${i}`, locks, history))
    const looking = client()
    await warm(looking)
    const names = ['acquire', 'release', 'renew', 'tend', 'leave']
    let breaking = true
    let broken = 0
    const breaker = (async () => {
      for (let i = 0; breaking; i++) {
        const rule = parties[i % 3]!.proxy.rule({ direction: 'down', name: names[((i / 3) % 5) | 0]!, times: 1 }, 'cut')
        await sleep(12)
        broken += rule.count
        rule.lift()
      }
    })()
    const work = async (party: number, key: string, fair: boolean) => {
      const { locks } = parties[party]!
      const mine = recorded[party]!
      for (let i = 0; i < 40; i++) {
        const lease = await mine.lock(key, { fair })
        if (i % 3 === 0) await lease.renew()
        else await sleep(1)
        expect(await mine.release(lease)).toBe(true)
        // This caller gives up while its request is in transit.
        if (i % 4 === 0) expect(await hasty(locks, key, fair).then(each => each?.release())).not.toBe(false)
      }
    }
    await Promise.all(parties.flatMap((_, party) => keys.flatMap(key => ways.map(fair => work(party, key, fair)))))
    breaking = false
    await breaker
    expect(broken).toBeGreaterThan(20)
    expect(violationsIn(history.events)).toEqual([])
    for (const key of keys) await nothingLeft(plainRedis(), looking, key)
  },
  40_000,
)

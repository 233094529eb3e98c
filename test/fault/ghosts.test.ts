/**
 * Tests requests that are still in transit when the client gives up their connection. Such a request reaches Redis
 * after everything that the client sends on its next connection. The client no longer waits for the reply.
 */
import { describe, expect } from 'vitest'
import { kinds } from '../kit/kinds.ts'
import { outcomeOf, within } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { nothingLeft, plainRedis, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

const patient = { waiterTtl: 60_000, lease: 60_000 }
const gone = new Error('no longer')

describe('a request arrives after its client has given up the connection', () => {
  // This test fails if `local ends = endOf(s, id)` becomes `local ends = s.ends` in lua/mutex/renew.lua and `s.token +
  // 0 > known` becomes `false` in lua/mutex/renew.lua: the late renewal prolongs another caller's hold.
  test.for(kinds)(
    'a renewal, after another caller has taken the lock: I5, it changes nothing ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const lease = await locks.lock(key)
      const late = proxy.rule({ direction: 'up', name: 'renew', times: 1 }, 'sever')
      await within(3_000, lease.renew(120_000))
      expect(late.count).toBe(1)
      expect(await lease.release()).toBe(true)
      const next = await client().lock(key, { lease: 5_000 })
      late.lift()
      await sleep(100)
      const { fencingToken, ttl = 0 } = await client().inspect(key)
      expect(fencingToken).toBe(next.fencingToken)
      expect(ttl).toBeLessThanOrEqual(5_000)
      expect(await next.release()).toBe(true)
    },
  )

  // This test fails if `and holder:sub(HELD_ID_AT, HELD_ID_END) == id` is removed in lua/mutex/release.lua: the late
  // release ends another caller's hold. It also fails if `elseif s.hold ~= id then` becomes `elseif not s.hold then` in
  // lua/holder.lua, for the same reason. It also fails if `redis.call('HDEL', lock, id)` is removed in
  // lua/permits/release.lua and `redis.call('HDEL', s.lock, id)` is removed in lua/permits.lua, for the same reason.
  test.for(kinds)(
    'a release, after another caller has taken the lock: I5, it changes nothing ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const lease = await locks.lock(key)
      const late = proxy.rule({ direction: 'up', name: 'release', times: 1 }, 'sever')
      expect(await within(3_000, lease.release())).toBe(true)
      const next = await locks.lock(key)
      late.lift()
      await sleep(100)
      expect(await client().inspect(key)).toMatchObject({ fencingToken: next.fencingToken, holds: 1 })
      expect(await client().tryLock(key)).toBeNull()
      expect(await next.release()).toBe(true)
    },
  )

  // This test fails if `.giveBack({ key: locks.keys.keyOf(lock) as string, id })` becomes ``
  // in src/session.ts: the grant is not given back.
  test.for(kinds)(
    'a queued acquire, after its caller has left: I4 I7, its grant is given back at once ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const [holder, next] = [client(patient), client(patient)]
      const held = await holder.lock(key)
      const late = proxy.rule({ direction: 'up', name: 'acquire', times: 1 }, 'sever')
      const controller = new AbortController()
      const call = outcomeOf(locks.lock(key, { fair: true, signal: controller.signal }))
      await late.happened
      controller.abort(gone)
      expect((await call).error).toBe(gone)
      // During this time, the client connects again, repeats the acquire, and then sends a leave.
      await sleep(200)
      expect(await holder.inspect(key)).toMatchObject({ waiters: [], holds: 1 })
      late.lift()
      await eventually(async () => (await holder.inspect(key)).waiters.length === 1)
      const { lease: wait } = await park(next, key, { fair: true })
      await held.release()
      expect(await (await within(1_000, wait)).release()).toBe(true)
      await nothingLeft(plainRedis(), next, key)
    },
  )

  // This test fails if `hold.state.is === 'releasing' && token > hold.token` becomes `false` in src/key/holds.ts: the
  // client does not give the second grant back, so that grant lasts until its lease ends.
  test.for(kinds)(
    'a queued acquire, granted a second time while the release of the first grant is unanswered: I4, the second grant is given back at once ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const { locks, proxy } = await clientBehindProxy(patient)
      const [holder, next] = [client(patient), client(patient)]
      const first = await holder.lock(key)
      const late = proxy.rule({ direction: 'up', name: 'acquire', times: 1 }, 'sever')
      const { lease: wait } = await park(locks, key, { fair: true })
      expect(late.count).toBe(1)
      await first.release()
      const lease = await within(1_000, wait)
      const { lease: again } = await park(holder, key, { fair: true })
      const unanswered = proxy.rule({ direction: 'down', kind: 'commands', name: 'release' }, 'hold')
      const released = lease.release()
      const second = await within(1_000, again)
      await unanswered.happened
      late.lift()
      await eventually(async () => (await holder.inspect(key)).waiters.length === 1)
      const promoted = proxy.rule({ direction: 'down', kind: 'messages', name: 'handoff' }, { delay: 0 })
      await second.release()
      await promoted.happened
      await sleep(50)
      unanswered.lift()
      expect(await released).toBe(true)
      expect(await (await within(1_000, next.lock(key))).release()).toBe(true)
      await nothingLeft(plainRedis(), next, key)
    },
  )

  // This test fails if `stamp .. ' ' .. stamp .. ' ' .. claim` becomes `stamp .. ' ' .. string.format('%.0f', stamp +
  // 8000 * lease) .. ' ' .. claim` in lua/mutex/acquire.lua: the hold outlasts its lease. It also fails if `now +
  // lease` becomes `now + 9 * lease` in lua/permits/acquire.lua, for the same reason. Redis cannot tell an unwanted
  // hold from any other hold. So the test checks only that the hold ends with its lease.
  test.for(kinds)(
    'an acquire of a free lock, after its caller has left: I4, the unwanted hold ends with its lease ($kind)',
    async ({ client, clientBehindProxy }, { key }) => {
      const lease = 800
      const { locks, proxy } = await clientBehindProxy()
      const looking = client()
      const late = proxy.rule({ direction: 'up', name: 'acquire', times: 1 }, 'sever')
      const taken = proxy.rule({ direction: 'up', name: 'leave', times: 1 }, { delay: 0 })
      const controller = new AbortController()
      const call = outcomeOf(locks.lock(key, { lease, signal: controller.signal }))
      await late.happened
      controller.abort(gone)
      expect((await call).error).toBe(gone)
      // Wait until the client has repeated the acquire, and has then sent a leave.
      await taken.happened
      await sleep(200)
      expect(await looking.inspect(key)).toMatchObject({ waiters: [], holds: 0 })
      late.lift()
      await eventually(async () => (await looking.inspect(key)).locked)
      const next = await within(lease + 500, looking.lock(key))
      expect(next.via).toBe('expiry')
      expect(await next.release()).toBe(true)
      expect(locks.stats()).toMatchObject({ holding: 0, waiting: 0 })
    },
  )
})

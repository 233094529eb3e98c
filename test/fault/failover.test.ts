/**
 * Tests a failover in which the master dies before its replica has the last writes, and one in which the master lives
 * on as a replica.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ClientOptions, LockConnectionError } from '../../src/index.ts'
import { kinds } from '../kit/kinds.ts'
import { aborted, heard, rejection, within, wordsOf } from '../kit/outcomes.ts'
import { parkQuietly, ways } from '../kit/parking.ts'
import { frameProxy, warm } from '../kit/proxies.ts'
import { bluntRedis, client, freshKey, nothingLeft, ownServer, plainRedis } from '../kit/redis.ts'
import { Replication } from '../kit/replication.ts'
import { eventually, sleep } from '../kit/time.ts'

const patient = { lease: 60_000, waiterTtl: 3_000 }

/** Starts a master, a replica whose link can be cut, and two clients that each reach the master through a proxy. */
async function scene({ client } = kinds[0]!, options: ClientOptions = patient) {
  const atOnce = ['--repl-diskless-sync-delay', '0']
  const [master, replica] = [await ownServer(...atOnce), await ownServer(...atOnce)]
  const redis = plainRedis(replica.url)
  const replication = await Replication.begin(
    { url: master.url, redis: bluntRedis(master.url) },
    { url: replica.url, redis },
  )
  onTestFinished(() => replication.close())
  const [mine, theirs] = [await frameProxy(master.url), await frameProxy(master.url)]
  const [holder, other] = [client(options, mine.url), client(options, theirs.url)]
  await warm(holder)
  await warm(other)

  const key = freshKey()
  const loseWrites = () => replication.loseWrites()
  const promote = () => replication.promote()
  return { master, replica, redis, mine, theirs, holder, other, key, loseWrites, promote }
}

describe('failover to a replica that missed the grant', () => {
  // This test fails if `if s.clock < s.micros then` becomes `if s.clock < 1e15 then s.clock = 1e15 - 1 end if false
  // then` in lua/lock.lua and `last ~= NO_CLOCK and last < micros` becomes `false` in lua/mutex/acquire.lua: tokens are
  // counted instead of taken from the time of day, so the new grant has the same token as the lost grant. Even without
  // this change, the old holder and the new holder both hold until the old holder reaches the new master. This is a
  // limit of I1. Only their tokens distinguish the two holders.
  test('I2: the new grant has a larger token, although two callers hold', async () => {
    const { replica, theirs, holder, other, key, loseWrites, promote } = await scene()
    const before = await holder.lock(key)
    expect(await before.release()).toBe(true)
    await loseWrites()
    const held = await holder.lock(key)
    await promote()
    theirs.switchTo(replica.url)
    const next = await within(3_000, other.lock(key))
    expect([held.held, next.held], 'the limit').toEqual([true, true])
    expect(held.fencingToken).toBeGreaterThan(before.fencingToken)
    expect(next.fencingToken).toBeGreaterThan(held.fencingToken)
  })

  // This test fails if `this.holding.doubtAll(key)` is removed in src/kind-client.ts: the holder learns of its loss
  // only by its next renewal, 20 s later.
  test('I5 I8: the old holder is notified as soon as it reaches the new master, and cannot end the new hold', async () => {
    const { master, replica, redis, mine, theirs, holder, other, key, loseWrites, promote } = await scene()
    await loseWrites()
    const held = await holder.lock(key)
    const notified = aborted(held.signal)
    await promote()
    await master.kill()
    theirs.switchTo(replica.url)
    const next = await within(3_000, other.lock(key))
    mine.switchTo(replica.url)
    await within(3_000, notified)
    expect(await held.release()).toBe(false)
    expect(await other.inspect(key)).toMatchObject({ fencingToken: next.fencingToken, holds: 1 })
    expect(await next.release()).toBe(true)
    await nothingLeft(redis, other, key)
  })

  // This test fails if `joins[#joins + 1] = ticket` becomes `joins[#joins + 1] = string.format('%.0f', s.micros + i)`
  // in lua/mutex/tend.lua: positions in the queue follow the order of the heartbeats, and not the tickets. It also
  // fails if `joins[#joins + 1] = ticket` becomes `joins[#joins + 1] = string.format('%.0f', s.micros + i)` in
  // lua/permits/tend.lua, for the same reason.
  test.each(kinds)('I3 I4: waiters unknown to the replica join again in their old positions ($kind)', async kind => {
    const { master, replica, redis, mine, theirs, holder, other, key, loseWrites, promote } = await scene(kind)
    const held = await holder.lock(key)
    await loseWrites()
    const waits = []
    for (const locks of [holder, other, holder, other])
      waits.push((await parkQuietly(locks, key, { fair: true })).lease)
    await promote()
    await master.kill()
    // Wait until both clients have reconnected. Otherwise a release might pass over the waiters of a client that has
    // not subscribed yet.
    const back = [holder, other].map(locks => new Promise(resolve => locks.once('reconnected', resolve)))
    mine.switchTo(replica.url)
    await sleep(200)
    theirs.switchTo(replica.url)
    await within(4_000, Promise.all(back))
    await eventually(async () => (await holder.inspect(key).catch(() => undefined))?.waiters.length === 4)
    const newcomer = (await parkQuietly(other, key, { fair: true })).lease
    const order: number[] = []
    const served = [...waits, newcomer].map(async (wait, place) => {
      const lease = await wait
      order.push(place)
      expect(await lease.release()).toBe(true)
    })
    expect(await held.release()).toBe(true)
    await within(4_000, Promise.all(served))
    expect(order).toEqual([0, 1, 2, 3, 4])
    await nothingLeft(redis, other, key)
  })
})

describe('failover to a replica that missed releases', () => {
  // This test fails if `this.withdrawals.sendAgain(each => key === undefined || each === key)` is removed in
  // src/kind-client.ts: the new master has a hold that ended on the old one, and nothing ends it before its lease does.
  test.each(kinds)('I4 I5: what was released is released there too, and what is held stays ($kind)', async kind => {
    const { master, replica, redis, mine, theirs, holder, other, key, loseWrites, promote } = await scene(kind)
    const held = await holder.lock(key)
    const { lease: served } = await parkQuietly(other, key, { fair: true })
    const kept = await holder.lock(freshKey('kept'))
    await loseWrites()
    expect(await held.release()).toBe(true)
    expect(await (await within(3_000, served)).release()).toBe(true)
    await promote()
    await master.kill()
    // The client of the waiter that was served comes first. So the new master grants the lock to this waiter again.
    theirs.switchTo(replica.url)
    await eventually(async () => (await redis.pubsub('CHANNELS', 'lock:inbox:*')).length === 1)
    mine.switchTo(replica.url)
    const next = await within(8_000, other.lock(key))
    expect(await next.release()).toBe(true)
    await nothingLeft(redis, other, key)
    await kept.renew()
    expect(await kept.release()).toBe(true)
  })

  // This test fails if `const id = context.backend.ids.next()` becomes `const id = this.waiter?.claim.id ??
  // context.backend.ids.next()` in src/call.ts: the new master repeats the call's first grant, and the lease has the
  // token of that grant. It also fails if `if (heldToken > 0) this.recent?.add({ key, id })` is removed in
  // src/key/withdrawals.ts: the new master has the grants that were taken back until their leases end.
  test.each(ways)('I2 I4: what replicas did not confirm is taken back there, too (fair: %s)', async fair => {
    const at = await scene(undefined, { ...patient, replicas: { min: 1, timeout: 1_000 } })
    const { replica, redis, mine, theirs, holder, other, key, loseWrites, promote } = at
    await ownServer('--replicaof', '127.0.0.1', String(replica.port))
    const confirmation = mine.rule({ direction: 'up', name: 'wait' }, 'hold')
    const wait = holder.lock(key, { fair })
    const tried = freshKey('tried')
    const attempt = rejection(holder.tryLock(tried, { fair }), LockConnectionError)
    await eventually(() => other.isLocked(tried))
    await confirmation.happened
    await loseWrites()
    await promote()
    const token = async () => (await other.inspect(key)).fencingToken ?? 0
    const first = await token()
    confirmation.lift()
    await eventually(async () => (await token()) > first)
    const second = await token()
    await attempt
    await eventually(async () => !(await other.isLocked(tried)))
    // The next request for the lock reaches only the new master.
    await mine.rule({ direction: 'up', name: 'acquire', times: 1 }, 'drop').happened
    await eventually(async () => (await redis.wait(1, 500)) === 1, 15_000)
    for (const proxy of [mine, theirs]) proxy.switchTo(replica.url)
    const leases = await within(8_000, Promise.all([wait, other.lock(tried)]))
    expect(leases[0].fencingToken).toBeGreaterThan(second)
    for (const lease of leases) expect(await lease.release()).toBe(true)
    await nothingLeft(redis, holder, key)
  })
})

describe('the name of the master leads to a replica', () => {
  // This test fails if `(isDemoted(error) && !('nodes' in this.redis))` becomes `false` in src/redis/connection.ts:
  // calls are rejected, and the holds end with their leases.
  test.each(kinds)(
    'the old one, and then to the new master: I4 I5, calls are granted there, holds go on, and messages arrive ($kind)',
    async kind => {
      const at = await scene(kind, { ...patient, lease: 2_400 })
      const { master, replica, redis, mine, theirs, holder, other, key, loseWrites, promote } = at
      const held = await holder.lock(key)
      const { lease: wait } = await parkQuietly(other, key, { fair: true })
      await loseWrites()
      await promote()
      await plainRedis(master.url).replicaof('127.0.0.1', new URL(replica.url).port)
      // The connections that the clients have lead to the old master, and stay.
      for (const proxy of [mine, theirs]) proxy.switchTo(replica.url, 'none')
      const next = await within(3_000, holder.lock(freshKey()))
      const inboxes = async () => (await redis.pubsub('CHANNELS', 'lock:inbox:*')).length
      await eventually(async () => (await inboxes()) === 2)
      await sleep(2_500)
      expect([held.held, next.held]).toEqual([true, true])
      await eventually(async () => (await other.inspect(key)).waiters.length === 1)
      expect(await held.release()).toBe(true)
      expect(await within(500, wait)).toMatchObject({ via: 'handoff' })
    },
  )

  // This test fails if `this.#demoted ||= isDemoted(reason)` is removed in src/redis/uplink.ts: each connection
  // counts as up, so the next one is made without a pause.
  test('for good: I6, calls reject with READONLY, and the client connects at most about once a second', async () => {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    await redis.replicaof('127.0.0.1', 1)
    const locks = client({ outageTimeout: 3_000 }, url)
    const [down, up] = [heard(locks, 'disconnected'), heard(locks, 'reconnected')]
    const calls = [locks.lock('a'), locks.lock('a', { fair: true }), locks.tryLock('b', { timeout: 60_000 })]
    const errors = await within(8_000, Promise.all(calls.map(call => rejection(call, LockConnectionError))))
    for (const error of errors) expect(wordsOf(error)).toMatch(/^READONLY /)
    expect([down.length, up.length]).toEqual([1, 0])
    // Each of the two connections was tried after 10, 20, 40 … 640 ms, and then once a second.
    const [, made] = /total_connections_received:(\d+)/.exec(await redis.info('stats')) ?? []
    expect(Number(made)).toBeLessThan(40)
    await redis.replicaof('NO', 'ONE')
    expect((await within(3_000, locks.lock('a'))).held).toBe(true)
  })
})

/** Tests a failover in which the master dies before its replica has the last writes. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { kinds } from '../kit/kinds.ts'
import { aborted, within } from '../kit/outcomes.ts'
import { parkQuietly } from '../kit/parking.ts'
import { frameProxy, warm } from '../kit/proxies.ts'
import { bluntRedis, freshKey, nothingLeft, ownServer, plainRedis } from '../kit/redis.ts'
import { Replication } from '../kit/replication.ts'
import { eventually, sleep } from '../kit/time.ts'

const patient = { lease: 60_000, waiterTtl: 3_000 }

/** Starts a master, a replica whose link can be cut, and two clients that each reach the master through a proxy. */
async function scene({ client } = kinds[0]!) {
  const master = await ownServer()
  const replica = await ownServer()
  const redis = plainRedis(replica.url)
  const replication = await Replication.begin(
    { url: master.url, redis: bluntRedis(master.url) },
    { url: replica.url, redis },
  )
  onTestFinished(() => replication.close())
  const [mine, theirs] = [await frameProxy(master.url), await frameProxy(master.url)]
  const [holder, other] = [client(patient, mine.url), client(patient, theirs.url)]
  await warm(holder)
  await warm(other)

  const key = freshKey()
  const loseWrites = () => replication.loseWrites()
  const promote = () => replication.promote()
  return { master, replica, redis, mine, theirs, holder, other, key, loseWrites, promote }
}

describe('failover to a replica that missed the grant', () => {
  // This test fails if `clock, tick = micros, stamp` becomes `clock, tick = math.max(clock + 1, 1e15), stamp and
  // string.format('%.0f', math.max(clock + 1, 1e15))` in lua/shared/clock.lua: tokens are counted instead of taken from
  // the time of day, so the new grant has the same token as the lost grant. Even without this change, the old holder
  // and the new holder both hold until the old holder reaches the new master. This is a limit of I1. Only their tokens
  // distinguish the two holders.
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

  // This test fails if `this.holding.doubtAll(key)` is removed in src/locks.ts: the holder learns of its loss only by
  // its next renewal, 20 s later.
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

  // This test fails if `joins[#joins + 1] = ticket` becomes `joins[#joins + 1] = string.format('%.0f', micros + i)` in
  // lua/mutex/tend.lua: positions in the queue follow the order of the heartbeats, and not the tickets. It also fails
  // if `joins[#joins + 1] = ticket` becomes `joins[#joins + 1] = string.format('%.0f', micros + i)` in
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

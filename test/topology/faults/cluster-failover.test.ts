/** Tests a cluster's master that is replaced by its replica, under contention and with parked waiters. */
import { describe, expect, test } from 'vitest'
import type { Lease } from '../../../src/index.ts'
import { newClientId } from '../../../src/redis/ids.ts'
import { newHoldId } from '../../kit/ids.ts'
import { type KindName, kindNames, lockOf } from '../../kit/kind-clients.ts'
import { kinds } from '../../kit/kinds.ts'
import { within } from '../../kit/outcomes.ts'
import { eventually } from '../../kit/time.ts'
import { Crowd, clusterLocks, contests, ownCluster, SOON, slotOf } from './cluster-crowd.ts'

describe('CLUSTER FAILOVER', () => {
  // This test fails if `if reached == 0 then` becomes `if false then` in lua/lock.lua, `redis.on('moved'`
  // becomes `redis.on('never'` in src/redis/shard.ts, and `cluster.on('refresh', () => subscriber.seek())` is removed in
  // src/redis/shards.ts: no client follows the slot to its new master, and a release passes over a client that has not
  // followed. (With only some of these changes, the test usually passes: clients follow the slot before the release, or
  // the release does not pass over them.)
  test('I3 I4: waiters and leases continue after a failover, and after a second failover back', {
    timeout: 60_000,
  }, async () => {
    const cluster = await ownCluster()
    const clients = ['one', 'two'].map(label => clusterLocks(cluster, { label, waiterTtl: 60_000, lease: 60_000 }))
    const orders: Partial<Record<KindName, number[]>> = {}
    const waits: Promise<void>[] = []
    const leases: Lease[] = []
    for (const kind of kindNames) {
      const [one, two] = clients.map(each => lockOf(each, kind, 'parked'))
      const loose = clients.map(each => lockOf(each, kind, '{parked}:loose'))
      leases.push(await one!.lock(), await loose[1]!.lock())
      const order: number[] = []
      orders[kind] = order
      for (let i = 0; i < 6; i++) {
        const wait = (i % 2 ? one! : two!).lock({ fair: true })
        waits.push(
          wait.then(async lease => {
            order.push(i)
            expect(await lease.release()).toBe(true)
          }),
        )
        await eventually(async () => (await one!.inspect()).waiters.length === i + 1)
      }
      const released = async (lease: Lease) => expect(await lease.release()).toBe(true)
      waits.push(...loose.map(each => each.lock().then(released)))
    }

    const master = await cluster.masterOf(slotOf('parked'))
    const replica = await cluster.replicaOf(master)
    await cluster.failOver(replica)
    await cluster.untilWhole()
    expect(leases.map(({ held }) => held)).toEqual(leases.map(() => true))
    // Wait until both clients have followed each queue, which is then recorded on the new master (lua/lock.lua).
    const node = Number.parseInt(replica.id.slice(0, 2), 16) / 256
    for (const { nameOf } of kinds) {
      await eventually(async () => {
        const times = await replica.redis.zrange(`${nameOf('parked')}:d`, '0', '-1', 'WITHSCORES')
        const here = times.filter((text, i) => times[i - 1]?.endsWith('@') && Number(text) % 1 === node)
        return here.length === clients.length
      }, SOON)
    }
    // The clients have not followed the slot back yet when these releases run.
    await cluster.failOver(master)
    expect(await Promise.all(leases.map(lease => lease.release()))).toEqual(leases.map(() => true))
    await within(SOON, Promise.all(waits))
    for (const kind of kindNames) expect(orders[kind], kind).toEqual([0, 1, 2, 3, 4, 5])
  })
})

// A release may reach a node before the waiter's client has subscribed there. This test fails if `or noted % 1 ~=
// tonumber(here:sub(1, 2), 16) / 256` is removed in lua/lock.lua: after a failover there and back, waiters lose
// their places because their clients were subscribed on this node before.
test('I3 I4: a waiter whose client is not subscribed is passed over only if it was subscribed on this node last', async () => {
  const cluster = await ownCluster()
  const locks = clusterLocks(cluster)
  const master = await cluster.masterOf(slotOf('parked'))
  const here = Number.parseInt(master.id.slice(0, 2), 16) / 256
  const grantedIfNoted = async (node: number) => {
    const lease = await locks.lock('parked')
    const wait = locks.lock('parked', { fair: true, label: 'live', signal: AbortSignal.timeout(SOON) })
    wait.catch(() => {})
    await eventually(async () => (await locks.inspect('parked')).waiters.length === 1)
    const [, ticket] = await master.redis.zrange('lock:{parked}:q', '0', '0', 'WITHSCORES')
    const client = newClientId()
    await master.redis.zadd('lock:{parked}:q', Number(ticket) - 1, `${newHoldId(client)} 0 30000 30000 0 unheard`)
    await master.redis.zadd('lock:{parked}:d', 1.5e13 + node, `${client}@`)
    await lease.release()
    const { label } = await locks.inspect('parked')
    await locks.forceRelease('parked')
    if (label !== 'live') await locks.forceRelease('parked')
    return label
  }
  expect(await grantedIfNoted((here + 0.5) % 1)).toBe('unheard')
  expect(await grantedIfNoted(here)).toBe('live')
})

describe('SIGKILL of a master', () => {
  // This test fails if `slots => listener.onMoved?.(place =>` becomes `() => void (place =>` in src/redis/server.ts: the
  // new master has a hold that ended on the old one.
  test('I4: a release that its replica missed is sent again', { timeout: 60_000 }, async () => {
    const cluster = await ownCluster()
    const [one, two] = ['one', 'two'].map(label => clusterLocks(cluster, { label, lease: 120_000 }))
    const locks = kindNames.map(kind => [lockOf(one!, kind, 'parked'), lockOf(two!, kind, 'parked')] as const)
    const leases = await Promise.all(locks.map(([lock]) => lock.lock()))
    const master = await cluster.masterOf(slotOf('parked'))
    const replica = await cluster.replicaOf(master)
    await cluster.loseWrites(master)
    expect(await Promise.all(leases.map(lease => lease.release()))).toEqual(leases.map(() => true))
    await cluster.kill(master)
    await cluster.untilMaster(replica)
    // The first client learns of the new master by its next call.
    await one!.isLocked('parked')
    await within(SOON, Promise.all(locks.map(([, lock]) => lock.lock())))
  })

  // The replica of a master that has died may lack the master's last writes. So I1 and I3 are not guaranteed for that
  // master's keys: holds from before the promotion may overlap with later holds, and queue positions may be lost. For
  // all other keys, I1 and I3 are guaranteed. This test fails if `else this.#send(call)` is removed in
  // src/redis/connection.ts: interrupted requests are not sent again.
  test('I1 to I8: all callers are served again; lost holds are signalled', { timeout: 90_000 }, async () => {
    const cluster = await ownCluster()
    const crowd = new Crowd(cluster, contests)
    const holder = clusterLocks(cluster)
    const steady = await Promise.all(Array.from({ length: 12 }, (_, i) => holder.lock(`steady-${i}`)))
    await crowd.served()
    const master = await cluster.masterOf(slotOf('job-0'))
    const replica = await cluster.replicaOf(master)
    const owners = await Promise.all(contests.map(async ({ key }) => (await cluster.masterOf(slotOf(key))) === master))
    const hit = contests.filter((_, i) => owners[i])
    expect(new Set(hit.map(({ kind }) => kind)).size).toBe(kindNames.length)
    for (const [i, { key }] of hit.entries())
      crowd.record('fault', { fault: i, name: 'crash', phase: 'begin', reach: 'key', key })

    const from = crowd.now
    await cluster.kill(master)
    await cluster.untilMaster(replica)
    for (const { key } of hit) crowd.record('taken', { key, from, how: 'failover' })
    await crowd.served()
    await cluster.restart(master)
    await crowd.served()
    for (const [i, { key }] of hit.entries())
      crowd.record('fault', { fault: i, name: 'crash', phase: 'end', reach: 'key', key })

    for (const lease of steady) {
      const { fencingToken } = await holder.inspect(lease.key)
      if (fencingToken === lease.fencingToken) expect(lease.held, lease.key).toBe(true)
      else await eventually(() => lease.signal.aborted)
    }
    await crowd.end()
  })
})

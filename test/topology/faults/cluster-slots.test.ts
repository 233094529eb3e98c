/** Tests slots that move to another node key by key, while callers contend for locks of every kind in these slots. */
import { describe, expect, test } from 'vitest'
import type { Lease } from '../../../src/index.ts'
import { type KindName, kindNames, lockOf } from '../../kit/kind-clients.ts'
import { within } from '../../kit/outcomes.ts'
import { eventually, sleep } from '../../kit/time.ts'
import type { Node, RedisCluster } from '../../kit/topologies/redis-cluster.ts'
import { type Contest, Crowd, clusterLocks, ownCluster, slotOf } from './cluster-crowd.ts'

/** The time in ms between two checks by which a client finds out whether messages still arrive. */
const BEAT = 5_000

/** Returns how many errors with this name the nodes have returned. */
async function errors(cluster: RedisCluster, name: string): Promise<number> {
  const infos = await Promise.all(cluster.nodes.map(({ redis }) => redis.info('errorstats')))
  return infos.reduce((sum, info) => sum + Number(new RegExp(`errorstat_${name}:count=(\\d+)`).exec(info)?.[1] ?? 0), 0)
}

describe('a slot that moves', () => {
  // While a slot moves, its keys may be on two nodes. A script is then refused temporarily, or it runs on a node on
  // which no client has subscribed yet. Queue positions may be lost during the move, but nothing else may be lost.
  // Locks in other slots must not be affected. This test fails if `'non local key': 'not now',` is removed in
  // src/redis/refusals.ts: calls that are refused temporarily fail. Some of them are releases: their locks are granted
  // again only when the leases have ended.
  test('I1 I2 I4 to I8: moves back and forth, and to an added node', { timeout: 90_000 }, async () => {
    const cluster = await ownCluster()
    const moving: Contest[] = [
      { key: '{m}:fair', fair: true },
      { key: '{m}:loose', fair: false },
      { key: '{m}:permits', kind: 'semaphore', fair: true },
      { key: '{m}:book', kind: 'readWrite', fair: true },
    ]
    const staying: Contest[] = [
      { key: 'job-0', fair: true },
      { key: 'job-1', fair: false },
      { key: 'job-2', kind: 'readWrite', fair: true },
    ]
    const slot = slotOf('{m}:fair')
    const crowd = new Crowd(cluster, [...moving, ...staying])
    const holder = clusterLocks(cluster, { lease: 6_000 })
    const { read } = holder.readWrite('{m}:steady')
    const locks = [holder.mutex('{m}:steady'), holder.mutex('other'), holder.semaphore('{m}:steady', 2), read, read]
    const steady = await Promise.all(locks.map(lock => lock.lock()))
    await crowd.served()

    const home = await cluster.masterOf(slot)
    const away = cluster.nodes.slice(0, 3).find(node => node !== home) as Node
    const added = await cluster.addMaster()
    const before = await errors(cluster, 'ERR')
    for (const [fault, to] of [away, home, added, home].entries()) {
      for (const { key } of moving) crowd.record('fault', { fault, name: 'move', phase: 'begin', reach: 'key', key })
      await cluster.moveSlot(slot, to, () => sleep(500))
      await crowd.served()
      for (const { key } of moving) crowd.record('fault', { fault, name: 'move', phase: 'end', reach: 'key', key })
    }

    expect(await errors(cluster, 'ASK')).toBeGreaterThan(0)
    // Redis refuses a script with the error ERR if a key of its lock is on the other node (lua/README.md).
    expect(await errors(cluster, 'ERR')).toBeGreaterThan(before)
    expect(steady.map(lease => lease.held)).toEqual(steady.map(() => true))
    expect(await Promise.all(steady.map(lease => lease.release()))).toEqual(steady.map(() => true))
    const { ends } = await crowd.end()
    expect(ends.size, 'nothing failed').toBe(0)
  })

  // This test fails if `redis.on('moved'` becomes `redis.on('never'` in src/redis/shard.ts: the waiters stay subscribed
  // on the old node, where nothing is published any longer. The client would notice this only by the message that it
  // sends to itself every 5 s, or by a heartbeat, which comes every 20 s.
  test('I3 I4: takes the subscriptions of idle waiters along', { timeout: 60_000 }, async () => {
    const cluster = await ownCluster()
    const made = performance.now()
    const [one, two] = [clusterLocks(cluster, { waiterTtl: 60_000 }), clusterLocks(cluster, { waiterTtl: 60_000 })]
    const slot = slotOf('{m}')
    const leases: Lease[] = []
    const orders: Partial<Record<KindName, number[]>> = {}
    const waits: Promise<unknown>[] = []
    for (const kind of kindNames) {
      const [mine, theirs] = [one, two].map(locks => lockOf(locks, kind, '{m}:fair'))
      leases.push(await mine!.lock(), await lockOf(one, kind, '{m}:loose').lock())
      waits.push(lockOf(two, kind, '{m}:loose').lock())
      const order: number[] = []
      orders[kind] = order
      for (const [i, lock] of [theirs!, mine!, theirs!].entries()) {
        const served = lock.lock({ fair: true }).then(lease => {
          order.push(i)
          return lease.release()
        })
        waits.push(served)
        await eventually(async () => (await lock.inspect()).waiters.length === i + 1)
      }
    }
    const home = await cluster.masterOf(slot)
    const away = cluster.nodes.slice(0, 3).find(node => node !== home) as Node
    // Each client regularly checks whether messages still arrive. Wait until just after such a check, so that the next
    // check does not interfere.
    await sleep(BEAT - ((performance.now() - made) % BEAT) + 300)
    await cluster.moveSlot(slot, away)
    const there = async () => ((await away.redis.call('PUBSUB', 'SHARDCHANNELS')) as string[]).length
    // For each kind of lock, there are three subscriptions: two clients wait for grants, and one client waits for the
    // message that the lock is free. All subscriptions are on the new node, although no client has sent a command since
    // the move, and the next check is not due yet.
    await eventually(async () => (await there()) >= 3 * kindNames.length, 2_500)
    expect(await Promise.all(leases.map(lease => lease.release()))).toEqual(leases.map(() => true))
    await within(8_000, Promise.all(waits))
    for (const kind of kindNames) expect(orders[kind], kind).toEqual([0, 1, 2])
  })
})

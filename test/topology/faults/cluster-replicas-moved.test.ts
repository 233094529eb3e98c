/**
 * Tests `replicas` on a cluster when a slot gets a new master. The client asks over separate connections whether
 * replicas confirm a grant. For every kind of lock, these connections must follow the slot.
 */
import { expect, test } from 'vitest'
import { kindNames, lockOf } from '../../kit/kind-clients.ts'
import { within } from '../../kit/outcomes.ts'
import type { RedisCluster } from '../../kit/topologies/redis-cluster.ts'
import { clusterLocks, ownCluster, SOON, slotOf } from './cluster-crowd.ts'

const key = 'job'
const slot = slotOf(key)

const ways: [name: string, move: (cluster: RedisCluster) => Promise<void>][] = [
  [
    'CLUSTER FAILOVER',
    async cluster => {
      await cluster.failOver(await cluster.replicaOf(await cluster.masterOf(slot)))
      await cluster.untilWhole()
    },
  ],
  [
    'a slot that moves',
    async cluster => {
      const home = await cluster.masterOf(slot)
      await cluster.moveSlot(slot, cluster.nodes.slice(0, 3).find(node => node !== home)!)
    },
  ],
]

// This test fails if `(isReply(error) && !this.#connection.passes(error))` becomes `isReply(error)` in
// src/redis/replication.ts: the error MOVED counts as an answer about the replicas, so each grant is undone and
// retried, without success. It also fails if `if ('nodes' in redis && isReply(error)) redis.refreshSlotsCache(() =>
// {})` is removed in src/redis/replication.ts: the client keeps asking the old master.
test.each(ways)('I2 I4: %s: the new master grants locks, and leases continue', async (_, move) => {
  const cluster = await ownCluster()
  const locks = clusterLocks(cluster, { replicas: { min: 1, timeout: 2_000 } })
  const at = await Promise.all(
    kindNames.map(async kind => {
      const [lock, held] = [lockOf(locks, kind, key), lockOf(locks, kind, `{${key}}:steady`)]
      const steady = await held.lock()
      const before = await lock.lock()
      expect(await before.release()).toBe(true)
      return { lock, held, steady, before }
    }),
  )
  await move(cluster)

  const leases = await within(SOON, Promise.all(at.map(({ lock }) => lock.lock())))
  for (const [i, { lock, held, steady, before }] of at.entries()) {
    const lease = leases[i]!
    expect(lease.fencingToken).toBeGreaterThan(before.fencingToken)
    expect(await held.tryLock()).toBeNull()
    await steady.renew()
    expect(await steady.release()).toBe(true)
    expect(await lease.release()).toBe(true)
    // `tryLock`, which makes a single attempt, is granted as well.
    expect(await (await lock.tryLock())?.release()).toBe(true)
  }
})

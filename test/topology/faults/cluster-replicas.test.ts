/** Tests `replicas` on a cluster: for every kind of lock, each master's own replicas must confirm a grant. */
import { expect, test } from 'vitest'
import { LockConnectionError } from '../../../src/index.ts'
import { type KindName, kindNames, lockOf } from '../../kit/kind-clients.ts'
import { clusterLocks, ownCluster, slotOf } from './cluster-crowd.ts'

// This test fails if `this.names.placeOfLock(lock)` becomes `''` in src/redis/server.ts: a pipeline spans several nodes,
// which ioredis refuses.
test('I1: grants and hand-offs count only on masters whose replica works', async () => {
  const cluster = await ownCluster('--cluster-node-timeout', '15000')
  const make = () => clusterLocks(cluster, { replicas: { min: 1, timeout: 400 }, outageTimeout: 20_000 })
  const [a, b] = [make(), make()]
  const keys = Array.from({ length: 12 }, (_, i) => `job-${i}`)
  const places = keys.flatMap(key => kindNames.map(kind => ({ kind, key })))
  const all = <T>(call: (kind: KindName, key: string) => T) => places.map(({ kind, key }) => call(kind, key))
  const masters = new Map<string, Awaited<ReturnType<typeof cluster.masterOf>>>()
  for (const key of keys) masters.set(key, await cluster.masterOf(slotOf(key)))
  expect(new Set(masters.values()).size).toBe(3)

  const leases = await Promise.all(all((kind, key) => lockOf(a, kind, key).lock({ fair: true })))
  const waits = all((kind, key) => lockOf(b, kind, key).lock({ fair: true }))
  await Promise.all(leases.map(lease => lease.release()))
  for (const lease of await Promise.all(waits)) {
    expect(lease.held).toBe(true)
    expect(await lease.release()).toBe(true)
  }

  const alone = masters.get('job-0')!
  await cluster.kill(await cluster.replicaOf(alone))
  const outcomes = await Promise.allSettled(all((kind, key) => lockOf(a, kind, key).tryLock()))
  for (const [i, outcome] of outcomes.entries()) {
    const place = places[i]!
    const status = masters.get(place.key) === alone ? 'rejected' : 'fulfilled'
    expect({ ...place, status: outcome.status }).toEqual({ ...place, status })
    if (outcome.status === 'rejected') {
      expect(outcome.reason).toBeInstanceOf(LockConnectionError)
      expect(outcome.reason.message).toContain('0 of 1 required replicas confirmed the grant within 400 ms')
    }
  }
})

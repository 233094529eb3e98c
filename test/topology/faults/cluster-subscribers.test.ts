/**
 * Tests a cluster client with several subscriber connections. One of them is lost or half-open, and the others work.
 * Waiters may then have missed messages, so the client asks Redis about their locks, with the scripts of each kind. How
 * the client notices the bad connection is the same for all kinds, and is tested with mutexes.
 */
import { Cluster } from 'ioredis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LockClient } from '../../../src/index.ts'
import { kindNames, lockOf } from '../../kit/kind-clients.ts'
import { within } from '../../kit/outcomes.ts'
import { type FrameProxy, frameProxy } from '../../kit/proxies.ts'
import { eventually } from '../../kit/time.ts'
import type { Node, RedisCluster } from '../../kit/topologies/redis-cluster.ts'
import { clusterLocks, ownCluster, slotOf } from './cluster-crowd.ts'

/** With these options, no heartbeat comes and no lease ends during a test. */
const patient = { waiterTtl: 60_000, lease: 60_000, outageTimeout: 3_000 }

describe('a subscriber connection', () => {
  // This test fails if `if (this.#subscriber.lost(shard)) listener.onDown(error)` is removed in src/redis/shards.ts:
  // the client does not subscribe again. It also fails if `if (missed || before) this.#listener.onResumed(name)` is
  // removed in src/redis/subscriber.ts: no waiter checks for messages that it has missed.
  test('I4: is replaced after it was killed, and its waiters check their locks', { timeout: 60_000 }, async () => {
    const cluster = await ownCluster()
    const [holder, waiter] = [clusterLocks(cluster, patient), clusterLocks(cluster, patient)]
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    const kindAt = (i: number) => kindNames[i % 3]!
    const leases = await Promise.all(keys.map((key, i) => lockOf(holder, kindAt(i), key).lock()))
    const waits = keys.map((key, i) => lockOf(waiter, kindAt(i), key).lock({ fair: i % 2 === 0 }))
    await eventually(() => waiter.stats().waiting === keys.length)
    const { redis } = await cluster.masterOf(slotOf('a'))
    const channels = async () => ((await redis.call('PUBSUB', 'SHARDCHANNELS')) as string[]).length
    await eventually(async () => (await channels()) > 0)
    const events: string[] = []
    waiter.on('disconnected', () => events.push('disconnected'))
    waiter.on('reconnected', () => events.push('reconnected'))
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await Promise.all(leases.map(lease => lease.release()))
    await within(8_000, Promise.all(waits.map(wait => wait.then(lease => lease.release()))))
    await eventually(() => events.length === 2)
    expect(events).toEqual(['disconnected', 'reconnected'])
  })

  // This test fails if `if (this.#listener.busy()) this.#subscriber.probe()` is removed in src/redis/server.ts: messages are
  // lost until the next heartbeat, after 20 s.
  test('I4: is noticed by a probe if it is half-open', { timeout: 60_000 }, async () => {
    const cluster = await ownCluster()
    const holder = clusterLocks(cluster, patient)
    const { waiter, before } = await proxied(cluster)
    const held = await holder.lock('a')
    const wait = waiter.lock('a', { fair: true })
    await eventually(async () => (await holder.inspect('a')).waiters.length === 1)
    const { noticed } = before(await cluster.masterOf(slotOf('a'))).halfOpen('down', 'messages')
    expect(await held.release()).toBe(true)
    await within(12_000, wait)
    expect(noticed()).toBe(true)
  })
})

// This test fails if `, socketTimeout: silence` is removed in src/redis/clients.ts: the other nodes' answers hide the
// bad connection, and every call over that connection fails.
test('I6: a half-open connection for commands to one node is noticed, while others answer', async () => {
  const cluster = await ownCluster()
  const { waiter, before } = await proxied(cluster)
  const node = await cluster.masterOf(slotOf('a'))
  const other = await cluster.masterOf(slotOf('b'))
  expect(other).not.toBe(node)
  await (await waiter.lock('a')).release()
  const { noticed } = before(node).halfOpen('down', 'commands')
  const busy = setInterval(() => waiter.isLocked('b').catch(() => {}), 100)
  onTestFinished(() => clearInterval(busy))
  const lease = await within(patient.outageTimeout, waiter.lock('a'))
  expect(lease.held).toBe(true)
  expect(noticed()).toBe(true)
})

/** Makes a client that reaches each node through a proxy. */
async function proxied(cluster: RedisCluster) {
  const proxies = new Map<string, FrameProxy>()
  for (const { server } of cluster.nodes) {
    const proxy = await frameProxy(server.url)
    proxies.set(`127.0.0.1:${server.port}`, proxy)
  }
  const ways = [...proxies].map(([node, { url }]) => [node, { host: '127.0.0.1', port: Number(new URL(url).port) }])
  const natMap: Record<string, { host: string; port: number }> = Object.fromEntries(ways)
  const waiter = new LockClient(new Cluster(Object.values(natMap), { natMap, lazyConnect: true }), patient)
  onTestFinished(() => waiter.close())
  return { waiter, before: ({ server }: Node) => proxies.get(`127.0.0.1:${server.port}`) as FrameProxy }
}

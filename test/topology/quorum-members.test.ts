/** Tests a quorum whose servers are of different kinds: a cluster, a master behind sentinels, and a single server. */
import { Cluster } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { collect, promptly, within } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { client, freshKey } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'
import { persistsEveryWrite, startQuorumServer } from '../kit/topologies/quorum-server.ts'
import { RedisCluster } from '../kit/topologies/redis-cluster.ts'
import { RedisSentinel } from '../kit/topologies/redis-sentinel.ts'

async function scene() {
  const [cluster, sentinel, single] = await Promise.all([
    RedisCluster.start(persistsEveryWrite),
    RedisSentinel.start(persistsEveryWrite),
    startQuorumServer(),
  ])
  onTestFinished(async () => {
    await Promise.all([cluster.stop(), sentinel.stop(), single.stop()])
  })
  const members = () => [new Cluster(cluster.addresses, { lazyConnect: true }), sentinel.options, single.url] as const
  return { sentinel, client: () => client({ lease: 5_000, outageTimeout: 5_000 }, members()) }
}

test('locks, waits in the queue, hands on and lists over a cluster, a master behind sentinels and a single server', async () => {
  const { client, sentinel } = await scene()
  const [one, two] = [client(), client()]
  const key = freshKey()
  const first = await within(10_000, one.lock(key))
  const queued = await park(two, key, { fair: true })
  expect(await two.inspect(key)).toMatchObject({ locked: true, owner: first.owner, waiters: [{ position: 1 }] })
  expect(await collect(two.list(key))).toMatchObject([{ key, locked: true }])
  expect(await first.release()).toBe(true)
  const second = await promptly(queued.lease)
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken)

  // The master that is killed belongs to one of the three members. The other two members are a majority.
  await sentinel.data[0]!.kill()
  await second.renew()
  const third = await park(one, key, { fair: true })
  expect(await promptly(second.release())).toBe(true)
  const lease = await within(5_000, third.lease)
  expect(lease.fencingToken).toBeGreaterThan(second.fencingToken)
  expect(await two.forceRelease(key)).toBe(true)
  await eventually(() => lease.signal.aborted, 2_000)
})

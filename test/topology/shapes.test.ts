/** Each topology is what its name says: as its own servers describe it. */
import { type Cluster, Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../kit/time.ts'
import { acl } from '../kit/topologies/acl.ts'
import { cluster } from '../kit/topologies/cluster.ts'
import { peersOf } from '../kit/topologies/cluster-nodes.ts'
import { topologies } from '../kit/topologies/index.ts'
import { sentinel } from '../kit/topologies/sentinel.ts'
import { asUser, instanceOf } from '../kit/topologies/source.ts'
import type { Servers, Topology, Way } from '../kit/topologies/topology.ts'

async function started(topology: Topology): Promise<Servers> {
  const servers = await topology.start()
  onTestFinished(servers.stop)
  return servers
}

function connected<T extends Redis | Cluster>(redis: T): T {
  // What goes wrong is told by the commands, too.
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

/** The one server that this way leads to. */
function serverAt(way: Way): Redis {
  return connected(instanceOf(way, { enableReadyCheck: false })) as Redis
}

test('a cluster has three masters with all slots, and a replica of each', async () => {
  const { client, data } = await started(cluster)
  const redis = connected(instanceOf(client))
  const nodes = async () => peersOf(await redis.cluster('NODES'))
  const masters = (await nodes()).filter(peer => peer.master)
  expect(masters.map(({ size }) => size).reduce((sum, size) => sum + size)).toBe(16_384)
  expect(masters).toHaveLength(3)
  const copied = (await nodes()).filter(peer => !peer.master).map(({ masterId }) => masterId)
  expect(copied.sort()).toEqual(masters.map(({ id }) => id).sort())
  expect(data).toHaveLength(6)
})

test('three sentinels watch a master and its replica', async () => {
  const { client } = await started(sentinel)
  if (client.kind !== 'server') throw new Error('sentinels are among the options')
  const { sentinels = [], name = '' } = client.options
  expect(sentinels).toHaveLength(3)
  for (const { host, port } of sentinels) {
    const watcher = connected(new Redis(port as number, host as string))
    const words = (await watcher.call('SENTINEL', 'MASTER', name)) as string[]
    const said = (word: string) => words[words.indexOf(word) + 1]
    expect([said('num-slaves'), said('num-other-sentinels'), said('flags')]).toEqual(['1', '2', 'master'])
  }
  expect(await serverAt(client).info('replication')).toMatch(/role:master\r\nconnected_slaves:1\r\n/)
})

test('a server with users lets nobody in without a password, and its lock client do nothing but lock', async () => {
  const { client, admin } = await started(acl)
  await expect(serverAt(asUser(client)).ping()).rejects.toThrow(/^NOAUTH /)
  const redis = serverAt(client)
  for (const attempt of [redis.get('k'), redis.set('lock:k', 1), redis.keys('*'), redis.config('GET', 'save')]) {
    await expect(attempt).rejects.toThrow(/^NOPERM /)
  }
  const words = (await serverAt(admin).acl('GETUSER', 'client')) as unknown[]
  const said = (word: string) => words[words.indexOf(word) + 1]
  expect([said('keys'), said('channels')]).toEqual(['~lock:*', '&lock:*'])
  expect(said('commands')).toMatch(/^-@all \+/)
  expect(said('commands')).not.toMatch(/\+@/)
})

test.each(topologies)('$name ends with all its servers', async topology => {
  const { data, stop } = await topology.start()
  const pids = data.map(({ pid }) => pid as number)
  await stop()
  await eventually(() => pids.every(pid => !runs(pid)))
})

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Checks that each topology has the servers for which it is named, for example a cluster or sentinels. */
import { type Cluster, Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../kit/time.ts'
import { acl } from '../kit/topologies/acl.ts'
import { cluster } from '../kit/topologies/cluster.ts'
import { peersOf } from '../kit/topologies/cluster-nodes.ts'
import { topologies } from '../kit/topologies/index.ts'
import { quorum } from '../kit/topologies/quorum.ts'
import { sentinel } from '../kit/topologies/sentinel.ts'
import { asUser, instanceOf, partsOf } from '../kit/topologies/source.ts'
import type { Servers, Topology, Way } from '../kit/topologies/topology.ts'

async function started(topology: Topology): Promise<Servers> {
  const servers = await topology.start()
  onTestFinished(servers.stop)
  return servers
}

function connected<T extends Redis | Cluster>(redis: T): T {
  // A command that fails rejects with its error, so the test can ignore the `error` events.
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

function serverAt(way: Way): Redis {
  return connected(instanceOf(partsOf(way)[0]!, { enableReadyCheck: false })) as Redis
}

test('a cluster has three masters with all slots, and a replica of each', async () => {
  const { client, data } = await started(cluster)
  const redis = connected(instanceOf(partsOf(client)[0]!))
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

test('a server with users requires a password, and its lock client may only do what locks need', async () => {
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

test('a quorum has three masters that persist every write and know nothing of each other', async () => {
  const { client, data } = await started(quorum)
  expect(data).toHaveLength(3)
  const all = partsOf(client).map(serverAt)
  const said = await Promise.all(all.map(redis => redis.info()))
  const field = (name: string) => said.map(text => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(text)?.[1])
  expect(new Set(field('run_id')).size).toBe(3)
  expect(field('role')).toEqual(['master', 'master', 'master'])
  expect(field('connected_slaves')).toEqual(['0', '0', '0'])
  expect(field('aof_enabled')).toEqual(['1', '1', '1'])
  const told = (name: string) => Promise.all(all.map(async redis => ((await redis.config('GET', name)) as string[])[1]))
  expect(await told('appendfsync')).toEqual(['always', 'always', 'always'])
  expect(new Set(await told('dir')).size).toBe(3)
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

/** Tests that the client reports once if a server may evict locks, and reports nothing otherwise. */
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findServerSource, type RunningServer } from '../../local-redis/index.ts'
import { LockClient, LockError } from '../../src/index.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { freshKey } from '../kit/redis.ts'
import { aclRule } from '../kit/rights.ts'
import { eventually } from '../kit/time.ts'
import { RedisCluster } from '../kit/topologies/redis-cluster.ts'

let server: RunningServer
let redis: Redis

beforeAll(async () => {
  server = await (await findServerSource()).start()
  redis = new Redis(server.url)
})

afterAll(async () => {
  redis?.disconnect()
  await server?.stop()
})

/** Makes a client, uses it once, and collects the errors that it emits as events. */
async function used(source: ConstructorParameters<typeof LockClient>[0] = server.url) {
  const locks = new LockClient(source)
  const warnings: LockError[] = []
  locks.on('error', ({ error }) => warnings.push(error as LockError))
  await (await locks.lock(freshKey())).release()
  // When the client connected, it asked the server about its settings. The answer arrives before the reply to
  // `isLocked`, which uses the same connection. So `warnings` is complete then.
  await locks.isLocked(freshKey())
  return { locks, warnings, [Symbol.asyncDispose]: () => locks.close() }
}

describe('one server', () => {
  // This test fails if `warnOfEviction(this.commands.redis, error => this.#warn(error))` is
  // removed in src/redis/server.ts.
  test.each(['allkeys-lru', 'allkeys-random', 'volatile-lfu', 'volatile-ttl'])(
    '%s with maxmemory: reported once',
    async policy => {
      await redis.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', policy)
      await using at = await used()
      expect(at.warnings).toHaveLength(1)
      const [warning] = at.warnings
      expect(warning).toBeInstanceOf(LockError)
      expect(warning?.code).toBe('ERR_LOCK_EVICTION')
      expect(warning?.message).toContain(policy)
    },
  )

  test.each([
    ['noeviction', '100mb'],
    ['allkeys-lru', '0'],
  ])('%s with maxmemory %s: not reported', async (policy, maxmemory) => {
    await redis.config('SET', 'maxmemory', maxmemory, 'maxmemory-policy', policy)
    await using at = await used()
    expect(at.warnings).toEqual([])
  })

  test('a user without the right to read the setting can lock, and nothing is reported, here or in the server’s log', async () => {
    await redis.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru')
    const source = { host: '127.0.0.1', port: server.port, username: 'limited', password: 'pw' }
    await redis.acl('SETUSER', 'limited', 'on', '>pw', ...aclRule([mutex]))
    {
      await using at = await used(source)
      expect(at.warnings).toEqual([])
    }
    expect(JSON.stringify(await redis.acl('LOG'))).not.toContain('info"')
    await redis.acl('SETUSER', 'limited', '+info')
    await using at = await used(source)
    expect(at.warnings).toHaveLength(1)
  })
})

test('a cluster: each master that may evict is named', async () => {
  const cluster = await RedisCluster.start()
  try {
    const [, second] = cluster.nodes
    await second!.redis.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru')
    await using at = await used(new Cluster(cluster.addresses, { lazyConnect: true }))
    await eventually(() => at.warnings.length > 0)
    expect(at.warnings.map(({ message }) => /at (\S+) may/.exec(message)?.[1])).toEqual([
      `127.0.0.1:${second!.server.port}`,
    ])
  } finally {
    await cluster.stop()
  }
})

/**
 * Tests lock clients that are made from clients of node-redis 5 and 6. The lock client copies only the options of the
 * node-redis client. The servers in these tests require credentials.
 */
import * as redis6 from 'redis'
import * as redis5 from 'redis-5'
import { beforeAll, describe, expect, onTestFinished } from 'vitest'
import { LockArgumentError, LockConnectionError } from '../../src/index.ts'
import { rejection } from '../kit/outcomes.ts'
import { client, freshKey, keysWith, ownServer, plainRedis, test } from '../kit/redis.ts'
import { acl } from '../kit/topologies/acl.ts'
import { RedisCluster } from '../kit/topologies/redis-cluster.ts'
import { masterName, RedisSentinel } from '../kit/topologies/redis-sentinel.ts'
import { instanceOf } from '../kit/topologies/source.ts'
import { tls } from '../kit/topologies/tls.ts'
import type { InstanceOptions } from '../kit/topologies/topology.ts'

type Source = Parameters<typeof client>[1]

/** Checks that two clients of the same source exclude each other, wake each other, and hand the lock to each other. */
async function works(source: Source): Promise<void> {
  const [one, two] = [client({}, source), client({}, source)]
  const key = freshKey()
  const lease = await one.lock(key)
  expect(await two.tryLock(key)).toBeNull()
  const fair = two.lock(key, { fair: true })
  await expect.poll(async () => (await one.inspect(key)).waiters.length).toBe(1)
  await lease.release()
  expect((await fair).via).toBe('handoff')
}

let aclOptions: InstanceOptions & { username: string; password: string; port: number }
let tlsOptions: InstanceOptions
let ofTls: object

beforeAll(async () => {
  const [withUsers, withTls] = await Promise.all([acl.start(), tls.start()])
  if (withUsers.client.kind !== 'server' || withTls.client.kind !== 'server') throw new Error('each is one server')
  aclOptions = withUsers.client.options as typeof aclOptions
  tlsOptions = withTls.client.options
  ofTls = tlsOptions.tls as object
  return () => Promise.all([withUsers.stop(), withTls.stop()])
})

const versions = [
  ['6', redis6],
  ['5', redis5 as unknown as typeof redis6],
] as const

describe.each(versions)('node-redis %s', (_, { createClient, createClientPool, createCluster }) => {
  test('a client with user and password, which is not connected and stays unconnected', async () => {
    const { port, username, password } = aclOptions
    const redis = createClient({ socket: { host: '127.0.0.1', port }, username, password })
    await works(redis)
    expect(redis.isOpen).toBe(false)
  })

  test('a client with a URL, which is connected and keeps working', async () => {
    const { port, username, password } = aclOptions
    const redis = createClient({ url: `redis://${username}:${password}@127.0.0.1:${port}`, disableClientInfo: true })
    redis.on('error', () => {})
    await redis.connect()
    onTestFinished(() => redis.destroy())
    await works(redis)
    // The user of this client has only the rights of a lock client, and not the right to PING.
    await expect(redis.ping()).rejects.toThrow('NOPERM')
    expect(redis.isReady).toBe(true)
  })

  // This test fails if `Object.assign(redis.condition as object, { auth: username ? [username, password] : password })`
  // is removed in src/redis/clients.ts: each connection has the credentials of the one before.
  test('a client whose provider returns other credentials for a new connection', async () => {
    const { port } = aclOptions
    const admin = plainRedis(`redis://:${aclOptions.password}@127.0.0.1:${port}`)
    const username = freshKey('user')
    await admin.acl('SETUSER', username, 'on', '>first', '~*', '&*', '+@all')
    let password = 'first'
    const credentialsProvider = {
      type: 'async-credentials-provider' as const,
      credentials: async () => ({ username, password }),
    }
    const redis = createClient({ socket: { host: '127.0.0.1', port }, username: 'nobody', credentialsProvider })
    await works(redis)
    const locks = client({}, redis)
    const lease = await locks.lock(freshKey())
    password = 'second'
    await admin.acl('SETUSER', username, '<first', '>second')
    await admin.client('KILL', 'USER', username)
    await lease.renew()
    expect(await lease.release()).toBe(true)
  })

  test('a client whose provider streams credentials, and a provider without any', async () => {
    const { port, username, password } = aclOptions
    let streams = 0
    const streaming = {
      type: 'streaming-credentials-provider' as const,
      async subscribe() {
        streams += 1
        const dispose = () => {
          streams -= 1
        }
        return [{ username, password }, { dispose }] as [object, { dispose(): void }]
      },
      onReAuthenticationError() {},
    }
    await works(createClient({ socket: { host: '127.0.0.1', port }, credentialsProvider: streaming }))
    expect(streams).toBe(0)

    for (const reason of [new Error('no token'), 'no token']) {
      const none = { type: 'async-credentials-provider' as const, credentials: () => Promise.reject(reason) }
      const locks = client({ outageTimeout: 300 }, createClient({ socket: { port }, credentialsProvider: none }))
      expect((await rejection(locks.lock('k'), LockConnectionError)).message).toContain('no token')
    }
  })

  test('a client with TLS is accepted with its own certificate, and rejected without one', async () => {
    const { host, port } = tlsOptions as { host: string; port: number }
    await works(createClient({ socket: { host, port, tls: true, ...ofTls } }))
    await works(createClient({ url: `rediss://${host}:${port}`, socket: { tls: true, ...ofTls } as never }))
    const strange = client({ outageTimeout: 500 }, createClient({ socket: { host, port, tls: true } }))
    await rejection(strange.lock(freshKey()), LockConnectionError)
  })

  test('database and keyPrefix, for keys and channels', async () => {
    const { url } = await ownServer()
    await works(createClient({ url: `${url}/3` }))
    expect(await keysWith(plainRedis(`${url}/3`), 'lock:{')).toHaveLength(1)
    expect(await keysWith(plainRedis(url), 'lock:{')).toEqual([])
    await works(createClient({ url, database: 2, keyPrefix: 'app:' } as never))
    expect(await keysWith(plainRedis(`${url}/2`), 'lock:{')).toEqual([expect.stringMatching(/^(app:)?lock:/)])
  })

  test('I1: the database that the client has selected, without sending a command on it', async ({ key }) => {
    const { url } = await ownServer()
    const redis = createClient({ url: `${url}/1`, name: 'the-callers' })
    redis.on('error', () => {})
    await redis.connect()
    const locksIn = (db: number) => keysWith(plainRedis(`${url}/${db}`), key)
    await redis.select(2)
    const locks = client({}, redis)
    expect(String(await plainRedis(url).client('LIST'))).toMatch(/name=the-callers .* cmd=select /)
    await redis.select(3)
    await locks.tryLock(key)
    redis.destroy()
    await client({}, redis).tryLock(key)
    expect([await locksIn(1), await locksIn(2), await locksIn(3)]).toEqual([
      [],
      [expect.any(String)],
      [expect.any(String)],
    ])
  })

  test.each([Number.NaN, -1, 1.5])('I1: database %s is refused', database => {
    expect(() => client({}, createClient({ database }))).toThrow(LockArgumentError)
  })

  test('a pool is refused, and the error says so', () => {
    expect(() => client({}, createClientPool() as never)).toThrow(/a client \(not a pool\)/)
  })

  test('a cluster with a password, given by one of its nodes, through an address map', async () => {
    const cluster = await guarded()
    const [node] = cluster.addresses
    const defaults = { password: 'secret' }
    await works(createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${node!.port}` }], defaults }))
    await works(createCluster({ rootNodes: [{ socket: node! }], defaults, minimizeConnections: true }))
    const wrong = createCluster({ rootNodes: [{ socket: node! }], defaults: { password: 'no' } })
    const error = await rejection(client({ outageTimeout: 500 }, wrong).lock(freshKey()), LockConnectionError)
    expect(error.message).toContain('WRONGPASS')

    const used: string[] = []
    const nodeAddressMap = (address: string) => {
      used.push(address)
      return { host: 'localhost', port: Number(address.split(':')[1]) }
    }
    const credentialsProvider = {
      type: 'async-credentials-provider' as const,
      credentials: async () => ({ password: 'secret' }),
    }
    await works(createCluster({ rootNodes: [{ socket: node! }], defaults: { credentialsProvider }, nodeAddressMap }))
    expect(used.length).toBeGreaterThan(0)
  })
})

/** The tests of both versions share one cluster, because its start takes seconds. */
let guardedCluster: Promise<RedisCluster> | undefined

function guarded(): Promise<RedisCluster> {
  guardedCluster ??= RedisCluster.start().then(async cluster => {
    for (const { redis } of cluster.nodes) await redis.config('SET', 'masterauth', 'secret', 'requirepass', 'secret')
    return cluster
  })
  return guardedCluster
}

beforeAll(() => async () => (await guardedCluster)?.stop())

describe('sentinels', () => {
  let servers: RedisSentinel

  beforeAll(async () => {
    servers = await RedisSentinel.start()
    for (const server of servers.sentinels) {
      await servers.direct(server).acl('SETUSER', 'watcher', 'on', '>theirs', 'allchannels', '+@all')
    }
    for (const server of servers.data) {
      await servers.direct(server).acl('SETUSER', 'locks', 'on', '>ours', 'allkeys', 'allchannels', '+@all')
    }
    return () => servers.stop()
  })

  const options = () => ({
    name: masterName,
    sentinelRootNodes: servers.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
    nodeClientOptions: { username: 'locks', password: 'ours', database: 4 },
    sentinelClientOptions: { username: 'watcher', password: 'theirs' },
  })

  test('node-redis 6: with separate users for servers and sentinels', async () => {
    await works(redis6.createSentinel(options()))
    const admin = servers.direct(await servers.master())
    expect(String(await admin.client('LIST'))).toMatch(/ db=4 .* user=locks/)
  })

  test('node-redis 6: a wrong password is reported', async () => {
    const wrong = redis6.createSentinel({ ...options(), nodeClientOptions: { username: 'locks', password: 'no' } })
    const error = await rejection(client({ outageTimeout: 1_000 }, wrong).lock(freshKey()), LockConnectionError)
    expect(error.message).toContain('WRONGPASS')
  })

  test('node-redis 5 hides the options of a sentinel: the error says what to pass instead', () => {
    const hidden = redis5.createSentinel(options()) as unknown as Source
    expect(() => client({}, hidden)).toThrow(LockArgumentError)
    expect(() => client({}, hidden)).toThrow(/sentinels: \[\{ host, port \}\], name/)
  })
})

test('an ioredis instance with the same options excludes the client', async ({ key }) => {
  const { port, username, password } = aclOptions
  const other = instanceOf({ kind: 'server', options: aclOptions }, { lazyConnect: true })
  await client({}, redis6.createClient({ socket: { host: '127.0.0.1', port }, username, password })).lock(key)
  expect(await client({}, other).tryLock(key)).toBeNull()
})

/** Tests how errors name the servers of a client. */
import { Cluster, Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { addressOf } from '../../src/redis/address.ts'

const lazy = { lazyConnect: true }
const redis = (url: string) => new Redis(url, lazy)
const cluster = (...nodes: ConstructorParameters<typeof Cluster>[0]) => new Cluster(nodes, lazy)

test.each([
  [redis('redis://user:secret@host:1/2?password=p@ss'), 'host:1'],
  [new Redis({ ...lazy, path: '/run/redis.sock', password: 'secret' }), '/run/redis.sock'],
  [
    new Redis({ ...lazy, sentinels: [{ host: 'a', port: 2 }, { port: 3 }], name: 'main', sentinelPassword: 'secret' }),
    'main of the sentinels a:2, localhost:3',
  ],
  [
    cluster('redis://user:sec/ret@a:1?password=p@ss', 'b:2', 3, { host: 'd', password: 'secret' } as object),
    'the cluster unknown, b:2, localhost:3, d:6379',
  ],
])('the address of a client has no user and no password: %#', (redis, address) => {
  expect(addressOf(redis)).toBe(address)
})

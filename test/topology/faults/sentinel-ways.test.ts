/**
 * Tests how a client finds the master, and what it does if a sentinel hangs, is gone, or names the wrong server. All of
 * this is the same for all kinds of lock, so the tests use a mutex.
 */
import type { Redis } from 'ioredis'
import { expect, onTestFinished } from 'vitest'
import { freePort } from '../../../local-redis/port.ts'
import { systemClock } from '../../../src/clock.ts'
import { LockClient, LockConnectionError } from '../../../src/index.ts'
import { clientsOf } from '../../../src/redis/clients.ts'
import { Sentinels } from '../../../src/redis/sentinels.ts'
import { rejection, within } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { frameProxy } from '../../kit/proxies.ts'
import { client, freshKey, ownServer, plainRedis, test } from '../../kit/redis.ts'
import { Replication } from '../../kit/replication.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { freeze, mistaken, scene } from './sentinel-scene.ts'

// This test fails if `sentinelCommandTimeout: 1_000,` is removed in src/redis/ioredis-options.ts: the client keeps
// waiting for the first sentinel.
test('I6: a sentinel that hangs is skipped', async () => {
  const { servers, make } = await scene()
  const goOn = freeze(servers.sentinels[0]!)
  onTestFinished(goOn)
  const lease = await within(4_000, make().lock(freshKey()))
  expect(await lease.release()).toBe(true)
})

// This test fails if `sentinelRetryStrategy: times => (times === 1 ? 0 : null),` is removed in
// src/redis/ioredis-options.ts: ioredis keeps asking, and never reports why no sentinel answers.
test('I6 I7: if no sentinel answers, calls are rejected in time with this cause, and nothing is left', async () => {
  const sentinels = [{ host: '127.0.0.1', port: await freePort() }]
  const locks = new LockClient({ sentinels, name: 'locks' }, { outageTimeout: 600 })
  const error = await within(1_500, rejection(locks.lock(freshKey()), LockConnectionError))
  expect(error.message).toMatch(/All sentinels are unreachable/)
  expect((error.cause as Error).cause).toMatchObject({ code: 'ECONNREFUSED' })
  await within(500, locks.close())
})

// This test fails if `this.#sentinels?.close()` is removed in src/redis/server.ts: the client's connections to the
// sentinels stay.
test('I7: a closed client leaves no connection to the sentinels, even if its master is away', async () => {
  const { servers, master } = await scene()
  const connections = async () => {
    const lists = servers.sentinels.map(sentinel => servers.direct(sentinel).client('LIST'))
    return (await Promise.all(lists))
      .join('')
      .split('\n')
      .filter(line => line.includes('sub=1')).length
  }
  const before = await connections()
  for (const away of [false, true]) {
    const locks = new LockClient(servers.options)
    await locks.lock(freshKey())
    await eventually(async () => (await connections()) === before + servers.sentinels.length)
    if (away) {
      const down = new Promise(resolve => locks.once('disconnected', resolve))
      await master.kill()
      await down
    }
    await locks.close()
    await eventually(async () => (await connections()) === before)
  }
})

// This test fails if `(isDemoted(error) && !('nodes' in this.redis))` becomes `false` in
// src/redis/connection.ts: the calls are rejected.
test('I6: a sentinel names a replica: calls wait until it names the master; after outageTimeout they reject with READONLY as the cause', async () => {
  const at = await scene()
  const { servers, master } = at
  const { options, putRight } = await mistaken(at)
  const [locks, hasty] = [client({}, options), client({ outageTimeout: 1_000 }, options)]
  const key = freshKey()
  const asked = locks.lock(key)
  asked.catch(() => {})
  const error = await within(2_500, rejection(hasty.lock(freshKey()), LockConnectionError))
  expect(error.message).toMatch(/READONLY/)
  await putRight()
  const lease = await within(3_000, asked)
  expect(await servers.direct(master).exists(`lock:{${key}}`)).toBe(1)
  expect(await lease.release()).toBe(true)
})

// This test fails if `if (name !== this.#name) return` is removed in src/redis/sentinels.ts: the client reacts to the
// messages about other masters.
test('messages about other masters do not make a client leave', async () => {
  // Any server that relays published messages can stand in for a sentinel.
  const { port, url } = await ownServer()
  let switches = 0
  const count = () => {
    switches += 1
  }
  const { sentinels: clients } = clientsOf({ sentinels: [{ host: '127.0.0.1', port }], name: 'mine' })
  const sentinels = new Sentinels(clients!, systemClock, 5_000, { onSwitched: count, onDeaf() {} })
  onTestFinished(() => sentinels.close())
  sentinels.open()
  const redis = plainRedis(url)
  const say = (text: string) => eventually(async () => (await redis.publish('+switch-master', text)) === 1)
  await say('others 127.0.0.1 1 127.0.0.1 2')
  await say('mine 127.0.0.1 1 127.0.0.1 2')
  await eventually(() => switches > 0)
  await sleep(50)
  expect(switches).toBe(1)
})

// This test fails if `listeners => this.#counted(listeners)` becomes `() => {}` in src/redis/one-server.ts: the client stays
// subscribed on the replica. It does not notice this, because the messages that it sends to itself on the master are
// replicated to the replica. But a release on the master finds no subscriber and passes over the client's waiters, so
// they wait until their next heartbeat.
test('I4: a client that listens to a replica while its commands go to the master notices this', async ({ key }) => {
  const [master, replica] = [await ownServer(), await ownServer()]
  const [redis, follower] = [plainRedis(master.url), plainRedis(replica.url)]
  const replication = await Replication.begin({ url: master.url, redis }, { url: replica.url, redis: follower })
  onTestFinished(() => replication.close())
  const proxy = await frameProxy(master.url)
  const [locks, other] = [client({ waiterTtl: 2_000 }, proxy.url), client({}, master.url)]
  const channels = async (server: Redis) => Number(/pubsub_channels:(\d+)/.exec(await server.info('stats'))?.[1])
  await locks.isLocked(freshKey())
  await eventually(async () => (await channels(redis)) === 2)
  proxy.switchTo(replica.url, 'messages')
  await eventually(async () => (await channels(follower)) === 1)
  proxy.switchTo(master.url, 'none')

  const held = await other.lock(key)
  const { lease: wait } = await park(locks, key, { fair: true })
  await eventually(async () => (await channels(follower)) === 0)
  await eventually(async () => (await channels(redis)) === 2)
  expect(await held.release()).toBe(true)
  expect((await within(2_000, wait)).via).toBe('handoff')
})

/** Tests clients that are made from an ioredis instance. A client must leave the instance of its caller unchanged. */

import { Socket } from 'node:net'
import type { Cluster, Redis } from 'ioredis'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { promptly } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { ownPlace, place } from '../kit/place.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'
import type { Source } from '../kit/topologies/source.ts'

/** Returns all settings and state of an instance that a client could change. */
function portrait(redis: Redis | Cluster) {
  const names = (of: object) => Reflect.ownKeys(of).map(String).sort()
  const emitter = redis as unknown as {
    eventNames(): (string | symbol)[]
    listenerCount(name: string | symbol): number
  }
  return {
    own: names(redis),
    prototype: names(Object.getPrototypeOf(redis)),
    listeners: emitter.eventNames().map(name => [String(name), emitter.listenerCount(name)]),
    options: { ...redis.options },
    status: redis.status,
    mode: (redis as Redis).mode,
    scripts: Object.keys((redis as unknown as { scriptsSet: object }).scriptsSet),
  }
}

const pings = (all: readonly (Redis | Cluster)[]) => Promise.all(all.map(redis => redis.ping()))

/** Uses every part of a client once. */
async function exercise(source: Source): Promise<void> {
  const [one, two] = [client({}, source), client({}, source)]
  const key = freshKey()
  const lease = await one.lock(key)
  const queued = await park(two, key, { fair: true })
  const parked = await park(two, key)
  await lease.release()
  await (await queued.lease).release()
  await (await parked.lease).renew()
  await one.inspect(key)
  for await (const _ of one.list(key));
  await one.forceRelease(key)
  await one.close()
  await two.close()
}

test('each connection that stays open is kept alive, after a minute at most', async () => {
  const { all, source } = place().instances()
  await pings(all)
  const kept = vi.spyOn(Socket.prototype, 'setKeepAlive')
  onTestFinished(() => kept.mockRestore())
  await client({}, source).lock(freshKey())
  const { calls, contexts } = kept.mock
  const open = () => calls.filter((_, i) => !(contexts[i] as Socket).destroyed).map(([, delay = 0]) => delay)
  // A connection on which ioredis asks a sentinel for the master is closed at once.
  await eventually(() => open().length >= 2 && open().every(delay => delay > 0 && delay <= 60_000))
})

describe('a client is made from', () => {
  test('an instance that is connected', async () => {
    const { all, source } = place().instances()
    await pings(all)
    expect((await client({}, source).lock(freshKey())).held).toBe(true)
  })

  test('an instance that connects on demand', async () => {
    const { all, source } = place().instances({ lazyConnect: true })
    expect((await promptly(client({}, source).lock(freshKey()))).held).toBe(true)
    for (const redis of all) {
      expect(redis.status).toBe('wait')
      expect(await redis.ping()).toBe('PONG')
    }
  })

  test('an instance that was closed', async () => {
    const { all, source } = place().instances()
    await pings(all)
    for (const redis of all) redis.disconnect()
    const locks = client({}, source)
    expect((await promptly(locks.lock(freshKey()))).held).toBe(true)
  })

  test('an instance that is subscribed, and stays subscribed', async () => {
    const { all, source } = place().instances()
    const channel = freshKey('channel')
    const messages: string[] = []
    for (const redis of all) {
      redis.on('message', (_, message) => messages.push(message))
      await redis.subscribe(channel)
    }
    await exercise(source)
    await place()
      .admin()
      .everywhere(redis => redis.publish(channel, 'still here'))
    await expect.poll(() => messages).toEqual(all.map(() => 'still here'))
  })

  test('an instance with settings that a lock cannot use', async ({ key }) => {
    const { source } = place().instances({
      commandTimeout: 1_000,
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      stringNumbers: true,
    })
    const locks = client({}, source)
    const lease = await locks.lock(key)
    expect(lease.fencingToken).toBeTypeOf('number')
    expect((await locks.inspect(key)).holds).toBe(1)
  })
})

describe('an instance passed in stays the caller’s', () => {
  test.each([
    ['connected', {}],
    ['lazy', { lazyConnect: true }],
    ['with a key prefix', { keyPrefix: 'own:' }],
  ])('%s: it has the same listeners, methods, options and status after use and close', async (_, options) => {
    const { all, source } = place().instances(options)
    if (!('lazyConnect' in options)) await pings(all)
    const before = all.map(portrait)
    await exercise(source)
    expect(all.map(portrait)).toEqual(before)
    expect(await pings(all)).toEqual(all.map(() => 'PONG'))
  })

  test('the client does not use it at all: no command, no subscription', async ({ own }) => {
    const { all, source } = own.instances({ connectionName: 'the-callers' })
    await pings(all)
    const nodes = all.flatMap(redis => ('nodes' in redis ? redis.nodes('all') : [redis]))
    for (const node of nodes) await node.client('ID')
    await exercise(source)
    const lines = (await own.admin().connections()).filter(line => line.includes(' name=the-callers '))
    expect(lines.length).toBeGreaterThanOrEqual(all.length)
    for (const line of lines) {
      expect(line).toMatch(/ sub=0 psub=0 /)
      // In a cluster, the caller's instance regularly sends CLUSTER commands to learn which node serves which slots.
      expect(line).toMatch(own.isCluster ? / cmd=(client|cluster)/ : / cmd=client/)
    }
  })

  test('I7: after close nothing of the client is left on the server but the token clocks of its locks', async () => {
    const own = await ownPlace()
    const admin = own.admin()
    const key = freshKey()
    const ids = async () => (await admin.connections()).map(line => line.split(' ', 1)[0])
    const before = await ids()
    const [one, two] = [client({}, own.source()), client({}, own.source())]
    await one.lock(key)
    await park(two, key, { fair: true })
    expect((await ids()).length).toBeGreaterThanOrEqual(before.length + 4 * own.parts)
    await Promise.all([one.close(), two.close()])
    await expect.poll(() => admin.channels()).toEqual([])
    await expect.poll(ids).toEqual(before)
    // The deadline that a heartbeat has recorded may live for two `waiterTtl` longer.
    const lock = `lock:{${key}}`
    await expect.poll(() => admin.keysWith(''), { timeout: 25_000 }).toEqual([lock])
    for (const ttl of await admin.everywhere(redis => redis.pttl(lock))) expect(ttl).toBeGreaterThan(0)
  })
})

describe('keyPrefix of the client’s instance', () => {
  test('applies to keys and channels alike', async ({ own, key }) => {
    const admin = own.admin()
    const { source } = own.instances({ keyPrefix: 'x:' })
    const [one, two, three] = [1, 2, 3].map(() => client({}, source))
    await one!.lock(key)
    await park(two!, key)
    await park(three!, key, { fair: true })
    for (const name of await admin.keysWith('')) expect(name).toMatch(/^x:lock:/)
    const channels = await admin.channels()
    expect(channels.length).toBeGreaterThanOrEqual(2)
    for (const channel of channels) expect(channel).toMatch(/^x:/)
  })

  test('I1: clients with and without it do not exclude each other, and do not see each other', async ({ key }) => {
    const { source } = place().instances({ keyPrefix: 'x:' })
    const [prefixed, same] = [client({}, source), client({}, source)]
    const plain = client()
    const lease = await prefixed.lock(key)
    const other = await plain.tryLock(key)
    expect(other?.held).toBe(true)
    expect(await same.tryLock(key)).toBeNull()
    const [waitsForPrefixed, waitsForPlain] = [await park(same, key), await park(client(), key)]
    await other?.release()
    expect((await waitsForPlain.lease).via).toBe('wakeup')
    await lease.release()
    expect((await waitsForPrefixed.lease).via).toBe('wakeup')
  })
})

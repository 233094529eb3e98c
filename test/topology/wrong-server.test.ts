/**
 * Tests clients whose address leads to a server that can serve no locks, or only some locks, or not in this database.
 * Such a client notices the mistake when it connects, and its error names the remedy.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { LockClient, LockConnectionError } from '../../src/index.ts'
import { everyCall, heard, promptly, rejection } from '../kit/outcomes.ts'
import { refusingProxy } from '../kit/proxies.ts'
import { client, freshKey, ownServer, plainRedis } from '../kit/redis.ts'
import { eventually } from '../kit/time.ts'
import { RedisCluster } from '../kit/topologies/redis-cluster.ts'
import { RedisSentinel } from '../kit/topologies/redis-sentinel.ts'
import type { Source } from '../kit/topologies/source.ts'

let cluster: RedisCluster
let sentinels: RedisSentinel

beforeAll(async () => {
  const started = await Promise.all([RedisCluster.start(), RedisSentinel.start([], 10_000)])
  cluster = started[0]
  sentinels = started[1]
})

afterAll(async () => {
  await Promise.all([cluster?.stop(), sentinels?.stop()])
})

/**
 * Expects that every call is rejected with these words, even a call that could wait. Then makes all calls again, and
 * expects the same.
 */
async function refusesAll(locks: LockClient, words: RegExp): Promise<void> {
  for (let round = 0; round < 2; round++) {
    const key = freshKey()
    const errors = await promptly(Promise.all(everyCall(locks, key).map(call => rejection(call, LockConnectionError))))
    for (const { message, key: about } of errors) expect([about, message]).toEqual([key, expect.stringMatching(words)])
  }
}

const ofCluster = /^lock "[^"]+": 127\.0\.0\.1:\d+ is a node of a cluster; pass an ioredis Cluster$/
const isSentinel =
  /^lock "[^"]+": 127\.0\.0\.1:\d+ is a sentinel, which stores no locks; pass \{ sentinels: .*, name: .* \}$/

describe('a URL that leads to', () => {
  test('a node of a cluster, master or replica', async () => {
    for (const { server } of [cluster.nodes[0]!, cluster.nodes[5]!]) {
      const locks = client({}, server.url)
      const down = heard(locks, 'disconnected')
      await refusesAll(locks, ofCluster)
      expect(down.length).toBe(1)
    }
  })

  test('a sentinel', async () => {
    await refusesAll(client({}, sentinels.sentinels[0]!.url), isSentinel)
  })

  test('a database that does not exist, or that the user may not select', async () => {
    const rights = ['allkeys', 'allchannels', '+@all', '-select']
    const { url } = await ownServer('--databases', '2', '--user', 'guest', 'on', '>pw', ...rights)
    const { sentinels: known = [], name } = sentinels.options
    const range = 'ERR DB index is out of range'
    const sources: [Source, string][] = [
      [`${url}/5`, `5: ${range}`],
      [{ sentinels: known, name, db: 99 }, `99: ${range}`],
      [url.replace('//', '//guest:pw@').concat('/1'), '1: NOPERM'],
    ]
    for (const [source, words] of sources)
      await refusesAll(client({}, source), new RegExp(`^lock "[^"]+": Redis refused database ${words}`))
    const redis = plainRedis(url)
    expect(await redis.dbsize()).toBe(0)
    await redis.acl('SETUSER', 'guest', '+select')
    expect((await client({}, sources[2]![0]).lock(freshKey())).held).toBe(true)
  })

  test('a server that does not know HELLO is recognised when it refuses', async () => {
    const [plain, node] = [await ownServer(), cluster.nodes[0]!.server]
    const proxies = await Promise.all([plain, node].map(({ url }) => refusingProxy(url)))
    for (const proxy of proxies) {
      proxy.answer(command => (command === 'hello' ? "-ERR unknown command 'HELLO'\r\n" : undefined))
    }
    expect((await client({}, proxies[0]!.url).lock(freshKey())).held).toBe(true)
    const locks = client({}, proxies[1]!.url)
    const calls = Array.from({ length: 20 }, () => locks.lock(freshKey()).catch(error => error.message))
    const outcomes = await promptly(Promise.all(calls))
    expect(outcomes.filter(outcome => ofCluster.test(String(outcome))).length).toBeGreaterThan(0)
  })

  test('another server after a while: calls are served once it is a suitable server, and refused if not', async () => {
    const [plain, node] = [await ownServer(), cluster.nodes[0]!.server]
    const proxy = await refusingProxy(node.url)
    const locks = client({}, proxy.url)
    await rejection(locks.lock(freshKey()), LockConnectionError)
    proxy.switchTo(plain.url)
    const lease = await eventually(() => locks.tryLock(freshKey()).catch(() => undefined))
    expect(lease?.held).toBe(true)
    const pending = (await locks.lock('held')) && rejection(locks.lock('held'), LockConnectionError)
    proxy.switchTo(node.url)
    expect((await promptly(pending)).message).toMatch(ofCluster)
  })
})

describe('sentinels', () => {
  test('that know no master of that name', async () => {
    const locks = client({}, { ...sentinels.options, name: 'loks' })
    await refusesAll(locks, /^lock "[^"]+": the sentinels know no master named "loks"; check this name$/)
  })

  test('if one is away and the others know no master of that name: calls wait, and the error reports this', async () => {
    const { sentinels: known = [] } = sentinels.options
    const nobody = { host: '127.0.0.1', port: 1 }
    const locks = new LockClient({ sentinels: [nobody, ...known], name: 'loks' }, { outageTimeout: 800 })
    onTestFinished(() => locks.close())
    const error = await rejection(locks.lock(freshKey()), LockConnectionError)
    expect(error.message).toMatch(/no master named "loks"/)
  })
})

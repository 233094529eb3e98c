/**
 * Tests that nothing the client reports contains the arguments of a command. These are passwords, and the texts of
 * scripts. ioredis attaches the command to its errors, and some servers repeat the arguments in their error replies.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type AddressInfo, createServer } from 'node:net'
import { inspect } from 'node:util'
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CONNECT_WITHIN, reachServer } from '../../cli/reach.ts'
import { type LockClient, LockError } from '../../src/index.ts'
import { FaultProxy } from '../kit/fault-proxy.ts'
import { everyCall, outcomeOf } from '../kit/outcomes.ts'
import { client, freshKey, ownServer, plainRedis } from '../kit/redis.ts'
import { RedisSentinel } from '../kit/topologies/redis-sentinel.ts'

const password = 'correct-horse-battery'
const username = 'stapler'
/** Texts that nothing may contain: the credentials, and parts of scripts. */
const secrets = [password, username, 'redis.call', 'redis.pcall', 'local ']

/** Returns the paths of all properties with a secret, enumerable or not, own or inherited, of a value and its parts. */
function findIn(value: unknown, path: string, seen = new Set<unknown>()): string[] {
  if (typeof value === 'string') return secrets.some(secret => value.includes(secret)) ? [`${path}: ${value}`] : []
  if (Buffer.isBuffer(value)) return findIn(value.toString(), path)
  if (typeof value !== 'object' || value === null || seen.has(value)) return []
  seen.add(value)
  const owners: object[] = []
  for (let at = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) owners.push(at)
  const names = new Set(owners.flatMap(owner => Reflect.ownKeys(owner)))
  if (names.has('command')) return [`${path}.command`]
  const inside = [...names].flatMap(name => findIn(Reflect.get(value, name), `${path}.${String(name)}`, seen))
  const text = value instanceof Error ? String(value) : ''
  const shown = [text, inspect(value, { depth: null, showHidden: true }), JSON.stringify(value)]
  return [...inside, ...shown.flatMap((text, i) => findIn(text, `${path} as text ${i}`))]
}

/** Makes every call, and expects that at least one fails, and that no error, event or message has a secret. */
async function keepsSecrets(locks: LockClient, during?: () => unknown): Promise<void> {
  const told: unknown[] = []
  const listen = (event: unknown) => void told.push(event)
  for (const name of ['disconnected', 'error', 'lost'] as const) {
    locks.on(name, listen as never)
    subscribe(`redis-baton:${name}`, listen)
    onTestFinished(() => void unsubscribe(`redis-baton:${name}`, listen))
  }
  const calls: Promise<unknown>[] = [
    ...everyCall(locks, freshKey()),
    locks.semaphore(freshKey(), 2).lock(),
    locks.readWrite(freshKey()).write.lock(),
    locks.all([freshKey(), freshKey()]).tryLock(),
    locks.list('*').next(),
  ]
  const outcomes = calls.map(outcomeOf)
  await during?.()
  const errors = (await Promise.all(outcomes)).flatMap(({ error }) => error ?? [])
  expect(errors.length + told.length).toBeGreaterThan(0)
  for (const error of errors) expect(error).toBeInstanceOf(LockError)
  expect([...errors, ...told].flatMap((each, i) => findIn(each, `${i}`))).toEqual([])
}

const without = (...names: string[]) => names.flatMap(name => ['--rename-command', name, ''])
const options = { outageTimeout: 1_000 }

describe.each([
  ['6', Redis, Cluster],
  ['5', Redis5 as unknown as typeof Redis, Cluster5 as unknown as typeof Cluster],
] as const)('with ioredis %s, nothing reports the arguments of a command', (_, Client, ManyNodes) => {
  function locksAt(port: number, more: object = {}): LockClient {
    const redis = new Client({ host: '127.0.0.1', port, lazyConnect: true, username, password, ...more })
    return client(options, redis)
  }

  test.each([
    ['which refuses the password', {}, ['--requirepass', 'another']],
    ['which refuses the password, in RESP2', { protocol: 2 }, ['--requirepass', 'another']],
    ['without AUTH', { protocol: 2 }, without('AUTH')],
    ['without AUTH, in RESP2 and in database 1', { protocol: 2, db: 1 }, without('AUTH')],
    ['without AUTH, in database 1', { db: 1 }, without('AUTH', 'HELLO')],
    ['without the database', { username: '', password: '', db: 5 }, ['--databases', '2']],
    ['without SELECT', { username: '', password: '', db: 5 }, without('SELECT')],
    ['without HELLO', {}, without('HELLO')],
    ['without HELLO and AUTH', {}, without('HELLO', 'AUTH')],
    ['without EVALSHA', { username: '', password: '' }, without('EVALSHA')],
    ['without EVAL', { username: '', password: '' }, without('EVAL')],
    ['without TIME', { username: '', password: '' }, without('TIME')],
    ['without PUBLISH and SUBSCRIBE', { username: '', password: '' }, without('PUBLISH', 'SUBSCRIBE')],
    ['without memory', { username: '', password: '' }, ['--maxmemory', '1']],
  ])('by a server %s', async (_, more, args) => {
    await keepsSecrets(locksAt((await ownServer(...args)).port, more))
  })

  test('by a server that denies rights', async () => {
    const server = await ownServer()
    await plainRedis(server.url).acl('SETUSER', username, 'on', `>${password}`, '~*', '&*', '+@all', '-evalsha')
    await keepsSecrets(locksAt(server.port))
  })

  test('by a server whose connections are lost before they answer', async () => {
    const server = await ownServer()
    await plainRedis(server.url).acl('SETUSER', username, 'on', `>${password}`, 'allkeys', 'allchannels', '+@all')
    const proxy = await FaultProxy.open(server.url)
    onTestFinished(() => proxy.close())
    const locks = locksAt(Number(new URL(proxy.url).port))
    await locks.isLocked(freshKey())
    proxy.swallow('down')
    await keepsSecrets(locks, () => proxy.cut())
  })

  test('by a server that does not speak the protocol, and repeats what it was sent', async () => {
    const server = createServer(socket => {
      socket.on('error', () => {}).on('data', data => socket.write(`HTTP/1.1 400 Bad Request\r\n\r\n${data}`))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    await keepsSecrets(locksAt((server.address() as AddressInfo).port))
  })

  test('by a cluster, and by sentinels', async () => {
    const servers = [
      await ownServer('--cluster-enabled', 'yes', '--requirepass', 'another'),
      await ownServer('--cluster-enabled', 'yes', ...without('AUTH', 'HELLO', 'EVALSHA')),
    ]
    for (const { port } of servers) {
      const cluster = new ManyNodes([{ host: '127.0.0.1', port }], {
        lazyConnect: true,
        redisOptions: { username, password },
      })
      await keepsSecrets(client(options, cluster))
    }
    const sentinel = await RedisSentinel.start()
    onTestFinished(() => sentinel.stop())
    const forSentinels = { sentinelUsername: username, sentinelPassword: password }
    for (const more of [forSentinels, {}]) await keepsSecrets(locksAt(0, { ...sentinel.options, ...more }))
    const { port } = await ownServer(...without('AUTH', 'HELLO'))
    await keepsSecrets(locksAt(0, { ...forSentinels, name: 'locks', sentinels: [{ host: '127.0.0.1', port }] }))
  })
})

test.each([
  ['AUTH', without('AUTH', 'HELLO')],
  ['the right password', ['--requirepass', 'another']],
])(
  '`baton` does not print the password if the server lacks %s',
  async (_, args) => {
    const { port } = await ownServer(...args)
    const url = `redis://${username}:${password}@127.0.0.1:${port}`
    const place = `127.0.0.1:${port}`
    const address = { kind: 'server', url, tls: false, hasSecrets: true, place, shown: place } as const
    const { error } = await outcomeOf(reachServer(address))
    expect(error?.message).toMatch(/cannot be used/)
    expect(findIn(error, 'error')).toEqual([])
  },
  CONNECT_WITHIN * 3,
)

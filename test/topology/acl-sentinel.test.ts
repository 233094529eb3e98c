/**
 * Tests the rights that users need where sentinels are used. A client needs rights on the sentinels. Sentinels and
 * replicas need rights on the servers that hold data.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { LockClient, LockConnectionError } from '../../src/index.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { freshKey } from '../kit/redis.ts'
import { aclRule, sentinelRule } from '../kit/rights.ts'
import { eventually } from '../kit/time.ts'
import { masterName, RedisSentinel } from '../kit/topologies/redis-sentinel.ts'
import { linesOf } from './operations.ts'

// The time limit of a whole test is long. Each step that waits for the servers has its own, shorter limit, and reports
// what did not happen.
vi.setConfig({ testTimeout: 60_000 })

let servers: RedisSentinel

beforeAll(async () => {
  servers = await RedisSentinel.start()
})

afterAll(() => servers?.stop())

const everywhere = () => [...servers.data, ...servers.sentinels].map(server => servers.direct(server))

/**
 * Makes a client that logs in to all servers as a user with limited rights, and collects the errors that it emits as
 * events.
 */
async function scene(name: string, rules: readonly string[]) {
  for (const server of servers.sentinels) await servers.direct(server).acl('SETUSER', name, 'on', '>pw', ...rules)
  for (const server of servers.data) await servers.direct(server).acl('SETUSER', name, 'on', '>pw', ...aclRule([mutex]))
  const own = { username: name, password: 'pw' }
  const theirs = { sentinelUsername: name, sentinelPassword: 'pw' }
  const locks = new LockClient({ ...servers.options, ...own, ...theirs }, { outageTimeout: 1_000 })
  const warnings: Error[] = []
  locks.on('error', ({ error }) => warnings.push(error as Error))
  return { locks, warnings, [Symbol.asyncDispose]: () => locks.close() }
}

/**
 * The client must follow the failover at once. This shows that it receives the message by which the sentinels announce
 * the new master. Without this message, the client would follow only when its old master disconnects it.
 */
test('limited users of all kinds, as in docs/operations.md: locks work, and the client follows a failover', async () => {
  const [, , watcher, follower] = linesOf('sentinel')
  for (const server of servers.data) {
    for (const line of [watcher!, follower!]) await servers.direct(server).call('ACL', ...line.split(' ').slice(1))
    await servers.direct(server).config('SET', 'masteruser', 'replica', 'masterauth', 'password')
  }
  // Disconnect the replicas only now, when they have their passwords. A replica that gets its password in the middle of
  // its handshake waits a minute for the reply to a command that it has not sent: AUTH.
  for (const server of servers.data) await servers.direct(server).client('KILL', 'TYPE', 'REPLICA')
  for (const server of servers.sentinels) {
    const set = (...words: string[]) => servers.direct(server).call('SENTINEL', 'SET', masterName, ...words)
    await set('auth-user', 'sentinel')
    await set('auth-pass', 'password')
  }
  await servers.settled()
  for (const redis of everywhere()) await redis.acl('LOG', 'RESET')
  await using at = await scene('minimal', sentinelRule())
  const held = await at.locks.lock(freshKey())
  await servers.inSync()
  const next = await servers.failover()
  await servers.settled()
  await held.renew()
  expect(await held.release()).toBe(true)
  expect(String(await servers.direct(next).client('LIST', 'TYPE', 'REPLICA'))).toMatch(/user=replica/)
  expect(String(await servers.direct(next).client('LIST'))).toMatch(/name=sentinel-.* user=sentinel/)
  expect(at.warnings).toEqual([])
  for (const redis of everywhere()) {
    const denied = (await redis.acl('LOG')) as unknown[][]
    const objects = denied.map(entry => String(entry[entry.indexOf('object') + 1]))
    expect(objects.filter(name => name !== 'client|setinfo')).toEqual([])
  }
})

test.each(['+sentinel|get-master-addr-by-name', '+sentinel|sentinels'])(
  'without %s no call is served, and each error gives the reason',
  async right => {
    const rules = sentinelRule().map(rule => (rule === right ? right.replace('+', '-') : rule))
    await using at = await scene(`without-${right.replace(/\W/g, '')}`, rules)
    const error = await at.locks.lock(freshKey()).catch(error => error)
    expect(error).toBeInstanceOf(LockConnectionError)
    expect(error.message).toMatch(/NOPERM/)
    expect(error.message).toContain(right.slice(1))
  },
)

// This test fails if `this.#listener.onDeaf(cause)` is removed in src/redis/sentinels.ts.
test.each([
  ['+subscribe', '-subscribe', /NOPERM .*'subscribe'/],
  ['&+switch-master', '&others', /NOPERM .*channel/],
])(
  'without %s the client is served, and reports once that it does not learn of failovers',
  async (right, instead, words) => {
    const rules = sentinelRule().map(rule => (rule === right ? instead : rule))
    await using at = await scene(`without-${right.replace(/\W/g, '')}`, rules)
    expect(await (await at.locks.lock(freshKey())).release()).toBe(true)
    await eventually(() => at.warnings.length > 0)
    expect(at.warnings).toHaveLength(1)
    expect(at.warnings[0]).toBeInstanceOf(LockConnectionError)
    expect(at.warnings[0]?.message).toMatch(words)
  },
)

test('the passwords for servers and sentinels are changed, and the client learns of the new ones from its options', async () => {
  const name = 'rotating'
  for (const redis of everywhere()) await redis.acl('SETUSER', name, 'on', '>first', '~*', '&*', '+@all')
  const logins = (password: string) => ({ password, sentinelPassword: password })
  const given = { ...servers.options, username: name, sentinelUsername: name, ...logins('first') }
  await using locks = new LockClient(given, { outageTimeout: 10_000 })
  const held = await locks.lock(freshKey())
  for (const redis of everywhere()) {
    await redis.acl('SETUSER', name, 'resetpass', '>second')
    await redis.call('CLIENT', 'KILL', 'USER', name)
  }
  const call = locks.lock(freshKey())
  const denied = () => Promise.all(everywhere().map(redis => redis.acl('LOG')))
  await eventually(async () => (await denied()).join().includes(name))
  Object.assign(given, logins('second'))
  expect((await call).held).toBe(true)
  expect(await held.release()).toBe(true)
  // The client listens to all sentinels again.
  for (const server of servers.sentinels) {
    await eventually(async () =>
      /user=rotating/.test(String(await servers.direct(server).client('LIST', 'TYPE', 'PUBSUB'))),
    )
  }
})

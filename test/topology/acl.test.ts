/**
 * Tests on one server that a client's user needs exactly the rights in docs/operations.md: with all of these rights
 * everything works, and if one of these rights is missing, something fails.
 */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findServerSource, type RunningServer } from '../../local-redis/index.ts'
import { type ClientOptions, LockClient, LockConnectionError } from '../../src/index.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { outcomeOf } from '../kit/outcomes.ts'
import { refusingProxy } from '../kit/proxies.ts'
import { client, ownServer } from '../kit/redis.ts'
import { errorReply } from '../kit/refusing-proxy.ts'
import { aclRule, sentinelRule } from '../kit/rights.ts'
import { eventually, sleep } from '../kit/time.ts'
import { limitedOptions, otherOptions, work } from './acl-work.ts'
import { linesOf } from './operations.ts'

let server: RunningServer
/** A server into which no other client has loaded the scripts. */
let quiet: RunningServer

beforeAll(async () => {
  const source = await findServerSource()
  ;[server, quiet] = await Promise.all([source.start(), source.start()])
})

afterAll(() => Promise.all([server?.stop(), quiet?.stop()]))

interface Scene extends AsyncDisposable {
  readonly admin: Redis
  readonly limited: LockClient
  readonly other: LockClient
  /** The errors that `limited` emits as events. */
  readonly warnings: Error[]
}

/**
 * Creates a user with these rights, and a client that logs in as this user. Several tests use the server at the same
 * time, so each test gives a different `name`.
 */
async function scene(
  name: string,
  rules: readonly string[],
  at = server,
  options: ClientOptions = {},
  db = 0,
): Promise<Scene> {
  const admin = new Redis(at.url)
  await admin.acl('SETUSER', name, 'on', '>pw', ...rules)
  const way = { host: '127.0.0.1', port: at.port, username: name, password: 'pw', db }
  const limited = new LockClient(way, { ...limitedOptions, ...options })
  const other = new LockClient(`${at.url}/${db}`, otherOptions)
  const warnings: Error[] = []
  limited.on('error', ({ error }) => warnings.push(error as Error))
  return {
    admin,
    limited,
    other,
    warnings,
    async [Symbol.asyncDispose]() {
      await Promise.all([limited.close(), other.close()])
      admin.disconnect()
    },
  }
}

const rights = aclRule([mutex]).filter(rule => /^[+~&]/.test(rule))

/**
 * Returns the rules without one right. A pattern of keys or channels is not removed, but replaced by another pattern.
 */
function without(right: string): string[] {
  return aclRule([mutex]).map(rule =>
    rule !== right ? rule : right.startsWith('+') ? right.replace('+', '-') : `${right[0]}others:*`,
  )
}

test.each([
  [0, []],
  [1, ['+select']],
])(
  'a user with these rights can do everything in database %i; the client asks for no other, and reports no error',
  async (db, more) => {
    const name = `minimal-${db}`
    await using at = await scene(name, [...aclRule([mutex]), ...more], quiet, {}, db)
    expect(await work(at.limited, at.other, [at.admin], name)).toEqual([])
    expect(at.warnings).toEqual([])
    expect(await at.admin.acl('LOG')).toEqual([])
  },
)

test('docs/operations.md lists these rights', () => {
  const user = 'ACL SETUSER locks on >password'
  const alone = `${user} ${aclRule([mutex]).join(' ')}`
  expect(linesOf('one server')).toEqual([alone])
  expect(linesOf('sentinel').slice(0, 2)).toEqual([alone, `${user} ${sentinelRule().join(' ')}`])
  expect(linesOf('cluster')).toEqual([`${user} ${aclRule([mutex], { cluster: true }).join(' ')}`])
})

describe('without one of its rights', () => {
  // This test fails if any of the commands in test/kit/rights.ts is removed.
  test.concurrent.each(rights)('%s: something fails', async right => {
    const name = `without-${rights.indexOf(right)}`
    await using at = await scene(name, without(right), right === '+eval' ? quiet : server)
    if (right === '+eval') await at.admin.script('FLUSH')
    expect(await work(at.limited, at.other, [at.admin], name)).not.toEqual([])
  })

  // This test fails if `return right || !server ? lackingRight(right, error.cause) : this.#denied(error, server)` becomes
  // `return lackingRight(right, error.cause)` in src/redis/scripts.ts: the error does not name the right to HSET, which
  // the server does not name either.
  test.each(['+evalsha', '+hset', '+time'])(
    '%s: the first call rejects with one line that names this right',
    async right => {
      await using at = await scene(`call-without-${right.slice(1)}`, without(right))
      const { message } = (await outcomeOf(at.limited.lock('call', { owner: 'owner', label: 'label' }))).error as Error
      expect(message).toMatch(new RegExp(`^lock "call": the Redis user lacks the right \\${right}: [^\n+]*$`))
      expect(message.length).toBeLessThanOrEqual(300)
    },
  )

  const brief = { lease: 1_500, waiterTtl: 300 }
  /** Calls that are granted, or answered, to a user with all rights. One of them fails if any right of `one` is missing. */
  const calls: Record<string, (locks: LockClient, key: string) => Promise<unknown>> = {
    lock: (locks, key) => locks.lock(key).then(lease => lease.release()),
    'fair lock': (locks, key) => locks.lock(key, { fair: true }).then(lease => lease.release()),
    tryLock: (locks, key) => locks.tryLock(key).then(lease => lease?.release()),
    'tryLock with a timeout': (locks, key) => locks.tryLock(key, { timeout: 5_000 }).then(lease => lease?.release()),
    'lock of an owner': (locks, key) => locks.lock(key, { owner: 'owner' }).then(lease => lease.release()),
    'lock of a semaphore': (locks, key) => locks.semaphore(key, 2).using(() => {}),
    'lock of a reader': (locks, key) => locks.readWrite(key).read.using(() => {}),
    all: (locks, key) => locks.all([key, `${key} too`]).using(() => {}),
    taken: (locks, key) => locks.lock(key, { fair: true }).then(lease => lease.release()),
    inspect: (locks, key) => locks.inspect(key),
  }
  const one = ['~lock:*', '&lock:*', '+evalsha', '+hmget', '+hset', '+subscribe', '+time', '+zadd', '+zrank']

  // This test fails if `if (error instanceof LockConnectionError) waiter.told = 'failure'` is removed in src/key/key.ts:
  // the cleanup after a refused call is refused, too, and an event reports that.
  test.concurrent.each(one)('%s: a refused call has one report, its rejection', async right => {
    await using at = await scene('refused', without(right), await ownServer(), brief)
    const held = await at.other.lock('taken', { renew: true })
    const outcomes = Object.entries(calls).map(([name, call]) => outcomeOf(call(at.limited, name)))
    const waits = outcomes.splice(Object.keys(calls).indexOf('taken'), 1)
    await Promise.all(outcomes)
    // The client is connected by now. Without the right to messages, this call is refused before the lock is free.
    await Promise.race([...waits, sleep(1_000)])
    await held.release()
    outcomes.push(...waits)
    const errors = (await Promise.all(outcomes)).flatMap(({ error }) => error ?? [])
    expect(errors.length).toBeGreaterThan(0)
    for (const error of errors) expect(error).toBeInstanceOf(LockConnectionError)
    // By then, the last attempt to clean up has been made: after `lease`, `waiterTtl` and a pause of one second.
    await sleep(brief.lease + brief.waiterTtl + 1_900)
    expect(at.warnings.map(({ message }) => message)).toEqual([])
  })

  // This test fails if `if (waiter.told !== 'failure') this.#listener.failed(error)` is removed in
  // src/key/withdrawals.ts. It also fails if `waiter.told = 'failure'` is removed there: the waiter is taken back twice, and each failure is reported.
  test('a failure in the background, which no call reports, has one event', async () => {
    await using at = await scene('background', without('+zrem'), server, brief)
    const held = await at.other.lock('background')
    expect(await at.limited.tryLock('background', { fair: true, timeout: 100 })).toBeNull()
    await eventually(() => at.warnings.length > 0, 5_000)
    await sleep(1_500)
    expect(at.warnings.map(({ message }) => message)).toEqual([expect.stringMatching(/the right \+zrem: /)])
    await held.release()
  })
})

describe('a server without one of the commands', () => {
  // This test fails if `return this.#lacking(error, server)` is removed in src/redis/scripts.ts.
  test.each(['EVAL', 'EVALSHA', 'EXISTS', 'HMGET', 'HSET', 'PEXPIREAT', 'TIME'])(
    '%s: an error names it',
    async name => {
      const server = await ownServer('--rename-command', name, '')
      const { error } = await outcomeOf(client({}, server.url).tryLock('key'))
      expect(error?.message).toMatch(new RegExp(`lacks ${name}, which the locks need`))
    },
  )
})

// A proxy answers instead of such a server, because in the versions that are tested, Lua is not a module.
test('a Valkey without its module for Lua: each call rejects with one line that says so', async () => {
  const proxy = await refusingProxy((await ownServer()).url)
  const missing = errorReply("ERR Could not find scripting engine 'lua'")
  const others = /^(hello|ping|info|client|command|select|subscribe|acl)$/
  proxy.answer(command => (others.test(command) ? undefined : missing))
  const locks = client({}, proxy.url)
  for (let i = 0; i < 3; i++) {
    const { error } = await outcomeOf(locks.lock('key', { owner: 'owner', label: 'label' }))
    expect(error?.message).toMatch(/^lock "key": the server cannot run Lua; load its module for Lua scripts\b[^\n]*$/)
    expect(error?.message.length).toBeLessThanOrEqual(300)
    expect(error?.message).not.toMatch(/owner|label/)
  }
})

test('prefix and keyPrefix are literal in the patterns, also if they look like patterns', async () => {
  const [prefix, keyPrefix] = ['app[1]*', 'tenant?:']
  expect(aclRule([mutex], { prefix, keyPrefix })).toContain('~tenant\\?:app\\[1\\]\\*:*')
  await using at = await scene('prefixed', aclRule([mutex], { prefix }), server, { prefix })
  expect(await (await at.limited.lock('key')).release()).toBe(true)
  expect(at.warnings).toEqual([])
})

test('a key of another type is described to users that may read its type; others get Redis’s own error', async () => {
  for (const [name, more] of [
    ['asking', ['+type']],
    ['not-asking', []],
  ] as const) {
    await using at = await scene(name, [...aclRule([mutex]), ...more])
    await at.admin.set(`lock:{${name}}`, 'mine')
    const call = at.limited.lock(name)
    await expect(call).rejects.toThrow(/WRONGTYPE/)
    await expect(call).rejects.toThrow(more.length > 0 ? `"lock:{${name}}" is a string` : 'Redis refused: WRONGTYPE')
  }
})

test('a user with rights to some keys can use only these, and its errors name the missing right to others', async () => {
  const rules = aclRule([mutex]).map(rule => (rule.startsWith('~') ? '~lock:{mine*' : rule))
  await using at = await scene('confined', rules)
  expect(await (await at.limited.lock('mine')).release()).toBe(true)
  await expect(at.limited.lock('theirs')).rejects.toThrow(/: the Redis user lacks the right ~lock:\*: NOPERM [^+]*$/)
  expect(at.warnings).toEqual([])
})

// This test fails if `this.#listener.onUp?.()` is called before the loop in `#wentUp` of src/redis/connection.ts.
test('the client asks once whether locks may be evicted, after the calls that waited for the connection', async () => {
  const admin = new Redis(quiet.url)
  const monitor = await admin.monitor()
  const seen: string[] = []
  monitor.on('monitor', (_time, args: string[], source) => {
    if (/^eval/i.test(args[0] ?? '') && source !== 'lua')
      seen.push(/acl_check_cmd/.test(args[1] ?? '') ? 'look' : 'call')
  })
  {
    await using locks = new LockClient(quiet.url)
    const calls = [locks.lock('a'), locks.lock('b'), locks.isLocked('c')]
    await Promise.all(calls)
    await eventually(() => seen.includes('look'))
  }
  expect(seen.slice(0, 4)).toEqual(['call', 'call', 'call', 'look'])
  expect(seen.filter(what => what === 'look')).toHaveLength(1)
  monitor.disconnect()
  admin.disconnect()
})

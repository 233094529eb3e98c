/**
 * Tests on one server that a client's user needs exactly the rights in docs/operations.md: with all of these rights
 * everything works, and if one of these rights is missing, something fails.
 */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findServerSource, type RunningServer } from '../../local-redis/index.ts'
import { type ClientOptions, LockClient, LockConnectionError } from '../../src/index.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { aclRule, sentinelRule } from '../kit/rights.ts'
import { heard, outcomeOf } from '../kit/outcomes.ts'
import { refusingProxy } from '../kit/proxies.ts'
import { client, ownServer } from '../kit/redis.ts'
import { errorReply } from '../kit/refusing-proxy.ts'
import { eventually } from '../kit/time.ts'
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
  // This test fails if `this.#survey.look()` is removed in src/session.ts, or if any of the commands in
  // src/redis/rights.ts is removed.
  test.concurrent.each(rights)(
    '%s: something fails, and the client has reported the missing right at its start',
    async right => {
      const name = `without-${rights.indexOf(right)}`
      await using at = await scene(name, without(right), right === '+eval' ? quiet : server)
      if (right === '+eval') await at.admin.script('FLUSH')
      const optional = right === '+scan'
      if (!optional) {
        await eventually(() => at.warnings.length > 0)
        const [warning] = at.warnings
        expect(warning).toBeInstanceOf(LockConnectionError)
        expect(warning?.message.split(': ', 1)[0]).toBe(`the Redis user lacks the rights ${right}`)
      }
      const failed = await work(at.limited, at.other, [at.admin], name)
      expect(failed).not.toEqual([])
      // A client that never calls `list` does not need this right, so the client does not report it.
      if (optional) expect(failed.join()).toMatch(/NOPERM .*scan/)
    },
  )

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
      await eventually(() => at.warnings.length > 0)
      expect(at.warnings).toHaveLength(1)
    },
  )

  test('if several rights are missing, all of them are named', async () => {
    const rules = [...aclRule([mutex]), '-zadd', '-publish', '-time']
    await using at = await scene('several', rules)
    await eventually(() => at.warnings.length > 0)
    expect(at.warnings.map(({ message }) => message)).toEqual(['the Redis user lacks the rights +publish +time +zadd'])
  })
})

describe('a server without one of the commands', () => {
  const needed = rights.filter(right => right.startsWith('+')).map(right => right.slice(1).toUpperCase())

  // This test fails if `elseif not known and absent(words[1]) then` becomes `elseif false then` in
  // src/redis/rights.ts, or if `return this.#lacking(error, server)` is removed in src/redis/scripts.ts.
  test.each(needed.filter(name => name !== 'SCAN'))('%s: an error names it', async name => {
    const server = await ownServer('--rename-command', name, '')
    const locks = client({ waiterTtl: 900 }, server.url)
    const errors = heard(locks, 'error')
    const call = await outcomeOf(locks.tryLock('key'))
    const named = new RegExp(`lacks ${name}, which the locks need`)
    if (name === 'TIME') expect(call.error?.message).toMatch(named)
    if (name === 'EVAL')
      expect(call.error?.message).toMatch(/lacks EVAL, which the locks need.*unknown command 'eval'$/i)
    else {
      await eventually(() => errors.length > 0)
      await locks.isLocked('key').catch(() => {})
      expect(errors.map(({ error }) => (error as Error).message)).toEqual([expect.stringMatching(named)])
    }
  })
})

// A proxy answers instead of such a server, because in the versions that are tested, Lua is not a module.
test('a Valkey without its module for Lua: each call rejects with one line that says so, and one event at most is emitted', async () => {
  const proxy = await refusingProxy((await ownServer()).url)
  const missing = errorReply("ERR Could not find scripting engine 'lua'")
  const others = /^(hello|ping|info|client|command|select|subscribe|acl)$/
  proxy.answer(command => (others.test(command) ? undefined : missing))
  const locks = client({}, proxy.url)
  const errors = heard(locks, 'error')
  for (let i = 0; i < 3; i++) {
    const { error } = await outcomeOf(locks.lock('key', { owner: 'owner', label: 'label' }))
    expect(error?.message).toMatch(/^lock "key": the server cannot run Lua; load its module for Lua scripts\b[^\n]*$/)
    expect(error?.message.length).toBeLessThanOrEqual(300)
    expect(error?.message).not.toMatch(/owner|label/)
  }
  expect(errors.length).toBeLessThanOrEqual(1)
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
  await eventually(() => at.warnings.length > 0)
  expect(at.warnings.map(({ message }) => message)).toEqual(['the Redis user lacks the rights ~lock:*'])
})

// This test fails if `this.#listener.up()` is called before the loop in `wentUp` of src/redis/connection.ts.
test('the client checks its rights once, after the calls that waited for the connection', async () => {
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

/** Tests which arguments a client refuses with LockArgumentError, what the error says, and that nothing is sent. */
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { describe, expect } from 'vitest'
import { type ClientOptions, LockArgumentError, LockClient, type LockOptions } from '../../src/index.ts'
import { promptly, rejection } from '../kit/outcomes.ts'
import { place } from '../kit/place.ts'
import { client, freshKey, test } from '../kit/redis.ts'
import { sleep } from '../kit/time.ts'

const badKeys: [string, unknown][] = [
  ['an empty string', ''],
  ['1,025 bytes', 'k'.repeat(1025)],
  ['1,026 bytes in 513 letters', 'é'.repeat(513)],
  ['a lone high surrogate', 'a\ud800'],
  ['a lone low surrogate', '\udc00a'],
  ['undefined', undefined],
  ['null', null],
  ['a number', 5],
  ['an object', {}],
  ['an array', ['key']],
  ['a symbol', Symbol('key')],
  ['a buffer', Buffer.from('key')],
]

const notTimes = [-1, Number.NaN, Number.POSITIVE_INFINITY, '5', null, true, 5n]
const notTimesOrNever = notTimes.filter(value => value !== Number.POSITIVE_INFINITY)
const notFlags = ['true', 0, 1, null]
const notTexts = ['', 5, null, 'x'.repeat(1025), '\ud800']

const badLockOptions: Record<keyof LockOptions, unknown[]> = {
  timeout: notTimesOrNever,
  signal: [new AbortController(), {}, null, true],
  lease: [...notTimes, 0],
  renew: notFlags,
  maxHold: notTimes,
  fair: notFlags,
  fairAfter: notTimesOrNever,
  headStart: notTimes,
  owner: notTexts,
  label: [5, null, {}, 'x'.repeat(1025), 'é'.repeat(513), '\ud800'],
  maxWaiters: [-1, 1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY, '5', null],
  minHold: notTimes,
  rejectLate: notFlags,
}

const badClientOptions: Record<Exclude<keyof ClientOptions, 'replicas'>, unknown[]> = {
  prefix: [5, null, '\ud800'],
  lease: [...notTimes, 0],
  waiterTtl: [...notTimes, 0],
  tokenMemory: notTimes,
  fair: notFlags,
  fairAfter: notTimesOrNever,
  timeout: notTimesOrNever,
  outageTimeout: notTimes,
  label: [5, null, {}],
}

const cases = (options: Record<string, unknown[]>) =>
  Object.entries(options).flatMap(([name, values]) => values.map(value => [name, value] as [string, unknown]))

/** Expects that the error names the option, the value, and the accepted values. */
function expectTelling(error: LockArgumentError, option: string, value: unknown): void {
  expect(error).toMatchObject({ name: 'LockArgumentError', code: 'ERR_LOCK_ARGUMENT', option })
  expect(error.value).toBe(value)
  expect(error.message).toContain(option)
  expect(error.accepted).not.toBe('')
  expect(error.message).toContain(error.accepted)
  if (typeof value === 'number') expect(error.message).toContain(String(value))
}

/** Returns every call that takes a key, by the name of the call. */
function callsWith(locks: LockClient, key: string): Record<string, () => PromiseLike<unknown>> {
  return {
    lock: () => locks.lock(key),
    tryLock: () => locks.tryLock(key),
    using: () => locks.using(key, () => 'ran'),
    inspect: () => locks.inspect(key),
    isLocked: () => locks.isLocked(key),
    forceRelease: () => locks.forceRelease(key),
    wrap: () =>
      locks.wrap(
        () => key,
        async () => 'ran',
      )(),
  }
}

function thrown(fn: () => unknown): LockArgumentError {
  try {
    fn()
  } catch (error) {
    expect(error).toBeInstanceOf(LockArgumentError)
    return error as LockArgumentError
  }
  throw new Error('did not throw')
}

describe('a bad key', () => {
  test.each(badKeys)('%s is refused by every call, at once, with Redis out of reach', async (_, key) => {
    const locks = client({}, place().sourceToNobody())
    for (const [name, call] of Object.entries(callsWith(locks, key as string))) {
      const error = await promptly(rejection(call(), LockArgumentError))
      expect(error.option, name).toBe('key')
      expectTelling(error, 'key', key)
    }
  })

  test.each(badKeys)('%s is refused by wrap itself, before any call, if it is a fixed key', async (_, key) => {
    const locks = client({}, place().sourceToNobody())
    expectTelling(
      thrown(() => locks.wrap(key as string, async () => {})),
      'key',
      key,
    )
  })
})

test.each(['k', 'k'.repeat(1024), 'é'.repeat(512), '😀'.repeat(256)])(
  'I6: a key of up to 1,024 bytes is accepted',
  async start => {
    const locks = client({ prefix: freshKey('prefix') })
    const lease = await locks.lock(start)
    expect(lease.key).toBe(start)
    expect(await locks.inspect(start)).toMatchObject({ key: start, locked: true })
  },
)

describe('a bad option of a call', () => {
  test.each(cases(badLockOptions))(
    '%s: %s is refused by lock, tryLock, using and wrap, at once',
    async (name, value) => {
      const locks = client({}, place().sourceToNobody())
      const options = { [name]: value, ...(name === 'headStart' && { fair: true }) } as LockOptions
      const key = freshKey()
      const attempts = [locks.lock(key, options), locks.tryLock(key, options), locks.using(key, options, () => {})]
      for (const attempt of attempts) expectTelling(await promptly(rejection(attempt, LockArgumentError)), name, value)
      expectTelling(
        thrown(() => locks.wrap(key, async () => {}, options)),
        name,
        value,
      )
    },
  )

  test('an unknown name is refused, and the error lists the known ones', async () => {
    const locks = client({}, place().sourceToNobody())
    const options = { timeOut: 5 } as LockOptions
    for (const attempt of [
      locks.lock('k', options),
      locks.tryLock('k', options),
      locks.using('k', options, () => {}),
    ]) {
      const error = await promptly(rejection(attempt, LockArgumentError))
      expectTelling(error, 'timeOut', 5)
      for (const known of Object.keys(badLockOptions)) expect(error.message).toContain(known)
    }
  })

  test.each([
    ['timeOut', 'timeout'],
    ['retryCount', 'timeout'],
    ['acquireTimeout', 'timeout'],
    ['waitTime', 'timeout'],
    ['ttl', 'lease'],
    ['lockTimeout', 'lease'],
    ['expiry', 'lease'],
    ['refreshInterval', 'renew'],
    ['automaticExtensionThreshold', 'renew'],
    ['identifier', 'owner'],
  ])('the error of %s, an option of another library, names the option %s', async (name, ours) => {
    const locks = client({}, place().sourceToNobody())
    const error = await promptly(rejection(locks.lock('k', { [name]: 5 } as LockOptions), LockArgumentError))
    expect(error.message).toMatch(new RegExp(`^${name} is 5; expected \`${ours}\`, or another of these options: `))
    // A client has no option `renew` or `owner`.
    const ofClient = thrown(() => new LockClient('redis://127.0.0.1:1', { [name]: 5 } as never))
    expect(ofClient.message.includes(`\`${ours}\``)).toBe(ours in badClientOptions)
  })

  test.each(['constructor', 'toString', 'hasOwnProperty'])(
    '%s, which every object inherits, is not an option',
    async name => {
      const locks = client({}, place().sourceToNobody())
      const error = await promptly(rejection(locks.lock('k', { [name]: 1 } as LockOptions), LockArgumentError))
      expect(error.option).toBe(name)
    },
  )

  test('headStart is refused if the call cannot join the queue', async () => {
    const locks = client({}, place().sourceToNobody())
    const options = { headStart: 5, fair: false, fairAfter: Number.POSITIVE_INFINITY }
    const error = await promptly(rejection(locks.lock('k', options), LockArgumentError))
    expect(error.option).toBe('headStart')
  })

  test('an option whose value is undefined counts as absent', async () => {
    const names = Object.keys(badLockOptions)
    const options = Object.fromEntries(names.map(name => [name, undefined])) as LockOptions
    const lease = await client().lock(freshKey(), options)
    expect(lease.held).toBe(true)
  })
})

describe('a bad option of a client', () => {
  test.each(cases(badClientOptions))('%s: %s is refused by the constructor', (name, value) => {
    expectTelling(
      thrown(() => new LockClient('redis://127.0.0.1:1', { [name]: value })),
      name,
      value,
    )
  })

  test('an unknown name is refused, and the error lists the known ones', () => {
    const error = thrown(() => new LockClient('redis://127.0.0.1:1', { leese: 5 } as never))
    expectTelling(error, 'leese', 5)
    for (const known of Object.keys(badClientOptions)) expect(error.message).toContain(known)
  })

  test.each([undefined, null, 5, true, [], ''])('%s is not a Redis', redis => {
    expect(thrown(() => new LockClient(redis as never)).option).toBe('redis')
  })

  // The last object looks like a client of node-redis 4.
  test.each([
    [Promise.resolve(), 'Promise'],
    [new URL('redis://user:hunter2@localhost'), 'URL'],
    [new Map(), 'Map'],
    [['redis://user:hunter2@localhost'], 'Array'],
    [Object.create(Object.create(Object.create(null))), 'a class'],
    [
      Object.assign(new EventTarget(), { isOpen: true, duplicate() {}, options: { password: 'hunter2' } }),
      'EventTarget',
    ],
  ])('the error names the class of a wrong object, but not its contents', (redis, name) => {
    const error = thrown(() => new LockClient(name === 'Array' ? [redis, redis, redis] : (redis as never)))
    expect([error.option, error.value]).toEqual(['redis', `an instance of ${name}`])
    expect(error.message).toContain(`redis is an instance of ${name}; expected`)
    expect(error.accepted).toMatch(/node-redis 5 or 6/)
    expect(inspect(error)).not.toContain('hunter2')
  })

  test.each([
    'http://user:hunter2@localhost',
    'redis://user:12#hunter2@localhost',
    'redis://user:12?hunter2@localhost',
    'redis://user:%zhunter2@localhost',
    'redis://localhost/hunter2',
    'redis://localhost/1x',
    'redis://localhost/-1',
    'redis://localhost/run/redis.sock',
    'redis://localhost?db=hunter2',
    'redis://localhost?db=',
    'redis://localhost?port=hunter2',
    'unix://',
    'unix:///',
    'unix://user:hunter2@',
    'unix://run/redis.sock',
    'unix:///run/redis.sock?db=1.5',
    'unix:///run/redis.sock#hunter2',
    '/run/redis.sock',
  ])('%s is refused without its text, which may contain a password, and the error names the forms', url => {
    const error = thrown(() => new LockClient(url))
    expect(error.option).toBe('redis')
    expect(error.message).toMatch(/^redis is no address of Redis \(.*\); expected redis:.* percent-encoded/)
    expect(error.message).toMatch(/ unix:\/\/\/run\/redis\.sock or \{ path: '\/run\/redis\.sock' \}/)
    expect(inspect(error)).not.toContain('hunter2')
  })

  const numbers = ['x', '1x', '', -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, true, {}]
  test.each([...numbers.map(db => ({ db })), ...[...numbers, 0, 65_536].map(port => ({ port }))])(
    '%o is refused, in options, an instance, or one server of a quorum',
    given => {
      const [[name, value]] = Object.entries(given) as [[string, unknown]]
      const options = { host: '127.0.0.1', lazyConnect: true, ...given } as object
      const good = 'redis://127.0.0.1:1'
      for (const redis of [options, [good, good, options]])
        expectTelling(
          thrown(() => new LockClient(redis)),
          `redis.${name}`,
          value,
        )
      // ioredis itself reads a text as a number.
      if (typeof value === 'number')
        expectTelling(
          thrown(() => new LockClient(new Redis(options))),
          `redis.${name}`,
          value,
        )
    },
  )

  // This test fails if `if (known.includes(name)) continue` becomes `continue` in src/redis/ioredis-options.ts: the client
  // connects to 127.0.0.1.
  test.each([
    [{ sentinels: [{ host: 'a', port: 'x' }], name: 'm' }, 'redis.port', /65535/],
    [{ sentinels: 'redis://:hunter2@a', name: 'm' }, 'redis.sentinels', /array/],
    [{ sentinels: ['redis://:hunter2@a'], name: 'm' }, 'redis.sentinels', /host, port/],
    [{ sentinels: [], name: 'm' }, 'redis', /at least one sentinel/],
    [{ sentinels: [{ host: 'a' }] }, 'redis', /name of master/],
    [{ url: 'redis://:hunter2@a' }, 'redis.url', /new LockClient\(url\)/],
    [{ url: undefined }, 'redis.url', /new LockClient\(url\)/],
    [{ connectionString: 'redis://:hunter2@a' }, 'redis.connectionString', /new LockClient\(url\)/],
    [{ redis: 'redis://:hunter2@a' }, 'redis.redis', /new LockClient\(redis\)/],
    [{ connection: { host: 'a', password: 'hunter2' } }, 'redis.connection', /new LockClient\(redis\)/],
    [{ options: { host: 'a' } }, 'redis.options', /new LockClient\(redis\)/],
    [{ socket: { host: 'a' }, password: 'hunter2' }, 'redis.socket', /host/],
    [{ hostname: 'a', port: 6379 }, 'redis.hostname', /^`host` and `port`$/],
    [{ endpoint: 'a:6379' }, 'redis.endpoint', /^`host` and `port`$/],
    [{ host: 'a', database: 2 }, 'redis.database', /`db`/],
    [{ host: 'a', pass: 'hunter2' }, 'redis.pass', /`password`/],
    [{ host: 'a', ssl: true }, 'redis.ssl', /`tls`/],
    [{ rootNodes: [{ url: 'redis://:hunter2@a' }] }, 'redis.rootNodes', /Cluster/],
    [{ startup_nodes: [{ host: 'a' }] }, 'redis.startup_nodes', /Cluster/],
    [{ host: 'a', slotsRefreshTimeout: 5 }, 'redis.slotsRefreshTimeout', /Cluster/],
    [{ masterName: 'm', sentinels: [{ host: 'a' }] }, 'redis.masterName', /`sentinels` and `name`/],
    [{ sentinels: [{ hostname: 'a' }], name: 'm' }, 'redis.sentinels.hostname', /`host`/],
    [{ hsot: 'a' }, 'redis.hsot', /^`host`$/],
    [{ host: 'a', key_prefix: 'b' }, 'redis.key_prefix', /^`keyPrefix`$/],
    [{ host: 'a', foo: 'hunter2' }, 'redis.foo', /ignores all others/],
    ['redis://a?hostname=hunter2', 'redis.hostname', /`host`/],
    [{ host: 'a', lease: 5_000, prefix: 'x' }, 'redis.lease', /new LockClient\(redis, \{ lease \}\)/],
    ['redis://a?timeout=5', 'redis.timeout', /new LockClient\(redis, \{ timeout \}\)/],
  ])('the error of %o says what was meant', (redis, option, words) => {
    const error = thrown(() => new LockClient(redis as never))
    expect([error.option, error.accepted]).toEqual([option, expect.stringMatching(words)])
    expect(error.message).not.toMatch(/ is "(an|options) /)
    expect(inspect(error)).not.toContain('hunter2')
  })

  // Stand-ins with the properties by which ioredis-mock 8 and ioredis 4 differ from ioredis 5 and 6.
  test.each([
    ['ioredis-mock', { connected: true }, /ioredis-mock .* tests/],
    ['a Redis of ioredis 4', { connector: {}, _addedScriptHashes: {} }, /5\.4/],
    ['a Cluster of ioredis 4', { connectionPool: {}, isCluster: true, _addedScriptHashes: {} }, /5\.4/],
  ])('an instance of %s is refused', (_, shape, words) => {
    const instance = Object.assign(new EventTarget(), { options: { password: 'hunter2' }, duplicate() {} }, shape)
    const error = thrown(() => new LockClient(instance as never))
    expect([error.option, error.message]).toEqual(['redis', expect.stringMatching(words)])
    expect(inspect(error)).not.toContain('hunter2')
  })
})

describe('what people write who come from other libraries: the error says what to write instead', () => {
  const unlike = (locks: LockClient) => locks as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
  const fn = async () => {}

  test.each<[string, (locks: LockClient) => unknown, RegExp]>([
    ['using([key], ms, fn)', locks => unlike(locks)['using']?.(['k'], 1_000, fn), /key is an array; .*\ball\(keys\)/],
    ['using(key, ms, fn)', locks => unlike(locks)['using']?.('k', 1_000, fn), /options is 1000; .*\{ lease: 1000 \}/],
    ['using(key, fn, options)', locks => unlike(locks)['using']?.('k', fn, {}), /fn is an object; .*last argument/],
    ['lock(key, ms)', locks => unlike(locks)['lock']?.('k', 1_000), /options is 1000; .*\{ timeout: 1000 \}/],
    ['lock([key])', locks => unlike(locks)['lock']?.(['k']), /key is an array; .*\ball\(keys\)/],
    ['acquire([key], ms)', locks => unlike(locks)['acquire']?.(['k'], 1_000), /no acquire\(\).*\block\(key\)/],
    ['release(lock)', locks => unlike(locks)['release']?.({}), /no release\(\).*lease\.release\(\)/],
    ['unlock(lock)', locks => unlike(locks)['unlock']?.({}), /no unlock\(\).*lease\.release\(\)/],
    ['extend(lock, ms)', locks => unlike(locks)['extend']?.({}, 5), /no extend\(\).*lease\.renew\(ms\)/],
    ['quit()', locks => unlike(locks)['quit']?.(), /no quit\(\).*close\(\)/],
    ['close(ms)', locks => unlike(locks)['close']?.(5_000), /options is 5000; .*\{ drain: 5000 \}/],
    ['[redis]', () => new LockClient(['redis://127.0.0.1:1'] as never), /array of 1; .*without an array/],
  ])('%s', async (_, call, words) => {
    const locks = client({}, place().sourceToNobody())
    const error = await rejection((async () => call(locks))(), Error)
    expect(error.message).toMatch(words)
    expect(Object.keys(locks)).toEqual([])
  })
})

describe('other arguments', () => {
  test('using, wrap and runAs refuse a missing function', async () => {
    const locks = client({}, place().sourceToNobody())
    expectTelling(
      thrown(() => locks.runAs('me', undefined as never)),
      'fn',
      undefined,
    )
    await promptly(rejection(locks.using('k', undefined as never), LockArgumentError))
    await promptly(rejection(locks.using('k', {}, 'fn' as never), LockArgumentError))
    thrown(() => locks.wrap('k', undefined as never))
  })

  test.each(notTexts)('runAs: %s is not an owner', async owner => {
    const locks = client({}, place().sourceToNobody())
    let ran = false
    const error = thrown(() =>
      locks.runAs(owner as string, () => {
        ran = true
      }),
    )
    expectTelling(error, 'owner', owner)
    expect(ran).toBe(false)
  })

  test.each([5, null, {}])('list: %s is not a pattern', async pattern => {
    const locks = client({}, place().sourceToNobody())
    const first = async () =>
      locks
        .list(pattern as string)
        [Symbol.asyncIterator]()
        .next()
    await promptly(rejection(first(), LockArgumentError))
  })

  test('forceRelease refuses anything but a lock of this client', async () => {
    const [locks, other] = [1, 2].map(() => client({}, place().sourceToNobody())) as [LockClient, LockClient]
    for (const lock of [other.mutex('k'), locks.all(['k']), { key: 'k' }]) {
      const error = await promptly(rejection(locks.forceRelease(lock as never), LockArgumentError))
      expectTelling(error, 'key', lock)
    }
  })

  test.each([...notTimes, 0])('lease.renew: %s is not a time', async ms => {
    const lease = await client().lock(freshKey())
    await rejection(lease.renew(ms as number), LockArgumentError)
    expect(lease.held).toBe(true)
  })
})

test('a call with a bad argument or an aborted signal sends nothing', async ({ own }) => {
  const locks = client({}, own.source())
  const admin = own.admin()
  await locks.isLocked('k')
  // After its first call, a client sends a few more requests by itself. Wait until they are done, so that only the
  // calls below are counted.
  await sleep(500)
  const before = await admin.calls()
  for (const [, key] of badKeys) {
    for (const call of Object.values(callsWith(locks, key as string))) await rejection(call(), LockArgumentError)
  }
  for (const [name, value] of cases(badLockOptions)) {
    await rejection(locks.lock('k', { fair: true, [name]: value }), LockArgumentError)
    await rejection(locks.tryLock('k', { fair: true, [name]: value }), LockArgumentError)
  }
  const options = { signal: AbortSignal.abort(), fair: true }
  await expect(locks.lock('k', options)).rejects.toBe(options.signal.reason)
  await expect(locks.tryLock('k', options)).rejects.toBe(options.signal.reason)
  const sent = Object.keys(await admin.calls(before))
  const lockCommand = own.bySentinels
    ? /^(eval|evalsha|script|hset|hmget|z\w+)$/
    : /^(eval|evalsha|script|hset|hmget|s?publish|z\w+)$/
  expect(sent.filter(name => lockCommand.test(name))).toEqual([])
  expect(await admin.keysWith('')).toEqual([])
})

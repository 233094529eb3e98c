/**
 * Tests what the client of a quorum refuses before it sends anything. Also tests the client's errors when no majority
 * of the servers answers.
 */
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, onTestFinished } from 'vitest'
import {
  type ClientOptions,
  LockArgumentError,
  LockClient,
  LockClosedError,
  LockConnectionError,
  LockTimeoutError,
} from '../../src/index.ts'
import { collect, heard, promptly, rejection } from '../kit/outcomes.ts'
import { type QuorumScene, sharedScenes } from '../kit/quorum-scene.ts'
import { freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'
import { reasonsOfServers } from './refused.ts'

type Source = ConstructorParameters<typeof LockClient>[0]

/** Returns URLs of servers that do not exist. */
const nowhere = (count: number) => Array.from({ length: count }, (_, i) => `redis://127.0.0.1:${i + 1}`)

const scenes = sharedScenes([3, 5])

/** Makes a client from this source, and closes the client after the test. */
function made(source: Source, options: ClientOptions = {}): LockClient {
  const locks = new LockClient(source, options)
  onTestFinished(() => locks.close())
  return locks
}

function refused(source: unknown, options: ClientOptions = {}): LockArgumentError {
  try {
    made(source as Source, options)
  } catch (error) {
    expect(error).toBeInstanceOf(LockArgumentError)
    expect(error).toMatchObject({ name: 'LockArgumentError', code: 'ERR_LOCK_ARGUMENT' })
    return error as LockArgumentError
  }
  throw new Error(`accepted: ${inspect(source)}`)
}

describe('the constructor refuses an array that is no quorum', () => {
  test.each([0, 1, 2, 4, 6, 8, 9])('of %i servers', count => {
    const error = refused(nowhere(count))
    expect(error.option).toBe('redis')
    expect(error.accepted).toMatch(/3, 5 or 7/)
    expect(error.message).toContain(error.accepted)
  })

  test.each([
    ['the same URL', ['redis://127.0.0.1:1', 'redis://127.0.0.1:2', 'redis://127.0.0.1:1']],
    ['two databases of it', ['redis://127.0.0.1:1/0', 'redis://127.0.0.1:1/5', 'redis://127.0.0.1:2']],
    ['a URL and options', ['redis://127.0.0.1:1', { host: '127.0.0.1', port: 1 }, 'redis://127.0.0.1:2']],
    ['two users of it', ['redis://a:b@127.0.0.1:1', 'redis://c:d@127.0.0.1:1', 'redis://127.0.0.1:2']],
    ['the default port, written and not', ['redis://localhost', 'redis://localhost:6379', 'redis://127.0.0.1:2']],
  ])('with the same server twice: %s', (_, source) => {
    expect(refused(source).option).toBe('redis')
  })

  test.each([undefined, null, 5, 'no URL', ['redis://127.0.0.1:1'], new Map()])(
    'with a part that is not a source: %s',
    part => {
      const [one, two] = nowhere(2)
      expect(refused([one, part, two]).option).toBe('redis')
    },
  )

  test('and the error contains no secret', () => {
    const secret = ['redis://user:hunter2@127.0.0.1:1', { host: '127.0.0.1', port: 2, password: 'hunter2' }]
    for (const source of [secret, [...secret, 'http://user:hunter2@127.0.0.1:3'], [...secret, secret[1]]]) {
      expect(inspect(refused(source), { depth: 9 })).not.toContain('hunter2')
    }
  })
})

test.each([3, 5, 7])('%i servers are a quorum, whatever kinds of sources name them', async count => {
  const parts: Source[] = nowhere(count)
  const instance = new Redis({ port: 101, lazyConnect: true })
  const mixed = [{ host: '127.0.0.1', port: 100 }, instance, createClient({ url: 'redis://127.0.0.1:102' })]
  for (const source of [parts, [...mixed, ...parts.slice(3)]]) await made(source as Source).close()
  expect(instance.status).toBe('wait')
})

describe('options and kinds of lock that a quorum does not have are refused before anything is sent', () => {
  test('replicas', () => {
    expect(refused(nowhere(3), { replicas: { min: 1, timeout: 100 } }).option).toBe('replicas')
  })

  test('semaphores and read-write locks, also as parts of `all`, and the limits of a queue', async () => {
    const scene = scenes.get(3)!
    const locks = scene.client()
    const ofOther = scene.at(0).semaphore('k', 1)
    await locks.isLocked('any')
    // After its first call, a client sends a few more requests by itself. Wait until they are done, so that only the
    // calls below are counted.
    await sleep(500)
    const before = await scene.admin().calls()
    const calls: (() => unknown)[] = [
      () => locks.semaphore('k', 2).lock(),
      () => locks.semaphore('k', 1).tryLock(),
      () => locks.semaphore('k', 1).inspect(),
      () => locks.readWrite('k').read.lock(),
      () => locks.readWrite('k').write.using(() => {}),
      () => locks.readWrite('k').inspect(),
      () => locks.all(['k', locks.semaphore('k', 1)]).lock(),
      () => locks.all(['k', ofOther]).lock(),
      () => locks.lock('k', { maxWaiters: 1 }),
      () => locks.tryLock('k', { rejectLate: true, timeout: 100 }),
    ]
    for (const call of calls) {
      const error = await promptly(rejection(Promise.resolve().then(call), LockArgumentError))
      expect(error.code).toBe('ERR_LOCK_ARGUMENT')
    }
    const sent = Object.keys(await scene.admin().calls(before))
    expect(sent.filter(name => /^(eval|evalsha|script|s?publish|z\w+)$/.test(name))).toEqual([])
  })
})

test('a lease longer than that of the client is refused, by calls and renewals, and shorter ones are not', async ({
  key,
}) => {
  const scene = scenes.get(3)!
  const locks = scene.client({ lease: 2_000 })
  const lease = await locks.lock(key, { lease: 2_000 })
  // The servers agree on the token, and read the scripts.
  await sleep(500)
  const before = await scene.admin().calls()
  const long = { lease: 2_001 }
  const calls: (() => unknown)[] = [
    () => locks.lock('k', long),
    () => locks.tryLock('k', long),
    () => locks.using('k', long, () => {}),
    () => locks.mutex('k').lock(long),
    () => locks.mutex('k').wrap(() => {}, long),
    () => locks.wrap('k', () => {}, long)(),
    () => locks.all(['k']).lock(long),
    () => lease.renew(2_001),
  ]
  for (const call of calls) {
    const error = await promptly(rejection(Promise.resolve().then(call), LockArgumentError))
    expect(error.code).toBe('ERR_LOCK_ARGUMENT')
    expect(error.message).toContain("a quorum's servers have to know the longest lease")
  }
  expect(Object.keys(await scene.admin().calls(before)).filter(name => name.startsWith('eval'))).toEqual([])
  await lease.renew(2_000)
  expect(lease.remaining()).toBeGreaterThan(1_000)
  expect(await lease.release()).toBe(true)
})

describe.each([
  { size: 3, absent: [0, 2], said: '1 of 3 answered' },
  { size: 5, absent: [0, 2, 4], said: '2 of 5 answered' },
  { size: 5, absent: [0, 1, 2, 3, 4], said: '0 of 5 answered' },
])('LockConnectionError of $size servers while $absent are away', ({ size, absent, said }) => {
  function expectSaid(error: LockConnectionError, key?: string): void {
    expect(error.message).toContain(said)
    expect(error).toMatchObject({ name: 'LockConnectionError', code: 'ERR_LOCK_CONNECTION', key })
    // The error has a reason for each server that did not answer, and none for the others.
    const reasons = reasonsOfServers(error.cause)
    expect(reasons).toHaveLength(absent.length)
    for (const reason of reasons) expect(reason).toBeInstanceOf(Error)
    const { errors } = error.cause as AggregateError
    const numbers = errors.map((each: Error) => Number(/^server (\d)/.exec(each.message)?.[1]))
    expect(numbers).toEqual(absent.map(i => i + 1))
  }

  test('of every call, after outageTimeout: says how many answered, and why each of the others did not', async () => {
    const scene = scenes.get(size)!
    const locks = scene.client({ outageTimeout: 800 })
    await locks.isLocked('any')
    for (const i of absent) scene.away(i)
    const key = freshKey()
    const calls = [locks.lock(key), locks.lock(key, { fair: true }), locks.using(key, () => 'ran')]
    const begin = performance.now()
    const looks = [locks.inspect(key), locks.isLocked(key), locks.forceRelease(key)]
    const all: Promise<unknown>[] = [...calls, ...looks]
    const errors = await promptly(Promise.all(all.map(call => rejection(call, LockConnectionError))))
    expect(performance.now() - begin).toBeGreaterThanOrEqual(780)
    for (const error of errors) expectSaid(error, key)
    await promptly(rejection(collect(locks.list()), LockConnectionError))
  })

  test('of a single attempt comes long before outageTimeout', async ({ key }) => {
    const scene = scenes.get(size)!
    const locks = scene.client()
    await locks.isLocked('any')
    for (const i of absent) scene.away(i)
    const attempts = [locks.tryLock(key), locks.lock(key, { timeout: 0 }), locks.tryLock(key, { timeout: 300 })]
    const told = attempts.map((attempt: Promise<unknown>) => rejection(attempt, LockConnectionError))
    for (const error of await promptly(Promise.all(told))) expectSaid(error, key)
    const late = await promptly(rejection(locks.lock(key, { timeout: 300 }), LockTimeoutError))
    expect(late.cause).toBeInstanceOf(Error)
  })
})

describe('servers that refuse', () => {
  const full = (scene: QuorumScene, i: number, bytes: number) =>
    scene.redis(i).config('SET', 'maxmemory', String(bytes))

  afterEach(async () => {
    for (const i of [0, 1, 2]) await full(scenes.get(3)!, i, 0)
  })

  test('if they are a majority, the error has their replies among its reasons, and nothing is left on any server', async () => {
    const scene = scenes.get(3)!
    const locks = scene.client()
    const key = freshKey()
    await locks.isLocked(key)
    for (const i of [0, 1]) await full(scene, i, 1)
    const calls = [locks.lock(key), locks.lock(key, { fair: true }), locks.tryLock(key)]
    const errors = calls.map((call: Promise<unknown>) => rejection(call, LockConnectionError))
    for (const error of await promptly(Promise.all(errors))) {
      expect(error.key).toBe(key)
      // In Redis 6, the error of a script is a longer message that quotes the error of the command. So OOM may be
      // anywhere in it.
      const reasons = reasonsOfServers(error.cause).filter(({ message }) => /\bOOM /.test(message))
      expect(reasons.map(({ name }) => name)).toEqual(['ReplyError', 'ReplyError'])
    }
    await scene.nothingLeft(key)
    for (const i of [0, 1]) await full(scene, i, 0)
    expect((await promptly(locks.lock(key))).held).toBe(true)
  })

  test('a foreign value at the key on one server is left alone, and the lock works', async ({ key }) => {
    const scene = scenes.get(3)!
    const locks = scene.client()
    await scene.redis(0).set(`lock:{${key}}`, 'mine')
    const lease = await promptly(locks.lock(key))
    expect(await scene.client().tryLock(key)).toBeNull()
    expect(await lease.release()).toBe(true)
    expect(await scene.redis(0).get(`lock:{${key}}`)).toBe('mine')
  })

  test.each([[0], [0, 1]])(
    'I6: close does not wait for servers that keep refusing the leave of a claim: server %i',
    async (...strange) => {
      const scene = scenes.get(3)!
      const locks = made(scene.source)
      const key = freshKey()
      await locks.isLocked(key)
      for (const i of strange) await scene.redis(i).set(`lock:{${key}}`, 'mine')
      const attempt = await promptly(locks.tryLock(key).catch((error: unknown) => error))
      if (strange.length > 1) expect(attempt).toBeInstanceOf(LockConnectionError)
      else expect(attempt).toMatchObject({ held: true })
      await promptly(locks.close())
      await eventually(async () => !(await scene.at(2).isLocked(key)))
    },
  )
})

describe('one of three servers cannot be reached, and another one refuses: each error has both reasons, and each server is named once', () => {
  const refusals = {
    OOM: {
      begin: (scene: QuorumScene) => scene.redis(1).config('SET', 'maxmemory', '1'),
      end: (scene: QuorumScene) => scene.redis(1).config('SET', 'maxmemory', '0'),
    },
    READONLY: {
      begin: (scene: QuorumScene) => scene.redis(1).replicaof('127.0.0.1', 1),
      end: (scene: QuorumScene) => scene.redis(1).replicaof('NO', 'ONE'),
    },
    NOPERM: {
      begin: (scene: QuorumScene) => scene.redis(1).acl('SETUSER', 'default', '-eval', '-evalsha'),
      end: (scene: QuorumScene) => scene.redis(1).acl('SETUSER', 'default', '+eval', '+evalsha'),
    },
  }
  const absences = {
    ECONNREFUSED: (source: string[]) => [...source.slice(0, 2), 'redis://127.0.0.1:1'],
    'ENOTFOUND|EAI_AGAIN': (source: string[]) => [...source.slice(0, 2), 'redis://mistyped.invalid:6379'],
  }
  const both = Object.keys(refusals).flatMap(word => Object.keys(absences).map(code => [word, code] as const))

  test.each(both)('%s, %s', async (word, code) => {
    const scene = scenes.get(3)!
    const { begin, end } = refusals[word as keyof typeof refusals]
    const source = absences[code as keyof typeof absences](scene.source)
    const locks = made(source, { outageTimeout: 1_000 })
    const events: string[] = []
    locks.on('error', ({ error }) => events.push((error as Error).message))
    await promptly(locks.using(freshKey(), () => {}))
    await begin(scene)
    onTestFinished(async () => void (await end(scene)))
    const key = freshKey()
    const calls: Promise<unknown>[] = [
      locks.lock(key),
      locks.lock(key, { fair: true }),
      locks.using(key, () => {}),
      locks.tryLock(key),
      locks.tryLock(key, { timeout: 600 }),
      locks.lock(key, { timeout: 600 }),
      locks.lock(key, { timeout: 0 }),
      locks.all([key, freshKey()]).lock(),
    ]
    const errors = await promptly(Promise.all(calls.map(call => rejection(call, Error))))
    for (const [i, { cause }] of errors.entries()) {
      // The cause of LockTimeoutError is a LockConnectionError.
      const reasons = reasonsOfServers(cause instanceof LockConnectionError ? cause.cause : cause)
      const messages = reasons.map(({ message }) => message).join('; ')
      expect(messages, `call ${i}`).toMatch(new RegExp(word))
      expect(messages, `call ${i}`).toMatch(new RegExp(code))
    }
    const port = new URL(source[1]!).port
    await eventually(() => events.filter(message => /^server [23] of 3/.test(message)).length >= 2)
    expect(events.filter(message => message.startsWith(`server 2 of 3 (127.0.0.1:${port}): `))).toHaveLength(1)
    expect(events.filter(message => message.startsWith('server 3 of 3 ('))).toHaveLength(1)
  })
})

/** What a user of one server lacks. The calls succeed without that server, so an event reports its refusals. */
const lacking = {
  'the password': ['>another', '+@all', '~*', '&*'],
  'the right to scripts': ['>pw', '+@all', '-eval', '-evalsha', '~*', '&*'],
  'the right to the keys': ['>pw', '+@all', '~other', '&*'],
  'the right to a command': ['>pw', '+@all', '-hset', '~*', '&*'],
}

// This test fails if ` || !member.isNews(reason)` is removed in src/compose/quorum/backend.ts: each refused call is reported again.
test.each(Object.entries(lacking))(
  'a server on which the client lacks %s is reported once, and so is its next problem',
  async (_, rules) => {
    const scene = scenes.get(3)!
    const user = freshKey().replace(/\W/g, '')
    await scene.redis(1).acl('SETUSER', user, 'on', ...rules)
    const { port } = new URL(scene.source[1]!)
    const part = { host: '127.0.0.1', port: Number(port), username: user, password: 'pw' }
    const locks = made([scene.source[0], part, scene.source[2]] as Source)
    const events: string[] = []
    locks.on('error', ({ error }) => events.push((error as Error).message))
    await promptly(locks.using(freshKey(), () => {}))
    await eventually(() => events.length > 0)
    await promptly(locks.using(freshKey(), { fair: true }, () => {}))
    // If the refusals of these calls were reported, that would happen within half a second.
    await sleep(1_000)
    expect(events).toEqual([expect.stringMatching(/^server 2 of 3 /)])
    await scene.redis(1).acl('SETUSER', user, 'reset', 'on', '>pw', '+@all', '~*', '&*')
    await scene.redis(1).config('SET', 'maxmemory', '1')
    onTestFinished(async () => void (await scene.redis(1).config('SET', 'maxmemory', '0')))
    await eventually(async () => {
      await locks.using(freshKey(), () => {})
      return events.length > 1
    }, 15_000)
    expect(events.slice(1)).toEqual([expect.stringMatching(/^server 2 of 3 .*\bOOM\b/)])
    await scene.redis(1).acl('DELUSER', user)
  },
)

/**
 * Calls until the server lets the client in, and no longer: no later answer of that server says that the refusal is over.
 */
// This test fails if `if (kindOf(this.refusal) === this.#passing) this.refusal = undefined` is removed in
// src/compose/quorum/member.ts: the refusal of the connection is reported once more, after the connection was made.
test('a server that has let the client in after all is not reported once more', async () => {
  const scene = scenes.get(3)!
  const user = freshKey().replace(/\W/g, '')
  await scene.redis(1).acl('SETUSER', user, 'on', '>another', '+@all', '~*', '&*')
  const { port } = new URL(scene.source[1]!)
  const part = { host: '127.0.0.1', port: Number(port), username: user, password: 'pw' }
  const locks = made([scene.source[0], part, scene.source[2]] as Source)
  const events = heard(locks, 'error')
  const isIn = async () => String(await scene.redis(1).client('LIST')).includes(` user=${user} `)
  await promptly(locks.using(freshKey(), () => {}))
  await eventually(() => events.length > 0)
  await scene.redis(1).acl('SETUSER', user, '>pw')
  for (; !(await isIn()); await sleep(10)) await promptly(locks.using(freshKey(), () => {}))
  // A problem is reported half a second after a call has met it.
  await sleep(1_000)
  expect(events.map(({ error }) => (error as Error).message)).toEqual([expect.stringMatching(/WRONGPASS/)])
  await scene.redis(1).acl('DELUSER', user)
})

test('I6, I7: close at any moment of a split vote leaves nothing on any server', async () => {
  const scene = scenes.get(3)!
  // In a split vote, no client gets a majority. Here server 2 votes for the client, and servers 0 and 1 refuse it. With
  // these delays, the vote arrives before the refusals. After the refusals, the client withdraws its request from
  // server 2. The client's next attempt is already due before server 2 has answered the withdrawal.
  for (const [i, ms] of [8, 8, 5].entries()) scene.delay(i, ms)
  for (let ms = 0; ms < 48; ms += 4) {
    const key = freshKey()
    const locks = scene.client()
    await locks.isLocked('any')
    const others = await Promise.all([0, 1].map(i => scene.at(i).lock(key)))
    const call = rejection(locks.lock(key), LockClosedError)
    await sleep(ms)
    await promptly(locks.close())
    await promptly(call)
    await Promise.all(others.map(lease => lease.release()))
    await scene.nothingLeft(key)
  }
})

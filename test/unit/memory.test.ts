import { mock } from 'node:test'
import { setTimeout as realPause } from 'node:timers/promises'
import { afterEach, describe, expect, vi } from 'vitest'
import { type Lease, LockArgumentError, LockClient } from '../../src/index.ts'
import { memory } from '../../src/memory/index.ts'
import { client, freshKey, test } from '../kit/redis.ts'

afterEach(() => {
  vi.useRealTimers()
  mock.timers.reset()
})

const timers = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate'] as const

/** Each way in which a test runner replaces time. `advance` does so in a moment. */
const ways = {
  'everything faked that Vitest can fake': {
    install: () => vi.useFakeTimers({ toFake: [...timers, 'Date', 'performance', 'hrtime', 'queueMicrotask'] }),
    advance: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  },
  'the default of Vitest': {
    install: () => vi.useFakeTimers(),
    advance: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  },
  'the timers alone, as by the legacy timers of Jest': {
    install: () => vi.useFakeTimers({ toFake: [...timers] }),
    advance: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  },
  'mock.timers of Node, which leaves `performance` as it is': {
    install: () => mock.timers.enable(),
    advance: async (ms: number) => {
      for (let left = ms; left > 0; left -= 10) {
        mock.timers.tick(10)
        for (let turns = 0; turns < 20; turns++) await null
      }
    },
  },
}

describe.each(Object.entries(ways))('under fake timers: %s', (name, { install, advance }) => {
  const made = (options = {}) => client(options, memory())

  test.each(['before', 'after'])('installed %s the client is made: nothing but time needs an advance', async when => {
    if (when === 'before') install()
    const store = memory()
    const [one, two] = [client({}, store), client({}, store)]
    if (when === 'after') install()
    const key = freshKey()
    const heard: string[] = []
    for (const event of ['waiting', 'acquired', 'released', 'lost'] as const) one.on(event, () => heard.push(event))

    const first = await one.lock(key)
    const [fair, unfair] = [two.lock(key, { fair: true }), one.lock(key)]
    expect(await two.tryLock(key)).toBeNull()
    expect(await first.release()).toBe(true)
    const second = await fair
    expect(second.via).toBe('handoff')
    await second.release()
    const third = await unfair
    expect(await two.forceRelease(key)).toBe(true)
    expect([third.held, third.signal.aborted]).toEqual([false, true])
    await one.using(key, () => one.using(key, () => {}))
    const readers = [await one.readWrite(key).read.lock(), await two.readWrite(key).read.lock()]
    const writer = two.readWrite(key).write.lock({ fair: true })
    await Promise.all(readers.map(each => each.release()))
    await (await writer).release()
    await two.all([key, two.semaphore(key, 1)]).using(() => {})
    const left = await one.lock(key)
    await Promise.all([one.close(), two.close()])
    expect(left.held).toBe(false)
    expect(heard).toContain('waiting')
    expect(heard.filter(event => event === 'lost')).toHaveLength(2)
  })

  // They leave `performance` as it is, so real time counts as well, and a slow machine would change what happens when.
  if (name.startsWith('mock.timers') || name.startsWith('the timers alone')) return

  test('a test may advance the time at once, before the call is answered', async () => {
    const locks = made()
    install()
    const lease = await locks.lock(freshKey(), { lease: 60_000 })
    const calls = [undefined, true].map(fair => locks.tryLock(lease.key, { timeout: 1_000, ...(fair && { fair }) }))
    vi.advanceTimersByTime(1_010)
    expect(await Promise.all(calls)).toEqual([null, null])
    await lease.release()
  })

  test('a time-out, the end of a lease, a renewal, and the turn of a waiter after a lease', async () => {
    const locks = made({ lease: 9_000 })
    install()
    const [key, other] = [freshKey(), freshKey()]
    const renewed = await locks.lock(key)
    const late = locks.lock(key, { timeout: 30_000 }).catch(error => error)
    const short = await locks.lock(other, { lease: 2_000 })
    const next = locks.lock(other)
    await advance(1_500)
    expect([short.held, short.signal.aborted]).toEqual([true, false])
    await advance(600)
    expect([short.held, short.signal.aborted]).toEqual([false, true])
    expect((await next).via).toBe('expiry')
    await advance(30_000)
    expect(await late).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', holder: {} })
    expect(renewed.held).toBe(true)
    expect(locks.stats().renewed).toBeGreaterThan(3)
  })

  test('an outage: single attempts reject at once, a wait after `outageTimeout`, and a lease is lost at its end', async () => {
    const store = memory()
    const [locks, other] = [client({ outageTimeout: 3_000, lease: 6_000 }, store), client({}, store)]
    install()
    const key = freshKey()
    const lease = await locks.lock(key)
    store.disconnect(locks)
    await expect(locks.tryLock(freshKey())).rejects.toMatchObject({ code: 'ERR_LOCK_CONNECTION' })
    const wait = locks.lock(freshKey()).catch(error => error)
    await advance(2_900)
    expect(await Promise.race([wait, 'pending'])).toBe('pending')
    await advance(300)
    expect(await wait).toMatchObject({ code: 'ERR_LOCK_CONNECTION' })
    expect(lease.held).toBe(true)
    await advance(4_000)
    expect([lease.held, lease.signal.aborted]).toEqual([false, true])
    expect((await other.lock(key)).via).toMatch(/immediate|expiry/)
    store.reconnect(locks)
    await (await locks.lock(freshKey())).release()
  })
})

test('lose: every hold of the key ends, of every kind; its holders know; the next waiter is granted', async () => {
  const store = memory()
  const [one, two] = [client({}, store), client({}, store)]
  const key = freshKey()
  const lost: Lease[] = [
    await one.lock(key, { owner: 'me' }),
    await two.lock(key, { owner: 'me' }),
    await one.readWrite(key).read.lock(),
    await one.semaphore(key, 2).lock(),
    await two.semaphore(key, 2).lock(),
  ]
  const kept = await one.lock(freshKey())
  const next = two.lock(key, { fair: true })
  await realPause(20)
  expect(store.lose(key)).toBe(lost.length)
  for (const { held, signal } of lost) expect([held, signal.reason?.code]).toEqual([false, 'ERR_LOCK_LOST'])
  const { fencingToken, via } = await next
  expect([via, fencingToken > lost[0]!.fencingToken]).toEqual(['handoff', true])
  expect([store.lose(freshKey()), kept.held]).toEqual([0, true])
})

test.each(['lock', 'tryLock'] as const)(
  'lose: before %s is answered: its caller gets another hold, or none',
  async how => {
    const store = memory()
    const [locks, other] = [client({}, store), client({}, store)]
    const key = freshKey()
    const call = locks[how](key)
    expect(store.lose(key)).toBe(1)
    const next = await other.tryLock(key)
    expect(next?.held).toBe(true)
    if (how === 'tryLock') expect(await call).toBeNull()
    await next?.release()
    const lease = await (how === 'lock' ? call : locks.lock(key))
    expect(lease?.held).toBe(true)
    expect((await other.inspect(key)).fencingToken).toBe(lease?.fencingToken)
  },
)

test('what makes no sense in memory is refused', () => {
  const store = memory()
  const wrong: [string, () => unknown][] = [
    ['memory()', () => (memory as (...given: unknown[]) => unknown)('redis://localhost')],
    ['replicas', () => new LockClient(store, { replicas: { min: 1, timeout: 100 } })],
    ['redis', () => new LockClient([store, memory(), memory()] as never)],
    ['redis', () => new LockClient([store, 'redis://one', 'redis://two'] as never)],
    ['client', () => store.disconnect(client({}, memory()))],
    ['key', () => store.lose('')],
  ]
  for (const [option, make] of wrong) {
    expect(make).toThrow(LockArgumentError)
    expect(make).toThrow(expect.objectContaining({ option }))
  }
})

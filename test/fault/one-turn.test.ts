/**
 * Tests many requests of one turn of the event loop, which are joined into one write: each gets its own reply, whatever
 * else is sent in between, and whatever becomes of the others. If a reply went to another request, two callers would hold
 * one lock (I1).
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel'
import type { Redis } from 'ioredis'
import { describe, expect, onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Lease } from '../../src/index.ts'
import { Connection } from '../../src/redis/connection.ts'
import { Scripts } from '../../src/redis/scripts.ts'
import { client, freshKey, ownServer, plainRedis, test } from '../kit/redis.ts'

const MANY = 60
const texts = { echo: "return 'told ' .. ARGV[1] .. ' ' .. KEYS[1]" }
interface Echo {
  echo(text: number): 'told'
}
const keys = (lock: string) => ({ lock, all: [lock], least: 1 })
const settings = { cluster: false, inboxes: 'inbox:', tokenMemory: 1_000 }

async function connected(url?: string) {
  const redis = plainRedis(url).duplicate({ lazyConnect: true, retryStrategy: () => null })
  let up: () => void = () => {}
  const isUp = new Promise<void>(resolve => {
    up = resolve
  })
  const connection = new Connection(redis, systemClock, 15_000, { onUp: () => up() })
  onTestFinished(() => connection.close())
  connection.uplink.open()
  await isUp
  return { connection, redis, scripts: new Scripts<Echo>(connection, texts, settings) }
}

/** Returns what the script answers to the request with this number. */
const said = (i: number) => ({ status: 'told', values: [`${i}`, `k${i}`], repeated: false })

describe('in one turn', () => {
  // This test fails if `text += chunk` becomes `text = chunk + text` in src/redis/writes.ts: a request overtakes those
  // before it.
  test('each request gets its own reply, also among commands of others, several at once', async () => {
    const { connection, scripts } = await connected()
    const asked: Promise<unknown>[] = []
    const expected: unknown[] = []
    const ask = (call: Promise<unknown>, answer: unknown) => {
      asked.push(call)
      expected.push(answer)
    }
    for (let i = 0; i < MANY; i++) {
      ask(scripts.run('echo', keys(`k${i}`), [i]), expect.objectContaining(said(i)))
      if (i % 3 === 0)
        ask(
          connection.run(redis => redis.echo(`echo ${i}`)),
          `echo ${i}`,
        )
      if (i % 5 === 0) {
        const several = (redis: Redis) => redis.multi().echo(`first ${i}`).echo(`second ${i}`).exec()
        ask(
          connection.run(redis => several(redis as Redis)),
          [
            [null, `first ${i}`],
            [null, `second ${i}`],
          ],
        )
      }
    }
    expect(await Promise.all(asked)).toEqual(expected)
  })

  // This test fails if `this.#known = false` is removed in src/redis/scripts.ts.
  test('a script that the server has forgotten is sent again, and the others get their own replies', async () => {
    const { connection, redis, scripts } = await connected((await ownServer()).url)
    await scripts.run('echo', keys('k'), [0])
    const asked = Array.from({ length: MANY }, (_, i) => {
      if (i === MANY / 2) void redis.script('FLUSH')
      return scripts.run('echo', keys(`k${i}`), [i])
    })
    expect(await Promise.all(asked)).toEqual(Array.from({ length: MANY }, (_, i) => expect.objectContaining(said(i))))
    expect(connection.up).toBe(true)
  })

  // This test fails if `return to.failed(error as Error)` becomes `throw error` in src/redis/connection.ts.
  test('a reply that cannot be read fails its own request only', async () => {
    const { connection, scripts } = await connected()
    const asked = Array.from({ length: MANY }, (_, i) =>
      scripts.run('echo', keys(`k${i}`), [i], reply => {
        if (i % 7 === 3) throw new RangeError(`${i}`)
        return reply
      }),
    )
    const outcomes = await Promise.allSettled(asked)
    for (const [i, outcome] of outcomes.entries()) {
      if (i % 7 === 3) expect(outcome).toMatchObject({ status: 'rejected', reason: new RangeError(`${i}`) })
      else expect(outcome).toMatchObject({ status: 'fulfilled', value: said(i) })
    }
    expect(connection.up).toBe(true)
  })

  // This test fails if `process.nextTick(() => {` becomes `void (() => {` in src/redis/ready-command.ts: nothing is
  // reported.
  test('a receiver that throws is reported, and does not disturb the replies of others', async () => {
    const { connection, scripts } = await connected()
    const thrown: unknown[] = []
    const listeners = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', error => thrown.push(error))
    onTestFinished(() => {
      process.removeAllListeners('uncaughtException')
      for (const listener of listeners) process.on('uncaughtException', listener)
    })
    const failure = new RangeError('a mistake in a receiver')
    const asked = Array.from({ length: MANY }, (_, i) => {
      if (i % 7 !== 3) return scripts.run('echo', keys(`k${i}`), [i])
      scripts.post('echo', keys(`k${i}`), [i], reply => reply, {
        done() {
          throw failure
        },
        failed() {},
      })
      return undefined
    })
    const outcomes = await Promise.all(asked)
    for (const [i, outcome] of outcomes.entries()) if (i % 7 !== 3) expect(outcome).toMatchObject(said(i))
    await new Promise(setImmediate)
    expect(thrown).toEqual(Array(Math.ceil((MANY - 3) / 7)).fill(failure))
    expect(connection.up).toBe(true)
  })
})

// This test fails if `if (text && !isTraced())` becomes `if (text)` in src/redis/connection.ts: the traces end without a reply.
test('a program that traces the commands of ioredis sees those of locks, from their start to their end', async ({
  locks,
  key,
}) => {
  const traced: string[] = []
  const trace = (event: string) => (message: object) => {
    const { command, result = '' } = message as { command: string; result?: string }
    traced.push(`${event} ${command} ${result}`.trim().replace(/ \d+$/, ''))
  }
  // From now on, the server knows the scripts, and the client hears messages: when it begins to, it asks what it missed.
  for (const fair of [true, false]) await (await locks.lock(key, { fair })).release()
  const commands = tracingChannel('ioredis:command') as TracingChannel<object>
  const listeners = { start: trace('start'), asyncEnd: trace('asyncEnd') } as Parameters<typeof commands.subscribe>[0]
  commands.subscribe(listeners)
  onTestFinished(() => void commands.unsubscribe(listeners))
  await (await locks.lock(key)).release()
  await new Promise(setImmediate)
  expect(traced.filter(each => /evalsha/.test(each))).toEqual([
    'start evalsha',
    'asyncEnd evalsha granted',
    'start evalsha',
    'asyncEnd evalsha released',
  ])
})

// This test fails if `const text = this.#ready && call.request.text?.()` becomes `const text = undefined as string |
// undefined` in src/redis/connection.ts: ioredis makes promises of its own.
test('I9 a call makes one promise, that of its caller', async ({ locks }) => {
  const keys = Array.from({ length: 200 }, () => freshKey())
  const cycle = async (key: string) => (await locks.lock(key)).release()
  for (const key of keys) await cycle(key)
  let made = 0
  const hook = createHook({
    init(_id, type) {
      if (type === 'PROMISE') made += 1
    },
  })
  const leases: Lease[] = []
  let granted!: () => void
  const all = new Promise<void>(resolve => {
    granted = resolve
  })
  hook.enable()
  for (const key of keys) {
    // `then` makes a promise, too.
    void locks.lock(key).then(lease => {
      leases.push(lease)
      if (leases.length === keys.length) granted()
    })
  }
  await all
  hook.disable()
  expect(made).toBeLessThan(2.5 * keys.length)
  await Promise.all(leases.map(lease => lease.release()))
})

// This test fails if `this.context = context.observer.listening ? new AsyncResource('LOCK') : undefined` is removed in
// src/call.ts.
test('listeners of events run in the async context of their call', async () => {
  const locks = client()
  const contexts = new AsyncLocalStorage<string>()
  const heard: string[] = []
  for (const event of ['acquired', 'waiting', 'released'] as const) {
    locks.on(event, () => heard.push(`${event} in ${contexts.getStore()}`))
  }
  const key = freshKey()
  const first = await contexts.run('the first call', () => locks.lock(key, { owner: 'one' }))
  const second = contexts.run('the second call', () => locks.lock(key, { fair: true, owner: 'two' }))
  while (!heard.includes('waiting in the second call')) await new Promise(resolve => setTimeout(resolve, 10))
  await contexts.run('the release', () => first.release())
  await second
  expect(heard.sort()).toEqual([
    'acquired in the first call',
    'acquired in the second call',
    'released in the release',
    'waiting in the second call',
  ])
})

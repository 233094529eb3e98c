/**
 * Tests what the connections of a client have to do with each other: when one of them is back, the others try to connect
 * at once; and the client's own beats show that its connections work.
 */
import type { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import type { LinkListener } from '../../src/redis/link.ts'
import { Server } from '../../src/redis/server.ts'
import { settingsOf } from '../../src/settings.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeRedis } from './fake-redis.ts'
import { settled } from './promises.ts'

const names = ['commands', 'messages', 'confirmations'] as const
const nobody = () => {}

/** Opens a client with fake connections, to which the fake commands `more` are added. It holds a lock if it is `busy`. */
function opened(more: object, listener: Partial<LinkListener> = {}) {
  const clock = new FakeClock()
  const made: FakeRedis[] = []
  const source = {
    options: {},
    connector: {},
    isCluster: false,
    duplicate() {
      const never = { subscribe: () => new Promise(nobody), eval: () => new Promise(nobody) }
      const own = { duplicate: nobody, connector: { connect: nobody } }
      const redis = Object.assign(new FakeRedis(clock), own, never, more)
      made.push(redis)
      return redis
    },
  }
  const server = new Server(source as unknown as Redis, settingsOf({ replicas: { min: 1, timeout: 100 } }), clock, {
    onGranted: nobody,
    onTaken: nobody,
    onUnlocked: nobody,
    onEntered: nobody,
    onDown: nobody,
    onUp: nobody,
    onMessagesResumed: nobody,
    onDisconnected: nobody,
    onReconnected: nobody,
    busy: () => false,
    ...listener,
  })
  server.open()
  expect(made.length).toBe(names.length)
  return { clock, server, made }
}

/** Makes a client's connections fail so often that the pause between attempts is a second. */
async function down() {
  const { clock, server, made } = opened({})
  for (let failed = 0; failed < 12; failed++) {
    for (const redis of made) if (redis.status === 'connecting') redis.break(new Error('connect ECONNREFUSED'))
    await clock.advance(1_250)
  }
  return { clock, server, made }
}

// This test fails if `uplink.hurry()` is removed in src/redis/server.ts: the other connections are made up to 1.25 s
// later, and until then the client's waiters are passed over.
test.each(names)(
  'I4 when a connection is back, the others try again at once instead of waiting for their next attempt: %s',
  async name => {
    const { clock, server, made } = await down()
    const back = made[names.indexOf(name)] as FakeRedis
    const others = made.filter(redis => redis !== back)
    // The other connections fail at the worst moment: just before the connection `back` is ready.
    for (const redis of others) redis.break(new Error('connect ECONNREFUSED'))
    const before = others.map(redis => redis.connects.length)
    await back.ready()
    expect(others.map(redis => redis.connects.length)).toEqual(before.map(count => count + 1))
    // If the other connections now fail again, they do not try again at once.
    for (const redis of others) redis.break(new Error('connect ECONNREFUSED'))
    await clock.advance(100)
    expect(others.map(redis => redis.connects.length)).toEqual(before.map(count => count + 1))
    server.close()
    expect(clock.armed).toBe(0)
  },
)

// This test fails if `this.#commands.arrived()` is removed in src/redis/one-server.ts: the connection counts as idle, and is
// made again after 400 ms.
test('I6 a call of a client that holds a lock has as much time as other calls, because its own beats are answered', async () => {
  const { clock, server, made } = opened(
    {
      subscribe: async () => 1,
      async publish(channel: string, text: string) {
        made[1]!.emit('message', channel, text)
        return 1
      },
    },
    { busy: () => true },
  )
  for (const redis of made) await redis.ready()
  await clock.advance(60_000)
  const call = server.commands.run(redis => (redis as unknown as FakeRedis).ask())
  await clock.advance(2_000)
  await made[0]!.asked.next.answer('yes')
  expect(await call).toBe('yes')
  expect(made.map(({ connects }) => connects.length)).toEqual([1, 1, 1])
  server.close()
})

// This test fails if `if (!this.names.cluster) this.#listener.onMessagesResumed()` is removed in src/redis/server.ts: no waiter looks again.
test.each(['commands first', 'messages first'] as const)(
  'I4 when both connections were lost, waiters look again once: when both are back (%s)',
  async order => {
    let heard = 0
    const { server, made } = opened({ subscribe: async () => 1 }, { onMessagesResumed: () => (heard += 1) })
    const [commands, messages] = made as [FakeRedis, FakeRedis]
    const both = order === 'commands first' ? [commands, messages] : [messages, commands]
    for (const redis of made) await redis.ready()
    await settled()
    expect(heard).toBe(1)
    for (const redis of both) redis.break()
    await both[0]!.ready()
    await settled()
    expect(heard).toBe(1)
    await both[1]!.ready()
    await settled()
    expect(heard).toBe(2)
    server.close()
  },
)

// This test fails if `else this.#beat?.lost(error)` becomes `else this.#beat?.arrived()` in src/redis/one-server.ts: the
// connection for messages counts as alive, and is given up only 5 s later.
test('I6 a beat that could not be sent is no sign that messages arrive', async () => {
  let busy = false
  const { clock, server, made } = opened(
    { subscribe: async () => 1, publish: (): unknown => made[0]!.ask() },
    { busy: () => busy },
  )
  const [commands, messages] = made as [FakeRedis, FakeRedis]
  for (const redis of made) await redis.ready()
  await clock.advance(16_000)
  busy = true
  for (let i = 0; i < 40 && commands.asked.open.length === 0; i++) await clock.advance(100)
  commands.break()
  await commands.ready()
  await clock.advance(1_000)
  expect(messages.connects.length).toBe(2)
  server.close()
})

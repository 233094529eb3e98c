/**
 * Tests connections that Redis closes, because an operator runs CLIENT KILL or because a subscriber's output piles up.
 */
import type { Redis } from 'ioredis'
import { describe, expect } from 'vitest'
import type { Lease, LockClient } from '../../src/index.ts'
import { Memory, RecordedClient, violationsIn } from '../history/recorded.ts'
import { type Kinds, kinds, kindsAndWays } from '../kit/kinds.ts'
import { heard, within } from '../kit/outcomes.ts'
import { park, parkQuietly } from '../kit/parking.ts'
import { frameProxy, warm } from '../kit/proxies.ts'
import { freshKey, nothingLeft, ownServer, plainRedis, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

/** With these options, no heartbeat comes and no lease ends during a test. */
const patient = { waiterTtl: 60_000, lease: 60_000 }

type Killing = [name: string, kill: (redis: Redis) => Promise<unknown>[]]

const killings: Killing[] = [
  ['those for commands', redis => [redis.call('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'YES')]],
  ['those for messages', redis => [redis.client('KILL', 'TYPE', 'PUBSUB')]],
  [
    'both',
    redis => [redis.client('KILL', 'TYPE', 'PUBSUB'), redis.call('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'YES')],
  ],
]

const fairnesses: Record<string, (client: number) => boolean> = {
  fair: () => true,
  unfair: () => false,
  'half of them fair': i => i % 2 === 0,
}

describe.each(killings)('CLIENT KILL of connections: %s, again and again', (_, kill) => {
  /**
   * Kills connections while `work` runs. If connections are killed faster than they are set up, no client makes
   * progress. So after every third kill, all clients have time to reconnect.
   */
  async function killing<T>(url: string, clients: LockClient[], work: () => Promise<T>): Promise<T> {
    const redis = plainRedis(url)
    const away = new Set<LockClient>()
    for (const locks of clients) {
      locks.on('disconnected', () => away.add(locks))
      locks.on('reconnected', () => away.delete(locks))
    }
    let working = true
    let killed = 0
    const loop = (async () => {
      for (let times = 1; working; times++) {
        for (const count of await Promise.all(kill(redis))) killed += Number(count)
        await sleep(15 + Math.random() * 15)
        if (times % 3 > 0) continue
        const begin = performance.now()
        await eventually(() => away.size === 0 || !working)
        await sleep(performance.now() - begin)
      }
    })()
    const result = await work().finally(() => {
      working = false
      return loop
    })
    expect(killed).toBeGreaterThan(10)
    return result
  }

  // This test fails if `this.requests.look(key)` is removed in src/kind-client.ts: no client checks its locks after the
  // reconnect. (The tests in which command connections are killed do not fail: after a reconnect of its command
  // connection, a client checks its locks anyway.) It also fails if `call.error = this.uplink.torn ?? error` becomes `return
  // this.#fail(call, new LockConnectionError('lost', error))` in src/redis/connection.ts: calls are rejected.
  test.for(kinds.flatMap(each => Object.keys(fairnesses).map(how => ({ ...each, how }))))(
    'I1 I2 I4: under load, all callers are served ($kind, $how)',
    async ({ how, client }, { key }) => {
      const { url } = await ownServer()
      const clients = Array.from({ length: 4 }, () => client(patient, url))
      const history = new Memory()
      await killing(url, clients, () =>
        Promise.all(
          clients.map(async (locks, i) => {
            const calls = new RecordedClient(`client ${i}`, locks, history)
            for (let round = 0; round < 25; round++) {
              const lease = await within(8_000, calls.lock(key, { fair: fairnesses[how]!(i) }))
              await sleep(2)
              expect(await calls.release(lease)).toBe(true)
            }
          }),
        ),
      )
      expect(violationsIn(history.events)).toEqual([])
      await nothingLeft(plainRedis(url), client({}, url), key)
    },
  )

  // This test fails if `joins[#joins + 1] = ticket` becomes `joins[#joins + 1] = string.format('%.0f', s.micros + i)`
  // in lua/mutex/tend.lua: positions in the queue follow the order of the heartbeats, and not the tickets. (No test
  // fails if only command connections are killed: a release passes over a waiter only if its inbox has no subscriber.)
  // It also fails if `joins[#joins + 1] = ticket` becomes `joins[#joins + 1] = string.format('%.0f', s.micros + i)` in
  // lua/permits/tend.lua, for the same reason.
  test.for(kinds)(
    'I3: fair waiters are granted in the order of their tickets, except waiters whose connection was cut at that time ($kind)',
    async ({ client }, { key }) => {
      const { url } = await ownServer()
      const holder = client(patient, url)
      const parties = Array.from({ length: 4 }, () => client(patient, url))
      const held = await holder.lock(key)
      const redis = plainRedis(url)
      let killed: Promise<unknown> | undefined
      /** Waits until `waiters` waiters are queued, and each client is subscribed to its inbox. */
      const settled = async (waiters: number) => {
        await killed
        await eventually(async () => (await redis.pubsub('CHANNELS', 'lock:inbox:*')).length === parties.length + 1)
        await eventually(async () => (await holder.inspect(key)).waiters.length === waiters)
      }
      const order: number[] = []
      const served: Promise<void>[] = []
      for (let place = 0; place < 12; place++) {
        const { lease: wait } = await park(parties[place % 4] as LockClient, key, { fair: true })
        served.push(
          wait.then(async (lease: Lease) => {
            order.push(place)
            await settled(12 - order.length)
            expect(await lease.release()).toBe(true)
          }),
        )
      }
      for (let i = 0; i < 10; i++) {
        await Promise.all(kill(redis))
        await sleep(20)
      }
      await settled(12)
      // If a waiter's inbox has no subscriber at the moment of the release, the waiter is passed over, and joins again.
      killed = Promise.all(kill(redis))
      await Promise.all([killed, held.release()])
      await within(10_000, Promise.all(served))
      const [, ...rest] = order
      expect(rest).toEqual([...rest].sort((a, b) => a - b))
    },
  )
})

// This test fails if `this.#listener.busy?.() === false` becomes `false` in src/redis/connection.ts: the client emits both
// events each time.
test('timeout: an idle client connects again without an event, and its next call is served', async () => {
  const { url } = await ownServer('--timeout', '1')
  const redis = plainRedis(url)
  const made = async () => Number(/total_connections_received:(\d+)/.exec(await redis.info('stats'))?.[1])
  const locks = kinds[0]!.client({}, url)
  const events = [heard(locks, 'disconnected'), heard(locks, 'reconnected')]
  await warm(locks)
  const before = await made()
  await eventually(async () => (await made()) >= before + 3, 15_000)
  expect((await locks.tryLock(freshKey()))?.held).toBe(true)
  expect(events).toEqual([[], []])
})

// This test fails if `this.requests.look(key)` is removed in src/kind-client.ts: the client does not check its locks
// after the reconnect.
test.each(kindsAndWays)(
  'CLIENT KILL of the subscriber just before the release, with it, or just after: I4, its waiter is granted ($kind, fair: $fair)',
  async ({ fair, client }) => {
    const { url } = await ownServer()
    const redis = plainRedis(url)
    const [holder, locks] = [client(patient, url), client(patient, url)]
    for (let after = -3; after <= 3; after += 0.25) {
      const key = freshKey()
      const held = await holder.lock(key)
      const { lease: wait } = await parkQuietly(locks, key, { fair })
      const kill = () => redis.client('KILL', 'TYPE', 'PUBSUB')
      const killed = after > 0 ? sleep(after).then(kill) : kill()
      if (after < 0) await sleep(-after)
      const released = held.release()
      const lease = await within(3_000, wait, `killed ${after} ms after the release`)
      await Promise.all([released, killed])
      expect(await lease.release()).toBe(true)
    }
  },
)

describe('a subscriber is cut by client-output-buffer-limit', () => {
  const limit = 8_000_000

  /** Makes a client behind a proxy that stops reading the messages from the server. */
  async function scene({ client }: Kinds) {
    const { url } = await ownServer('--client-output-buffer-limit', `pubsub ${limit} 0 0`)
    const redis = plainRedis(url)
    const proxy = await frameProxy(url)
    const [holder, locks] = [client(patient, url), client(patient, proxy.url)]
    await warm(locks)
    await eventually(() => proxy.connections('messages') === 1)
    return { url, redis, proxy, holder, locks }
  }

  /** Returns the output that has piled up on the server for each subscriber, in bytes. */
  async function backlogs(redis: Redis): Promise<number[]> {
    const list = String(await redis.client('LIST', 'TYPE', 'PUBSUB'))
    return [...list.matchAll(/ omem=(\d+)/g)].map(([, bytes]) => Number(bytes))
  }

  // This test fails if `this.requests.look(key)` is removed in src/kind-client.ts: the client does not check its locks
  // after the reconnect.
  test.for(kindsAndWays)(
    'I1 I4: a waiter learns of a missed release once its client is back ($kind, fair: $fair)',
    async ({ fair, ...kind }, { key }) => {
      const { url, redis, proxy, holder, locks } = await scene(kind)
      const held = await holder.lock(key)
      const { lease: wait } = await parkQuietly(locks, key, { fair })
      const subscribers = (await backlogs(redis)).length
      // The flood of messages goes to the client's inbox, because any message on the unlock channel would wake the
      // waiter.
      const inboxes = (await redis.pubsub('CHANNELS', 'lock:inbox:*')) as string[]
      const channel = inboxes.find(name => !held.id.startsWith(name.slice('lock:inbox:'.length))) as string
      const flood = async (until: () => Promise<boolean>) => {
        await eventually(async () => {
          const messages = redis.pipeline()
          for (let i = 0; i < 10; i++) messages.publish(channel, 'x'.repeat(100_000))
          await messages.exec()
          return until()
        }, 15_000)
      }

      proxy.stopReading('messages')
      await flood(async () => (await backlogs(redis)).some(bytes => bytes > 0))
      expect(await held.release()).toBe(true)
      await flood(async () => (await backlogs(redis)).length < subscribers)
      proxy.readOn()
      const lease = await within(4_000, wait)
      expect(lease.fencingToken).toBeGreaterThan(held.fencingToken)
      expect(await holder.inspect(key)).toMatchObject({ fencingToken: lease.fencingToken, holds: 1, waiters: [] })
      expect(await lease.release()).toBe(true)
      await nothingLeft(plainRedis(url), holder, key)
    },
  )
})

/** Tests the rights that a client needs on a cluster: on every master, and while a slot moves. */
import { Cluster, Command } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis-5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ClientOptions, LockClient, LockConnectionError } from '../../src/index.ts'
import { mutex } from '../../src/kinds/mutex/mutex.ts'
import { newClientId } from '../../src/redis/ids.ts'
import { newHoldId } from '../kit/ids.ts'
import { freshKey } from '../kit/redis.ts'
import { aclRule } from '../kit/rights.ts'
import { eventually } from '../kit/time.ts'
import { RedisCluster } from '../kit/topologies/redis-cluster.ts'
import { limitedOptions, otherOptions, work } from './acl-work.ts'

let cluster: RedisCluster

beforeAll(async () => {
  cluster = await RedisCluster.start()
})

afterAll(() => cluster?.stop())

/** Makes a lock client, and collects the errors that it emits as events. */
function clientAs(username: string | undefined, options: ClientOptions) {
  const redisOptions = username === undefined ? {} : { username, password: 'pw' }
  const locks = new LockClient(new Cluster(cluster.addresses, { lazyConnect: true, redisOptions }), options)
  const warnings: Error[] = []
  locks.on('error', ({ error }) => warnings.push(error as Error))
  return { locks, warnings }
}

/**
 * Creates a user with this name and these rights on every node, and a client that logs in as this user. The second
 * client has all rights.
 */
async function scene(name: string, rules: readonly string[]) {
  for (const { redis } of cluster.nodes) await redis.acl('SETUSER', name, 'on', '>pw', ...rules)
  const [limited, other] = [clientAs(name, limitedOptions), clientAs(undefined, otherOptions)]
  return {
    limited: limited.locks,
    other: other.locks,
    warnings: limited.warnings,
    async [Symbol.asyncDispose]() {
      await Promise.all([limited.locks.close(), other.locks.close()])
    },
  }
}

const admins = () => cluster.nodes.map(({ redis }) => redis)

type Pair = Pick<Awaited<ReturnType<typeof scene>>, 'limited' | 'other'>

const slotOf = (key: string) => new Command('get', [`lock:{${key}}`]).getSlot()

/**
 * Renews a lease while its slot moves. The lock is already on another master, but the slot is not assigned to that
 * master yet, so the client can reach the lock only with ASKING.
 */
async function whileSlotMoves({ limited }: Pair, key: string): Promise<void> {
  const lease = await limited.lock(key)
  const from = await cluster.masterOf(slotOf(key))
  const to = cluster.nodes.slice(0, 3).find(node => node !== from)!
  let failure: unknown
  await cluster.moveSlot(slotOf(key), to, async () => {
    await lease.renew().catch(error => {
      failure = error
    })
  })
  if (failure) throw failure
  expect(await lease.release()).toBe(true)
}

/**
 * Queues a waiter behind a dead waiter whose client was subscribed on the lock's node. The release passes over the dead
 * waiter.
 */
async function behindTheDead({ limited, other }: Pair, key: string): Promise<void> {
  const lock = `lock:{${key}}`
  const held = await limited.lock(key)
  const wait = other.lock(key, { fair: true, timeout: 3_000 })
  wait.catch(() => {})
  const { redis } = await cluster.masterOf(slotOf(key))
  await eventually(async () => (await redis.zcard(`${lock}:q`)) === 1)
  const [, ticket] = await redis.zrange(`${lock}:q`, '0', '0', 'WITHSCORES')
  const dead = newClientId()
  await redis.zadd(`${lock}:q`, Number(ticket) - 1, `${newHoldId(dead)} 0 30000 30000 0 dead`)
  const node = Number.parseInt(String(await redis.cluster('MYID')).slice(0, 2), 16) / 256
  await redis.zadd(`${lock}:d`, 1.5e13 + node, `${dead}@`)
  await redis.pexpire(`${lock}:d`, 30_000)
  expect(await held.release()).toBe(true)
  expect(await (await wait).release()).toBe(true)
}

/**
 * Parks a waiter, and waits until the lock's node has recorded that the waiter's client is subscribed there. With this
 * record, a release can pass over the waiter if its client has died.
 */
async function whereItIsHeard({ limited, other }: Pair, key: string): Promise<void> {
  const held = await other.lock(key)
  const wait = limited.lock(key, { fair: true })
  wait.catch(() => {})
  const { redis } = await cluster.masterOf(slotOf(key))
  await eventually(
    async () => (await redis.zrange(`lock:{${key}}:d`, '0', '-1')).some(member => /@/.test(member)),
    1_000,
  ).finally(() => held.release())
  expect(await (await wait).release()).toBe(true)
}

test('a user with these rights can do everything, and no error is reported', async () => {
  await using at = await scene('minimal', aclRule([mutex], { cluster: true }))
  expect(await work(at.limited, at.other, admins(), 'minimal')).toEqual([])
  for (const task of Object.values(tasks)) await task(at, freshKey())
  expect(at.warnings).toEqual([])
})

const rights = aclRule([mutex], { cluster: true }).filter(rule => /^[+~&]/.test(rule))
/**
 * The right to read the table of slots. Without it the client knows no server, so every call rejects with an error that
 * names the missing right.
 */
const table = '+cluster|slots'

/** For each right that is needed only on a cluster: a task that needs this right. */
const tasks: Record<string, (at: Pair, key: string) => Promise<void>> = {
  '+asking': whileSlotMoves,
  '+cluster|myid': behindTheDead,
  '+pubsub|shardnumsub': whereItIsHeard,
}

describe('without one of its rights', () => {
  const alone = new Set(aclRule([mutex]).filter(rule => rule.startsWith('+')))
  // A subscription may be kept for longer than `work` takes.
  const others = rights.filter(
    right => !alone.has(right) && ![table, '+sunsubscribe', ...Object.keys(tasks)].includes(right),
  )
  // `alone` has the commands that a client also needs on a single server. acl.test.ts shows that `work` fails without the
  // right to one of them. This test fails if any other command in `sent.cluster` of test/kit/rights.ts is removed.
  test.concurrent.each(others)('%s: something fails', async right => {
    const name = `without-${rights.indexOf(right)}`
    await using at = await scene(name, without(right))
    expect(await work(at.limited, at.other, admins(), name)).not.toEqual([])
  })

  // This test fails if `hearOutAsking` is not called in src/redis/clients.ts: the process has an unhandled rejection.
  test.each(Object.entries(tasks))('%s: one task fails', async (right, task) => {
    await using at = await scene(`without-${rights.indexOf(right)}`, without(right))
    await expect(task(at, freshKey())).rejects.toThrow()
  })

  test(`${table}: no call is served, and each error gives the reason`, async () => {
    await using at = await scene('no-table', without(table))
    const call = at.limited.lock('key')
    await expect(call).rejects.toThrow(LockConnectionError)
    await expect(call).rejects.toThrow(/cluster\|slots/)
  })
})

function without(right: string): string[] {
  const other = right.startsWith('+') ? right.replace('+', '-') : `${right[0]}others:*`
  return aclRule([mutex], { cluster: true }).map(rule => (rule === right ? other : rule))
}

test.each([
  ['6', Cluster],
  ['5', Cluster5 as unknown as typeof Cluster],
])(
  'the password is changed, and the client learns of the new one from its Cluster of ioredis %s',
  async (version, Cluster) => {
    const username = `rotating-${version}`
    for (const redis of admins()) await redis.acl('SETUSER', username, 'on', '>first', '~*', '&*', '+@all')
    const source = new Cluster(cluster.addresses, { lazyConnect: true, redisOptions: { username, password: 'first' } })
    await using locks = new LockClient(source, { outageTimeout: 10_000 })
    const keys = [freshKey('a'), freshKey('b'), freshKey('c')]
    const held = await Promise.all(keys.map(key => locks.lock(key)))
    const waiting = locks.lock(keys[0]!, { fair: true })
    for (const redis of admins()) {
      await redis.acl('SETUSER', username, 'resetpass', '>second')
      await redis.call('CLIENT', 'KILL', 'USER', username)
    }
    const call = locks.lock(freshKey())
    await eventually(async () => (await Promise.all(admins().map(redis => redis.acl('LOG')))).join().includes(username))
    source.options.redisOptions!.password = 'second'
    expect((await call).held).toBe(true)
    expect(await Promise.all(held.map(lease => lease.release()))).toEqual([true, true, true])
    expect((await waiting).held).toBe(true)
    // Only the connections for messages are closed now.
    await Promise.all(admins().map(redis => redis.call('CLIENT', 'KILL', 'TYPE', 'PUBSUB', 'SKIPME', 'yes')))
    const next = locks.lock(keys[0]!, { fair: true })
    await eventually(async () => (await locks.inspect(keys[0]!)).waiters.length === 1)
    expect(await (await waiting).release()).toBe(true)
    expect((await next).held).toBe(true)
  },
)

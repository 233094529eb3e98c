/**
 * While a slot moves in the old way, key by key, the keys of one lock are on two nodes. Each script is run on each way in which
 * they can be divided, once, and either does what it does on a lock that is in one place, or is put off and has changed nothing.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Cluster } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { mutex } from '../../../src/kinds/mutex/mutex.ts'
import { scripts } from '../../../src/kinds/mutex/scripts.generated.ts'
import { newClientId, newHoldId } from '../../../src/redis/ids.ts'
import { Keys, Namespace } from '../../../src/redis/keys.ts'
import { isPassing } from '../../../src/redis/refusals.ts'
import { type Executor, type ScriptRequest, Scripts } from '../../../src/redis/scripts.ts'
import type { Node } from '../../kit/topologies/redis-cluster.ts'
import { again, type Caller, caller } from '../../lua/callers.ts'
import { TestLock } from '../../lua/test-lock.ts'
import { clusterClient, ownCluster, slotOf } from './cluster-crowd.ts'

/** Long enough for all of it. */
const LEASE = 600_000
const terms = { lease: LEASE, ttl: LEASE }

interface Scene {
  readonly name: string
  readonly keys: readonly (keyof TestLock['names'])[]
  readonly lapsed?: true
}

const scenes: readonly Scene[] = [
  { name: 'held', keys: ['lock'] },
  { name: 'held twice', keys: ['lock', 'holds'] },
  { name: 'held, with a queue', keys: ['lock', 'queue', 'expiry'] },
  { name: 'held twice, with a queue', keys: ['lock', 'queue', 'expiry', 'holds'] },
  { name: 'lapsed, with a queue', keys: ['lock', 'queue', 'expiry'], lapsed: true },
  { name: 'lapsed twice, with a queue', keys: ['lock', 'queue', 'expiry', 'holds'], lapsed: true },
]

/** A lock in a scene, and who has to do with it. */
class Stage {
  readonly lock: TestLock
  readonly scene: Scene
  readonly holder: Caller
  readonly inner: Caller
  readonly waiters: readonly Caller[]
  token = 0
  tickets: readonly number[] = []

  constructor(node: Node, runner: Scripts<typeof scripts>, key: string, scene: Scene) {
    this.lock = new TestLock('', node.redis, runner, key)
    this.scene = scene
    this.holder = caller('holder', terms)
    this.inner = again(this.holder)
    this.waiters = [caller('first', terms), caller('second', terms)]
  }

  async set({ redis }: Node): Promise<void> {
    const { lock, holder, waiters } = this
    const { keys, lapsed } = this.scene
    this.token = await lock.grant(holder)
    if (keys.includes('holds')) await lock.acquire(this.inner)
    if (keys.includes('queue')) {
      this.tickets = [await lock.enqueue(waiters[0]!), await lock.enqueue(waiters[1]!)]
      for (const [i, waiter] of waiters.entries()) await lock.tend([waiter, this.tickets[i]!])
    }
    if (lapsed) {
      const record = (await redis.hget(lock.names.lock, 'holder'))!
      await redis.hset(lock.names.lock, 'holder', `${record.slice(0, 17)}${'1'.repeat(16)}${record.slice(33)}`)
      for (const id of await redis.zrange(lock.names.holds, 0, '-1')) await redis.zadd(lock.names.holds, 1, id)
    }
    expect(await redis.exists(...keys.map(key => lock.names[key]))).toBe(keys.length)
  }

  /** What is recorded: of whom, not when. */
  async content(redis: Cluster): Promise<unknown> {
    const { lock, queue, expiry, holds } = this.lock.names
    const names = new Map([this.holder, this.inner, ...this.waiters].map(({ id, name }, i) => [id, `${name} ${i}`]))
    const known = (entry: string) => names.get(entry.slice(0, 28)) ?? 'another'
    const fields = await redis.hgetall(lock)
    const members = async (key: string) => (await redis.zrange(key, 0, '-1')).map(known)
    return {
      fields: Object.keys(fields).sort(),
      holder: fields['holder'] && known(fields['holder'].slice(34)),
      queue: await members(queue),
      expiry: (await members(expiry)).sort(),
      holds: (await members(holds)).sort(),
    }
  }

  /** Every value. Not how long they live: MIGRATE moves that by a ms. */
  async values(redis: Cluster | Node['redis']): Promise<unknown> {
    const { lock, ...sets } = this.lock.names
    const all = Object.values(sets).map(key => redis.zrange(key, 0, '-1', 'WITHSCORES'))
    return [await redis.hgetall(lock), ...(await Promise.all(all))]
  }
}

/** Every call that there is, with the first words of what it may be answered. */
const calls: Readonly<Record<string, (stage: Stage) => Promise<unknown>>> = {
  async acquire({ lock }) {
    return (await lock.acquire(caller('another', terms))).status
  },
  async join({ lock }) {
    const { status, position } = await lock.acquire(caller('another', terms), { queue: true })
    return [status, position]
  },
  async reenter({ lock, holder }) {
    return (await lock.acquire(again(holder))).status
  },
  async release({ lock, holder }) {
    return (await lock.release(holder)).status
  },
  async releaseInner({ lock, inner }) {
    return (await lock.release(inner)).status
  },
  async renew({ lock, holder, inner, token }) {
    const { lock: name } = lock.names
    const asked = (await Promise.all(
      [holder, inner].map(({ id }) => lock.scripts.run('renew', { locks: [name] }, { asked: [id, token, LEASE] })),
    )) as { values: unknown[] }[]
    return asked.map(({ values }) => typeof values[0])
  },
  async pass({ lock, holder, token }) {
    return (await lock.pass(holder, holder, token + 1)).status
  },
  async tend({ lock, waiters, tickets }) {
    if (tickets.length === 0) return undefined
    const { places } = await lock.tend([waiters[0]!, tickets[0]!])
    return places!.map(place => (typeof place === 'number' ? place : place[2]))
  },
  leave: ({ lock, waiters }) => lock.leave(waiters[0]!),
  giveBack: ({ lock, holder }) => lock.leave(holder, { queued: false }),
  forceRelease: ({ lock }) => lock.forceRelease(newHoldId(newClientId())),
  sweep: ({ lock }) => lock.sweep(),
  async inspect({ lock }) {
    const args = { most: 10, ticket: undefined, behind: undefined }
    const { values } = await lock.scripts.run('inspect', lock.names, args)
    const [, , live, page, deadlines] = values as [string, string, number | null, string[], string[]]
    return [live, page.length, deadlines.length]
  },
}

/** Calls that need no other key than that of the lock, where the holder has not re-entered and nobody waits. */
const simple = ['release', 'renew', 'pass']

function titleOf({ scene, moved, call }: { scene: Scene; moved: readonly string[]; call: string }): string {
  return `${call} of a lock that is ${scene.name}, of which ${moved.join(', ') || 'nothing'} has moved`
}

function subsets<T>(list: readonly T[]): T[][] {
  const [one, ...others] = list
  if (one === undefined) return [[]]
  return subsets(others).flatMap(some => [some, [one, ...some]])
}

/** Asks once, as ioredis follows a slot on its way; neither waits nor asks again. */
class Once implements Executor {
  readonly #redis: Cluster
  constructor(redis: Cluster) {
    this.#redis = redis
  }
  async ask<T>(request: ScriptRequest<T>): Promise<T> {
    try {
      return await request.read({ reply: await request.send(this.#redis), sent: 0, repeated: false })
    } catch (error) {
      if (request.rephrase(error as Error)) return this.ask(request)
      throw error
    }
  }
}

// Break: `redis.call('EXISTS', queue, expiry)` to `if false then redis.call('EXISTS', queue, expiry) end` in lua/shared/keys.lua: where the
// queue is still to come, its lock is opened, or given to whoever asks.
// Break: `if holds then` to `if holds and false then` in lua/shared/all.lua: holds that are still to come are taken for gone, or counted anew.
// Break: `|\bnon local key\b` away in src/redis/refusals.ts: callers are told that Redis has refused, and ask no more.
test('I1 I3 I5 I8: a script sees all keys that it needs, or none', { timeout: 90_000 }, async () => {
  const cluster = await ownCluster()
  const redis = clusterClient(cluster)
  const patient = clusterClient(cluster)
  onTestFinished(() => redis.disconnect())
  redis.options.retryDelayOnTryAgain = 1
  const space = new Namespace('lock:', true)
  const settings = { cluster: true, inboxes: space.inboxes, tokenMemory: LEASE }
  const runner = new Scripts(new Once(redis), scripts, settings)
  expect(new Keys(space, mutex).of('{m}:x').lock).toBe('lock:{m}:x')
  const slot = slotOf('{m}:x')
  const home = await cluster.masterOf(slot)
  const away = cluster.nodes.slice(0, 3).find(node => node !== home) as Node

  const cases = scenes.flatMap(scene => {
    return subsets(scene.keys).flatMap(moved => Object.keys(calls).map(call => ({ scene, moved, call })))
  })
  const staged = await Promise.all(
    cases.map(async (each, i) => {
      const split = new Stage(home, runner, `{m}:${i}`, each.scene)
      await split.set(home)
      return { ...each, split, before: await split.values(home.redis) }
    }),
  )

  // What each call does where nothing moves.
  const usual = new Map<string, unknown>()
  for (const scene of scenes) {
    for (const [name, call] of Object.entries(calls)) {
      const stage = new Stage(home, runner, `{m}:${scene.name}:${name}`, scene)
      await stage.set(home)
      const reply = await call(stage)
      usual.set(`${scene.name} ${name}`, [reply, await stage.content(patient)])
    }
  }

  await away.redis.cluster('SETSLOT', slot, 'IMPORTING', home.id)
  await home.redis.cluster('SETSLOT', slot, 'MIGRATING', away.id)
  for (const { split, moved } of staged) {
    const names = moved.map(key => split.lock.names[key])
    if (names.length > 0) await home.redis.migrate('127.0.0.1', away.server.port, '', 0, 5_000, 'KEYS', ...names)
  }
  const outcomes = await Promise.all(
    staged.map(async each => {
      const outcome = await calls[each.call]!(each.split).then(
        reply => ({ reply }),
        (error: Error) => ({ error }),
      )
      return { ...each, outcome }
    }),
  )
  const [here, there] = await Promise.all(
    [home, away].map(({ redis }) => redis.cluster('GETKEYSINSLOT', slot, 1_000_000) as Promise<string[]>),
  )
  const twice = here!.filter(key => there!.includes(key))
  const makers = outcomes.filter(({ split }) => Object.values(split.lock.names).some(name => twice.includes(name)))
  const troubles = makers.map(each => `${titleOf(each)} makes a key that is on the other node already`)
  for (const key of twice) await home.redis.unlink(key)
  await cluster.moveSlot(slot, away)

  const served = new Set<string>()
  const putOff = new Set<string>()
  for (const { scene, moved, call, split, before, outcome } of outcomes) {
    const title = titleOf({ scene, moved, call })
    const kind = `${scene.name} ${call}`
    if ('error' in outcome) {
      if (!isPassing(outcome.error)) troubles.push(`${title} fails: ${outcome.error.message}`)
      if (!isDeepStrictEqual(await split.values(patient), before)) troubles.push(`${title} fails half-way`)
      putOff.add(kind)
    } else {
      const found = [outcome.reply, await split.content(patient)]
      if (!isDeepStrictEqual(found, usual.get(kind)))
        troubles.push(`${title} does ${JSON.stringify(found)}, and usually ${JSON.stringify(usual.get(kind))}`)
      served.add(`${kind} ${moved.length === scene.keys.length}`)
    }
  }
  expect(troubles).toEqual([])
  // Leases of locks that are whole last, however long the slot takes.
  for (const [where, place] of [
    ['here', false],
    ['there', true],
  ] as const) {
    for (const call of simple) expect(served, `${call} ${where}`).toContain(`held ${call} ${place}`)
    expect(served, where).toContain(`held twice renew ${place}`)
  }
  expect(putOff).toContain('held, with a queue release')
  expect(putOff).toContain('held twice renew')
})

/**
 * Tests locks whose keys are on two nodes, while their slot moves key by key. Each script runs once for each way to
 * divide the keys. Either its effect is the same as on an undivided lock, or it is refused temporarily and changes
 * nothing.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Cluster } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Outcome, settle } from '../../../src/outcome.ts'
import { isPassing } from '../../../src/redis/refusals.ts'
import type { Executor, ScriptRequest } from '../../../src/redis/scripts.ts'
import { type Node, RedisCluster } from '../../kit/topologies/redis-cluster.ts'
import { clusterClient, slotOf } from './cluster-crowd.ts'
import { mutexes } from './split-mutexes.ts'
import { readWriteLocks, semaphores } from './split-permits.ts'
import type { Scene, Stage } from './split-play.ts'

let cluster: RedisCluster

beforeAll(async () => {
  cluster = await RedisCluster.start()
})

afterAll(() => cluster?.stop())

function titleOf({ scene, moved, call }: { scene: Scene; moved: readonly string[]; call: string }): string {
  return `${call} of a lock that is ${scene.name}, of which ${moved.join(', ') || 'nothing'} has moved`
}

function subsets<T>(list: readonly T[]): T[][] {
  const [one, ...others] = list
  if (one === undefined) return [[]]
  return subsets(others).flatMap(some => [some, [one, ...some]])
}

/** Sends a request once. Follows a moving slot as ioredis does, but does not wait and does not repeat the request. */
class Once implements Executor {
  readonly #redis: Cluster
  constructor(redis: Cluster) {
    this.#redis = redis
  }
  post<T>(request: ScriptRequest<T>, to: Outcome<T>): void {
    settle(this.#ask(request), to)
  }

  async #ask<T>(request: ScriptRequest<T>): Promise<T> {
    try {
      return await request.read({ reply: await request.send(this.#redis), sent: 0, repeated: false })
    } catch (error) {
      if (request.rephrase(error as Error)) return this.#ask(request)
      throw error
    }
  }
}

/** Returns every value of the lock's keys. Leaves out expiry times, because MIGRATE shifts them by a ms. */
async function valuesOf({ names }: Stage, redis: Cluster | Node['redis']): Promise<unknown> {
  const { lock, shares, ...sets } = names
  const hashes = [lock, shares].flatMap(key => (key === undefined ? [] : [redis.hgetall(key)]))
  const all = Object.values(sets).map(key => redis.zrange(key, 0, '-1', 'WITHSCORES'))
  return Promise.all<unknown>([...hashes, ...all])
}

// This test fails if `if not deadlines then return redis.error_reply('ERR non local key') end` becomes `if false then
// return end` in lua/mutex/acquire.lua and `if not deadlines then return redis.error_reply('ERR non local key') end`
// becomes `if false then return end` in lua/mutex/release.lua: a script that needs the queue, and has not received its
// name, fails.  It also fails if `if s.holds and not deadlines then return error({ err = 'ERR non local key' }) end`
// becomes `if false then return end` in lua/mutex/renew.lua, for the same reason.  It also fails if `if (all && (least
// === count || refusal.includes('non local key'))) return false` becomes `if (all) return false` in
// src/redis/scripts.ts: a lock without a queue cannot be renewed or released while its slot moves.  It also fails if
// `of.cluster ? suffixes` becomes `false ? suffixes` in src/redis/keys.ts: a script that empties a key
// fails in the middle. A waiter has then received the message that it is granted the lock, but the grant is not
// recorded, and the next waiter is admitted as well.  It also fails if `popped and redis.pcall('ZPOPMIN', s.queue)`
// becomes `false` in lua/holder.lua: the script fails in the middle if the only waiter is dead.  It also fails if `'non
// local key': 'not now',` is removed in src/redis/refusals.ts: the client takes a temporary error for a final refusal,
// and rejects its callers instead of asking again.
test.each([mutexes, semaphores, readWriteLocks])(
  'I1 I3 I5 I8: a script sees all keys that it needs, or none ($kind)',
  { timeout: 90_000 },
  async play => {
    const { kind, scenes, calls } = play
    const redis = clusterClient(cluster)
    const patient = clusterClient(cluster)
    onTestFinished(() => redis.disconnect())
    redis.options.retryDelayOnTryAgain = 1
    const once = new Once(redis)
    const slot = slotOf(`{${kind}}`)
    const home = await cluster.masterOf(slot)
    const away = cluster.nodes.slice(0, 3).find(node => node !== home) as Node
    const staged = async (name: string, scene: Scene) => {
      const stage = play.stage(home, once, `{${kind}}:${name}`, scene)
      await stage.set(home)
      return stage
    }

    const cases = scenes.flatMap(scene => {
      return subsets(scene.keys).flatMap(moved => calls.map(call => ({ scene, moved, call })))
    })
    const split = await Promise.all(
      cases.map(async (each, i) => {
        const stage = await staged(`${i}`, each.scene)
        return { ...each, stage, before: await valuesOf(stage, home.redis) }
      }),
    )

    // Maps each call to its reply while no slot moves.
    const usual = new Map<string, unknown>()
    for (const scene of scenes) {
      for (const call of calls) {
        const stage = await staged(`${scene.name}:${call}`, scene)
        const reply = await stage.call(call)
        usual.set(`${scene.name} ${call}`, [reply, await stage.content(patient)])
      }
    }

    await away.redis.cluster('SETSLOT', slot, 'IMPORTING', home.id)
    await home.redis.cluster('SETSLOT', slot, 'MIGRATING', away.id)
    for (const { stage, moved } of split) {
      const names = moved.map(key => stage.names[key]!)
      if (names.length > 0) await home.redis.migrate('127.0.0.1', away.server.port, '', 0, 5_000, 'KEYS', ...names)
    }
    const outcomes = await Promise.all(
      split.map(async each => {
        const outcome = await each.stage.call(each.call).then(
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
    const makers = outcomes.filter(({ stage }) => Object.values(stage.names).some(name => twice.includes(name)))
    const troubles = makers.map(each => `${titleOf(each)} makes a key that is on the other node already`)
    for (const key of twice) await home.redis.unlink(key)
    await cluster.moveSlot(slot, away)

    const served = new Set<string>()
    const putOff = new Set<string>()
    for (const { scene, moved, call, stage, before, outcome } of outcomes) {
      const title = titleOf({ scene, moved, call })
      const name = `${scene.name} ${call}`
      if ('error' in outcome) {
        if (!isPassing(outcome.error)) troubles.push(`${title} fails: ${outcome.error.message}`)
        if (!isDeepStrictEqual(await valuesOf(stage, patient), before)) troubles.push(`${title} fails half-way`)
        putOff.add(name)
      } else {
        const found = [outcome.reply, await stage.content(patient)]
        if (!isDeepStrictEqual(found, usual.get(name)))
          troubles.push(`${title} does ${JSON.stringify(found)}, and usually ${JSON.stringify(usual.get(name))}`)
        served.add(`${name} ${moved.length === scene.keys.length}`)
      }
    }
    expect(troubles).toEqual([])
    // The calls in `wholeThough` must be served while the slot moves, if all keys of the lock are on one node. These
    // calls include renewals, so a holder keeps its lease, however long the move takes.
    for (const name of play.wholeThough)
      for (const there of [false, true]) expect(served, `${there}`).toContain(`${name} ${there}`)
    for (const name of play.putOff) expect(putOff).toContain(name)
  },
)

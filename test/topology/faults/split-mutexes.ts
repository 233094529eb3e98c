/** Defines the states of mutexes whose keys cluster-split.test.ts divides between two nodes. */
import type { Cluster } from 'ioredis'
import { expect } from 'vitest'
import { mutex } from '../../../src/kinds/mutex/mutex.ts'
import { newClientId } from '../../../src/redis/ids.ts'
import { type Executor, Scripts } from '../../../src/redis/scripts.ts'
import { newHoldId } from '../../kit/ids.ts'
import { renewed } from '../../kit/names.ts'
import type { Node } from '../../kit/topologies/redis-cluster.ts'
import { again, type Caller, caller } from '../../lua/callers.ts'
import { TestLock, WAITER } from '../../lua/test-lock.ts'
import { knownBy, LEASE, type Play, type Scene, type Stage, settings, terms } from './split-play.ts'

const withQueue = ['lock', 'queue', 'deadlines']

/** `twice`: the holder has re-entered. `ended`: which of its holds has ended. `dead`: the only waiter is dead. */
const scenes: readonly (Scene & {
  readonly twice?: true
  readonly ended?: 'first' | 'second'
  readonly dead?: true
})[] = [
  { name: 'held', keys: ['lock'] },
  { name: 'held twice', keys: ['lock', 'deadlines'], twice: true },
  { name: 'held once of twice, with a queue', keys: withQueue, twice: true, ended: 'second' },
  { name: 'held, with a queue', keys: withQueue },
  { name: 'held twice, with a queue', keys: withQueue, twice: true },
  { name: 'held once, with a dead waiter', keys: withQueue, twice: true, ended: 'first', dead: true },
  { name: 'lapsed, with a queue', keys: withQueue, lapsed: true },
  { name: 'lapsed twice, with a queue', keys: withQueue, twice: true, lapsed: true },
]

class MutexStage implements Stage {
  readonly lock: TestLock
  readonly scene: (typeof scenes)[number]
  readonly holder: Caller
  readonly inner: Caller
  readonly waiters: readonly Caller[]
  token = 0
  tickets: readonly number[] = []

  constructor(node: Node, executor: Executor, key: string, scene: (typeof scenes)[number]) {
    this.lock = new TestLock('', node.redis, new Scripts(executor, mutex.scripts, settings), key)
    this.scene = scene
    this.holder = caller('holder', terms)
    this.inner = again(this.holder)
    this.waiters = [caller('first', terms), caller('second', terms)]
  }

  get names(): Readonly<Record<string, string>> {
    return { ...this.lock.names }
  }

  async set({ redis }: Node): Promise<void> {
    const { lock, holder, waiters } = this
    const { keys, twice, lapsed, ended, dead } = this.scene
    this.token = await lock.grant(holder)
    if (twice) await lock.acquire(this.inner)
    if (ended) await lock.release(ended === 'first' ? holder : this.inner)
    if (keys.includes('queue')) {
      const queued = dead ? waiters.slice(0, 1) : waiters
      const tickets: number[] = []
      for (const waiter of queued) tickets.push(await lock.enqueue(waiter))
      this.tickets = tickets
      for (const [i, waiter] of queued.entries()) await lock.tend([waiter, tickets[i]!])
    }
    if (dead) {
      for (const claim of await redis.zrange(lock.names.queue, 0, '-1')) await redis.zadd(lock.names.queue, 1, claim)
      await redis.zrem(lock.names.deadlines, waiters[0]!.id)
    }
    if (lapsed) {
      const record = (await redis.hget(lock.names.lock, 'holder'))!
      await redis.hset(lock.names.lock, 'holder', `${record.slice(0, 17)}${'1'.repeat(16)}${record.slice(33)}`)
      const { deadlines } = lock.names
      for (const id of await redis.zrangebyscore(deadlines, 0, `(${WAITER}`)) await redis.zadd(deadlines, 1, id)
    }
    expect(await redis.exists(...keys.map(key => this.names[key]!))).toBe(keys.length)
  }

  call(name: string): Promise<unknown> {
    return calls[name]!(this)
  }

  async content(redis: Cluster): Promise<unknown> {
    const { lock, queue, deadlines } = this.lock.names
    const known = knownBy(this.holder, this.inner, ...this.waiters)
    const fields = await redis.hgetall(lock)
    const members = async (key: string) => (await redis.zrange(key, 0, '-1')).map(known)
    return {
      fields: Object.keys(fields).sort(),
      holder: fields['holder'] && known(fields['holder'].slice(34)),
      queue: await members(queue),
      deadlines: (await members(deadlines)).sort(),
    }
  }
}

const calls: Readonly<Record<string, (stage: MutexStage) => Promise<unknown>>> = {
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
    const asked = (await Promise.all(
      [holder, inner].map(({ id }) => lock.scripts.run('renew', renewed(lock.names.lock), [id, token, LEASE])),
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
  leaveInner: ({ lock, inner }) => lock.leave(inner),
  giveBack: ({ lock, holder }) => lock.leave(holder, { queued: false }),
  forceRelease: ({ lock }) => lock.forceRelease(newHoldId(newClientId())),
  sweep: ({ lock }) => lock.sweep(),
  async inspect({ lock }) {
    const { values } = await lock.scripts.run('inspect', lock.keys, [10])
    const [, , live, page, deadlines] = values as [string, string, number | null, string[], string[]]
    return [live, page.length, deadlines.length]
  },
}

export const mutexes: Play = {
  kind: 'mutex',
  scenes,
  calls: Object.keys(calls),
  stage: (...args) => new MutexStage(...args),
  wholeThough: [
    'held once, with a dead waiter releaseInner',
    // If the holder has not re-entered and no caller waits, these calls need only the lock's first key.
    ...['release', 'renew', 'pass'].map(call => `held ${call}`),
    'held twice renew',
  ],
  putOff: ['held, with a queue release', 'held twice renew'],
}

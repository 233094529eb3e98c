/** Defines the states of semaphores and read-write locks whose keys cluster-split.test.ts divides between two nodes. */
import type { Cluster } from 'ioredis'
import { expect } from 'vitest'
import { reading } from '../../../src/kinds/permits/read-write.ts'
import { semaphore } from '../../../src/kinds/permits/semaphore.ts'
import { newClientId } from '../../../src/redis/ids.ts'
import type { Executor } from '../../../src/redis/scripts.ts'
import { newHoldId } from '../../kit/ids.ts'
import type { Node } from '../../kit/topologies/redis-cluster.ts'
import { caller } from '../../lua/callers.ts'
import { type Asker, another, asker, keysOf, runnerOf, TestSemaphore } from '../../lua/semaphore.ts'
import { knownBy, LEASE, type Play, type Scene, type Stage, settings, terms } from './split-play.ts'

/** A scene with holders, waiters, and a newcomer. `held` and `queued` list what each holder and each waiter wants. */
interface PermitsScene extends Scene {
  readonly held: readonly string[]
  readonly queued?: readonly string[]
  /** Whether the lock was held before and is free now. */
  readonly free?: true
}

class PermitsStage implements Stage {
  readonly lock: TestSemaphore
  readonly scene: PermitsScene
  readonly holders: readonly Asker[]
  readonly waiters: readonly Asker[]
  readonly newcomer: Asker
  tokens: readonly number[] = []
  tickets: readonly number[] = []

  constructor(lock: TestSemaphore, scene: PermitsScene, wanted: string) {
    this.lock = lock
    this.scene = scene
    this.holders = scene.held.map((wants, i) => asker(caller(`holder ${i}`, terms), wants))
    this.waiters = (scene.queued ?? []).map((wants, i) => asker(caller(`waiter ${i}`, terms), wants))
    this.newcomer = asker(caller('newcomer', terms), wanted)
  }

  get names(): Readonly<Record<string, string>> {
    return { ...this.lock.names }
  }

  async set({ redis }: Node): Promise<void> {
    const { lock, holders, waiters } = this
    for (const holder of holders) this.tokens = [...this.tokens, (await lock.acquire(holder)).token!]
    for (const waiter of waiters) this.tickets = [...this.tickets, (await lock.acquire(waiter, 'queue')).ticket!]
    for (const [i, waiter] of waiters.entries()) await lock.tend([waiter, this.tickets[i]!])
    if (this.scene.free) for (const holder of holders) await lock.release(holder)
    if (this.scene.lapsed) for (const holder of holders) await lock.lapse(holder)
    const names = this.scene.keys.map(key => this.names[key]!)
    expect(await redis.exists(...names), this.scene.name).toBe(names.length)
  }

  call(name: string): Promise<unknown> {
    return calls[name]!(this)
  }

  async content(redis: Cluster): Promise<unknown> {
    const { lock, shares, ...sets } = this.names
    const known = knownBy(...this.holders, ...this.waiters, this.newcomer)
    const { taken, turn, ...fields } = await redis.hgetall(lock!)
    const members = Object.entries(sets).map(async ([what, key]) => {
      const entries = (await redis.zrange(key, 0, '-1')).map(known)
      return [what, what === 'queue' || what === 'readers' ? entries : entries.sort()]
    })
    const groups = shares ? Object.keys(await redis.hgetall(shares)).filter(name => !name.startsWith('t')) : []
    const names = Object.keys(fields).map(name => (name.length === 28 ? known(name) : name))
    return {
      taken,
      turn,
      fields: names.sort(),
      groups: groups.sort(),
      ...Object.fromEntries(await Promise.all(members)),
    }
  }
}

const calls: Readonly<Record<string, (stage: PermitsStage) => Promise<unknown>>> = {
  async acquire({ lock, newcomer }) {
    return (await lock.acquire(newcomer)).status
  },
  async join({ lock, newcomer }) {
    const { status, position } = await lock.acquire(newcomer, 'queue')
    return [status, position]
  },
  async again({ lock, holders }) {
    return (await lock.acquire(another(holders[0]!))).status
  },
  async release({ lock, holders }) {
    return (await lock.release(holders[0]!))[0]
  },
  async renew({ lock, holders, tokens }) {
    return typeof (await lock.renew(holders[0]!, tokens[0]!, LEASE))
  },
  async tend({ lock, waiters, tickets }) {
    if (waiters.length === 0) return undefined
    const [place] = await lock.tend([waiters[0]!, tickets[0]!])
    return typeof place === 'number' ? place : (place as unknown[])[2]
  },
  async leave({ lock, waiters }) {
    return waiters[0] && lock.leave(waiters[0])
  },
  giveBack: ({ lock, holders }) => lock.leave(holders[0]!, { queued: false }),
  forceRelease: ({ lock }) => lock.forceRelease(newHoldId(newClientId())),
  sweep: ({ lock }) => lock.sweep(),
  async inspect({ lock }) {
    const { ids } = await lock.holdersAfter('', 10)
    return ids.length
  },
}

function playOf(kind: typeof semaphore | typeof reading, scenes: readonly PermitsScene[], wanted: string) {
  const keys = keysOf(kind, true)
  return {
    kind: kind.name,
    scenes,
    calls: Object.keys(calls),
    stage(node: Node, executor: Executor, key: string, scene: Scene) {
      const lock = new TestSemaphore(node.redis, runnerOf(kind, executor, settings), keys.of(key))
      return new PermitsStage(lock, scene as PermitsScene, wanted)
    },
  }
}

const held = ['lock', 'deadlines']
const withQueue = [...held, 'queue']

export const semaphores: Play = {
  ...playOf(
    semaphore,
    [
      { name: 'free', keys: ['lock'], held: ['2/3'], free: true },
      { name: 'held in part', keys: held, held: ['2/3'] },
      { name: 'held, with a queue', keys: withQueue, held: ['2/3', '1/3'], queued: ['1/3', '2/3'] },
      {
        name: 'held by a group, with waiters of groups',
        keys: [...held, 'waiting', 'shares'],
        held: ['2/3;2;;a', '1/3'],
        queued: ['1/3;2;;a', '2/3;;;b'],
      },
      { name: 'lapsed, with a queue', keys: withQueue, held: ['2/3', '1/3'], queued: ['1/3', '2/3'], lapsed: true },
    ],
    '1/3',
  ),
  wholeThough: ['held in part release', 'held in part renew', 'held in part acquire'],
  putOff: ['held in part renew', 'held, with a queue release'],
}

const [read, written] = ['1/999999999', '1000000000/1000000000']
const withQueues = [...withQueue, 'readers']

export const readWriteLocks: Play = {
  ...playOf(
    reading,
    [
      { name: 'free', keys: ['lock'], held: [read], free: true },
      { name: 'read', keys: held, held: [read, read] },
      { name: 'written', keys: held, held: [written] },
      { name: 'read, with queues', keys: withQueues, held: [read], queued: [written, read] },
      { name: 'lapsed, with queues', keys: withQueues, held: [written], queued: [written, read], lapsed: true },
    ],
    read,
  ),
  wholeThough: ['read release', 'read renew', 'written release', 'written renew'],
  putOff: ['read renew', 'read, with queues release'],
}

/**
 * Clients of a cluster that contend for locks without a pause, while a test does something to the cluster, and the
 * verdict of the history checker on what they saw.
 *
 * Each key has fair callers of every client, or unfair ones. The queues are read all the time, which is what order is
 * judged by (I3). Nothing is excused but what a test says itself: neither are lost connections.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster, Command } from 'ioredis'
import { onTestFinished } from 'vitest'
import { type ClientOptions, LockClient } from '../../../src/index.ts'
import { check, type Verdict } from '../../history/check.ts'
import type { Fields, Kind } from '../../history/events.ts'
import { Memory, queueEntries, RecordedClient } from '../../history/recorded.ts'
import { now } from '../../history/recorder.ts'
import { eventually } from '../../kit/time.ts'
import { RedisCluster } from '../../kit/topologies/redis-cluster.ts'

/** A manual failover that does not come about holds everybody up for 5 s: live waiters have to last longer. */
const terms = { waiterTtl: 10_000, lease: 20_000, outageTimeout: 20_000 } satisfies ClientOptions
const workers = ['one', 'two', 'three']
/** Between two looks at the queues, in ms. */
const LOOK = 25
/** In which an operation on the cluster has to be made up for, in ms. */
export const SOON = 15_000

export interface Contest {
  readonly key: string
  readonly fair: boolean
}

/** A cluster of the test's own, stopped after it. */
export async function ownCluster(...args: string[]): Promise<RedisCluster> {
  const cluster = await RedisCluster.start(args)
  onTestFinished(() => cluster.stop())
  return cluster
}

/** A connection to all of it, closed after the test. */
export function clusterClient(cluster: RedisCluster): Cluster {
  const redis = new Cluster(cluster.addresses, { redisOptions: { maxRetriesPerRequest: null } })
  redis.on('error', () => {})
  onTestFinished(() => {
    redis.disconnect()
  })
  return redis
}

/** A lock client, closed after the test. */
export function clusterLocks(cluster: RedisCluster, options: ClientOptions = {}): LockClient {
  const source = new Cluster(cluster.addresses, { lazyConnect: true })
  const locks = new LockClient(source, { ...terms, ...options })
  onTestFinished(() => locks.close())
  return locks
}

export function slotOf(key: string): number {
  return new Command('get', [lockName(key)]).getSlot()
}

export class Crowd {
  readonly #cluster: Cluster
  readonly #contests: readonly Contest[]
  readonly #history = new Memory()
  readonly #served = new Map<string, number>()
  readonly #done: Promise<unknown>[] = []
  #open = true

  /** Each client has `callers` callers of each key. */
  constructor(cluster: RedisCluster, contests: readonly Contest[], callers = 3) {
    this.#cluster = clusterClient(cluster)
    this.#contests = contests
    const { waiterTtl, lease: longestLease, outageTimeout } = terms
    this.record('run', { seed: 0, waiterTtl, longestLease, outageTimeout })
    this.record('clock', { wall: Date.now() })
    for (const label of workers) {
      const client = new RecordedClient(label, clusterLocks(cluster, { label }), this.#history)
      for (const contest of contests) {
        for (let caller = 0; caller < callers; caller++) this.#done.push(this.#call(label, client, contest, caller))
      }
    }
    this.#done.push(this.#watch())
  }

  /** Resolves when callers of every key and every client have been served anew. */
  async served(limit = SOON): Promise<void> {
    this.#served.clear()
    const all = this.#contests.length * workers.length
    await eventually(() => this.#served.size === all, limit)
  }

  get now(): number {
    return now()
  }

  /** What has happened to the data of the cluster from outside, for the checker. */
  record<K extends Kind>(kind: K, fields: Fields<K>): void {
    this.#history.record(kind, fields)
  }

  /** Lets everybody finish. */
  async end(): Promise<Verdict> {
    this.#open = false
    this.record('healed', { bound: SOON })
    await Promise.all(this.#done)
    return check(this.#history.events)
  }

  async #call(worker: string, client: RecordedClient, { key, fair }: Contest, caller: number): Promise<void> {
    for (let turn = 0; this.#open; turn++) {
      const owner = fair ? { owner: `${key}.${worker}.${caller}.${turn}` } : undefined
      try {
        const lease = await client.lock(key, { fair, fairAfter: Number.POSITIVE_INFINITY, ...owner })
        this.#served.set(`${key} ${worker}`, now())
        await sleep(2 + Math.random() * 10)
        await client.release(lease)
      } catch {
        await sleep(50)
      }
    }
  }

  async #watch(): Promise<void> {
    while (this.#open) {
      const looks = this.#contests.filter(({ fair }) => fair).map(({ key }) => this.#look(key))
      await Promise.all([sleep(LOOK), ...looks])
    }
  }

  async #look(key: string): Promise<void> {
    const from = now()
    const flat = await this.#cluster.zrange(`${lockName(key)}:queue`, '0', '-1', 'WITHSCORES').catch(() => [])
    const entries = queueEntries(flat)
    if (entries.length > 1) this.record('queue', { key, from, entries })
  }
}

/** The name of a lock's key; keys with a hash tag keep it. */
function lockName(key: string): string {
  return key.includes('{') ? `lock:${key}` : `lock:{${key}}`
}

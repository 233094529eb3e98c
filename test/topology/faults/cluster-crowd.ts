/**
 * Lets clients of a cluster contend for locks without a pause while a test changes the cluster, for example moves a
 * slot. The clients record what happens, and then the checker (test/history) looks in their record for violations of
 * the promises in docs/guarantees.md.
 *
 * For each key, either all callers are fair, or all are unfair. Of the callers of a read-write lock, two in three read.
 * Of the callers of a semaphore with two permits, one in three wants both. The queues are read all the time, because
 * the checker needs their content for the promise I3. A violation counts as a failure, unless the test has recorded a
 * fault that explains it. A lost connection explains no violation.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster, Command } from 'ioredis'
import { onTestFinished } from 'vitest'
import { type ClientOptions, LockClient } from '../../../src/index.ts'
import { decodeClaim, decodePermitsClaim } from '../../../src/kinds/claim.ts'
import { checkPassing, type Verdict } from '../../history/check.ts'
import type { Fields, Kind } from '../../history/events.ts'
import { Memory, queueEntries, RecordedClient } from '../../history/recorded.ts'
import { now } from '../../history/recorder.ts'
import { lockFor, optionsFor } from '../../history/soak/lock-for.ts'
import type { Wants } from '../../history/wants.ts'
import { eventually } from '../../kit/time.ts'
import { RedisCluster } from '../../kit/topologies/redis-cluster.ts'

/** If a manual failover fails, all clients are delayed for 5 s. Waiters must not expire within that time. */
const terms = { waiterTtl: 10_000, lease: 20_000, outageTimeout: 20_000 } satisfies ClientOptions
const workers = ['one', 'two', 'three']
/** Time between two reads of the queues in Redis, in ms. */
const LOOK = 25
/** Time in ms within which clients must recover from the effects of an operation on the cluster. */
export const SOON = 15_000

export interface Contest {
  readonly key: string
  readonly fair: boolean
  /** The kind of lock. Default: a mutex. */
  readonly kind?: 'semaphore' | 'readWrite'
}

/** Contests whose keys are spread over all masters. The master of `job-0` has a key of each kind of lock. */
export const contests: readonly Contest[] = [
  { key: 'job-0', fair: true },
  { key: 'job-1', fair: false },
  { key: 'job-2', fair: true },
  { key: '{job-0}:permits', kind: 'semaphore', fair: true },
  { key: '{job-1}:permits', kind: 'semaphore', fair: false },
  { key: '{job-0}:book', kind: 'readWrite', fair: true },
  { key: '{job-2}:book', kind: 'readWrite', fair: false },
]

function wantsOf({ kind }: Contest, caller: number): Wants | undefined {
  if (kind === 'semaphore') return [caller === 0 ? 2 : 1, 2]
  return kind && (caller === 0 ? 'write' : 'read')
}

/** Starts a cluster for one test. It is stopped after the test. */
export async function ownCluster(...args: string[]): Promise<RedisCluster> {
  const cluster = await RedisCluster.start(args)
  onTestFinished(() => cluster.stop())
  return cluster
}

/** Opens a connection to the whole cluster. It is closed after the test. */
export function clusterClient(cluster: RedisCluster): Cluster {
  const redis = new Cluster(cluster.addresses, { redisOptions: { maxRetriesPerRequest: null } })
  redis.on('error', () => {})
  onTestFinished(() => {
    redis.disconnect()
  })
  return redis
}

/** Makes a lock client, which is closed after the test. */
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

  /** Each client has `callers` concurrent callers for each key. */
  constructor(cluster: RedisCluster, contests: readonly Contest[], callers = 3) {
    this.#cluster = clusterClient(cluster)
    this.#contests = contests
    const { waiterTtl, lease: longestLease, outageTimeout } = terms
    this.record('run', { seed: 0, waiterTtl, longestLease, outageTimeout })
    this.record('clock', { wall: Date.now() })
    for (const label of workers) {
      const locks = clusterLocks(cluster, { label })
      const client = new RecordedClient(label, locks, this.#history)
      for (const contest of contests) {
        for (let caller = 0; caller < callers; caller++)
          this.#done.push(this.#call(label, locks, client, contest, caller))
      }
    }
    this.#done.push(this.#watch())
  }

  /** Resolves when every client has been granted the lock of every key since this call. */
  async served(limit = SOON): Promise<void> {
    this.#served.clear()
    const all = this.#contests.length * workers.length
    await eventually(() => this.#served.size === all, limit)
  }

  get now(): number {
    return now()
  }

  /** Records for the checker that something outside the clients has changed the cluster's data. */
  record<K extends Kind>(kind: K, fields: Fields<K>): void {
    this.#history.record(kind, fields)
  }

  /** Waits until all callers have finished. Resolves to the checker's verdict, and rejects if it finds violations. */
  async end(): Promise<Verdict> {
    this.#open = false
    this.record('healed', { bound: SOON })
    await Promise.all(this.#done)
    return checkPassing(this.#history.events)
  }

  async #call(
    worker: string,
    locks: LockClient,
    client: RecordedClient,
    contest: Contest,
    caller: number,
  ): Promise<void> {
    const { key, fair } = contest
    const wants = wantsOf(contest, caller)
    const other = wants && { wants, lock: lockFor(locks, key, wants) }
    for (let turn = 0; this.#open; turn++) {
      const owner = fair ? { owner: `${key}.${worker}.${caller}.${turn}` } : undefined
      // Nothing else bounds how long an unfair caller may be overtaken.
      const options = optionsFor({ fair, fairAfter: 500, ...owner }, wants)
      try {
        const lease = await client.lock(key, options, other)
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
      const looks = this.#contests.filter(({ fair }) => fair).map(contest => this.#look(contest))
      await Promise.all([sleep(LOOK), ...looks])
    }
  }

  async #look({ key, kind }: Contest): Promise<void> {
    const from = now()
    const lock = lockName(key, kind)
    const decode = kind ? decodePermitsClaim : decodeClaim
    const queue = async (name: string) => {
      const flat = await this.#cluster.zrange(`${lock}:${name}`, '0', '-1', 'WITHSCORES').catch(() => [])
      return queueEntries(flat, decode)
    }
    const [entries, readers] = await Promise.all([queue('q'), kind === 'readWrite' ? queue('r') : []])
    if (entries.length + readers.length > 1)
      this.record('queue', { key, from, entries, ...(kind === 'readWrite' && { readers }) })
  }
}

/** Returns the name of the lock's first key in Redis. A key that has a hash tag keeps it. */
function lockName(key: string, kind?: Contest['kind']): string {
  const name = key.includes('{') ? key : `{${key}}`
  return kind ? `lock:%${kind}/${name}` : `lock:${name}`
}

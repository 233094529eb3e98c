/**
 * A grant that a store in memory tells more than once: in the answer to a call, and in a message. Each test compares the
 * leases that count as held with the holders that the store knows.
 */
import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import type { Lease, Lock, LockClient, LockOptions } from '../../src/index.ts'
import type { MemoryHub } from '../../src/memory/hub.ts'
import { memory } from '../../src/memory/index.ts'
import { Random } from '../kit/random.ts'
import { client, freshKey, test } from '../kit/redis.ts'

afterEach(() => {
  vi.useRealTimers()
})

const kinds = {
  mutex: (locks: LockClient, key: string) => locks.mutex(key),
  'semaphore of one': (locks: LockClient, key: string) => locks.semaphore(key, 1),
  writer: (locks: LockClient, key: string) => locks.readWrite(key).write,
}

/** The leases of a lock, and the largest number of them that were held at a time. */
class Leases {
  readonly all: Lease[] = []
  most = 0

  async of(call: Promise<Lease>): Promise<Lease> {
    const lease = await call
    this.all.push(lease)
    this.most = Math.max(this.most, this.held.length)
    return lease
  }

  get held(): Lease[] {
    return this.all.filter(({ held }) => held)
  }
}

/** Answers and messages are delivered in microtasks. */
async function delivered(): Promise<void> {
  for (let i = 0; i < 50; i++) await null
}

describe.each(Object.entries(kinds))('%s', (_, lockOf) => {
  /** A lock with a holder, and three callers of two clients that wait for it. */
  async function waitedFor(lease: number) {
    const store = memory()
    const [one, two] = [client({ fairAfter: 50 }, store), client({ fairAfter: 50 }, store)]
    const key = freshKey()
    const leases = new Leases()
    const take = (locks: LockClient, options: LockOptions) => leases.of(lockOf(locks, key).lock(options))
    await take(one, { lease })
    const calls = [take(two, { fair: true }), take(two, {}), take(one, { fair: true })]
    for (const call of calls) call.catch(() => {})
    const known = async () => (await lockOf(one, key).inspect()).holders.map(({ id }) => id)
    return { store, key, leases, calls, known }
  }

  test('time is advanced over the end of a lease in one step: one holder, the one that the store knows', async () => {
    vi.useFakeTimers()
    const { leases, calls, known } = await waitedFor(300)
    await vi.advanceTimersByTimeAsync(10)
    vi.advanceTimersByTime(1_000)
    await vi.advanceTimersByTimeAsync(500)
    for (const _ of calls) {
      expect(leases.held).toHaveLength(1)
      expect(leases.held.map(({ id }) => id)).toEqual(await known())
      await leases.held[0]!.release()
      await delivered()
    }
    expect(leases.most).toBe(1)
  })

  test('the event loop is blocked over the end of a lease: one holder, the one that the store knows', async () => {
    const { leases, calls, known } = await waitedFor(100)
    // The waiters have their places in the queue, and their timers.
    await new Promise(resolve => setTimeout(resolve, 20))
    const end = performance.now() + 150
    while (performance.now() < end);
    await vi.waitFor(() => expect(leases.held).toHaveLength(1))
    await delivered()
    expect(leases.held.map(({ id }) => id)).toEqual(await known())
    for (const _ of calls) {
      await vi.waitFor(() => expect(leases.held).toHaveLength(1))
      await leases.held[0]!.release()
    }
    expect(leases.most).toBe(1)
  })
})

/** How the jobs of a busy funnel take its lock. */
const ways: Record<string, (locks: LockClient, key: string, random: Random) => Lock> = {
  'of one': (locks, key) => locks.mutex(key),
  'of two': (locks, key) => locks.semaphore(key, 2),
  'with readers and writers': (locks, key, random) =>
    random.chance(0.5) ? locks.readWrite(key).read : locks.readWrite(key).write,
}

/**
 * Jobs that take a lock with short leases, while time goes on in jumps, messages arrive step by step, and now and then the
 * lock is lost or a client is disconnected. The time is fake, so a seed always gives the same run.
 */
describe.each(Object.entries(ways))('a busy funnel %s', (_, lockOf) => {
  beforeEach(() => {
    vi.useFakeTimers()
  })

  test.each(Array.from({ length: 25 }, (_, seed) => [seed]))(
    'has only holders that the store knows (seed %i)',
    async seed => {
      const random = new Random(seed)
      const store = memory()
      const key = freshKey()
      const clients = Array.from({ length: 3 }, () => client({ fairAfter: 20, outageTimeout: 500 }, store))
      const held = new Set<Lease>()
      const check = () => {
        const [lock] = (store as MemoryHub).locks.values()
        const known = lock?.found.holders.map(({ id }) => id) ?? []
        expect([...held].filter(each => each.held && !known.includes(each.id))).toEqual([])
      }
      const job = async () => {
        const owner = random.chance(0.2) ? 'me' : undefined
        const call = { lease: 40, renew: random.chance(0.3), fair: random.chance(0.5), ...(owner && { owner }) }
        const lock = lockOf(random.pick(clients), key, random)
        const taken = random.chance(0.7)
          ? lock.lock(call)
          : lock.tryLock({ ...call, ...(random.chance(0.5) && { timeout: 30 }) })
        const lease = await taken.catch(() => null)
        if (!lease) return
        held.add(lease)
        check()
        await new Promise(resolve => setTimeout(resolve, random.chance(0.2) ? 60 : 2))
        held.delete(lease)
        await lease.release().catch(() => {})
      }
      let done = 0
      const jobs = Array.from({ length: 60 }, () => job().finally(() => done++))
      let away: LockClient | undefined
      const disturb = () => {
        // A client that is away does not learn that a lock was lost.
        if (!away && random.chance(0.7)) store.lose(key)
        else if (away) {
          store.reconnect(away)
          away = undefined
        } else {
          away = random.pick(clients)
          store.disconnect(away)
        }
      }
      for (let step = 0; done < jobs.length && step < 5_000; step++) {
        for (let n = random.int(1, 3); n > 0; n--) {
          vi.advanceTimersByTime(random.chance(0.2) ? random.int(30, 120) : random.int(0, 8))
        }
        for (let turns = random.int(1, 12); turns > 0; turns--) {
          check()
          if (random.chance(0.02)) disturb()
          check()
          await null
        }
      }
      await Promise.all(jobs)
      expect(done).toBe(jobs.length)
    },
  )
})

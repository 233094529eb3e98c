/**
 * If Java, Maven and Maven's registry are available, these tests build and test Redisson's worker. Otherwise the
 * benchmark must report an acceptable reason.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Setting, Sharing } from '../../../benchmarks/contract.ts'
import { now } from '../../../benchmarks/harness/clock.ts'
import { type Command, Worker } from '../../../benchmarks/harness/crew.ts'
import { handoffs } from '../../../benchmarks/harness/measures.ts'
import { merge, readPart, type Samples } from '../../../benchmarks/harness/samples.ts'
import {
  type Preparation,
  prepare,
  redissonFairLock,
  redissonLock,
  redissonPermits,
  redissonReadWrite,
  redissonSemaphore,
} from '../../../benchmarks/rivals/redisson.ts'
import { plainRedis, redisUrl } from '../../kit/redis.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'

const limit = 20_000
const buildWithinMs = 40_000
/**
 * How long, in ms, a caller may take. If a caller misses its wake-up, it asks again only after 30 s, the length of a
 * lease. This has happened twice, to callers of Redisson's read-write lock.
 */
const missedWakeUp = 40_000

/** Acceptable reasons why the worker cannot run here. A failed compilation is not acceptable. */
const excuses =
  /^(needs Java 17 or later, and Maven|needs Maven|Maven could not fetch .*|mvn .* did not finish within [\s\S]*)$/

let preparation: Preparation
beforeAll(async () => {
  preparation = await prepare(process.env, buildWithinMs)
}, buildWithinMs + 60_000)

/** Returns the command, or undefined if there is an acceptable reason for having none. */
function built(): Command | undefined {
  if ('worker' in preparation) return preparation.worker
  expect(preparation.unavailable).toMatch(excuses)
  return undefined
}

/**
 * Waits until the queue in Redis has this many waiters, and returns the numbers of the waiters in the order of the
 * queue. The times at which the waiters asked would not show this order reliably, because one request may overtake
 * another.
 *
 * The waiters of the first process have the first numbers. The function assumes that the lock's holder belongs to the
 * first process. So a caller of the first process has to hold the lock.
 */
async function redissonQueue(namespace: string, waiters: number): Promise<number[]> {
  const redis = plainRedis()
  const key = `${namespace}:k0`
  const entries = await eventually(async () => {
    const queue = await redis.lrange(`redisson_lock_queue:{${key}}`, 0, -1)
    return queue.length === waiters ? queue : undefined
  }, limit)
  const [holder] = await redis.hkeys(key)
  const first = holder!.split(':')[0]
  // An entry is "client:id". Within a client, a waiter with a larger number has a larger id.
  const ids = entries!.map(entry => entry.split(':') as [string, string])
  return ids.map(([client, id]) => {
    const ofClient = ids.filter(other => other[0] === client).map(other => Number(other[1]))
    return Number(id) - Math.min(...ofClient) + (client === first ? 0 : ofClient.length)
  })
}

/**
 * Options of Java for a short program, which ends before the compiler's slow optimizations pay off. These optimizations
 * would cost a third of the program's CPU time.
 */
const briefly = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC']

async function open(
  { command, args }: Command,
  setting: Pick<Setting, 'rival' | 'waiters'> & Sharing,
  processes = 1,
  namespace = `redisson-test-${randomUUID()}`,
): Promise<Worker[]> {
  const workers = Array.from({ length: processes }, () => new Worker({ command, args: [...briefly, ...args] }))
  onTestFinished(async () => void (await Promise.all(workers.map(worker => worker.kill()))))
  const common = { ...setting, url: redisUrl(), namespace, processes, lease: undefined }
  await Promise.all(
    workers.map((worker, process) => worker.ask({ op: 'open', setting: { ...common, process } }, limit)),
  )
  return workers
}

function overlaps({ length, acquired, released }: Samples): number {
  let count = 0
  for (let i = 1; i < length; i++) if (acquired[i]! < released[i - 1]!) count++
  return count
}

describe.each([redissonLock, redissonFairLock])('$name', ({ name: rival, fair }) => {
  test('two processes exclude each other, and a queue is served', async () => {
    const command = built()
    if (!command) return
    const namespace = `redisson-test-${randomUUID()}`
    const workers = await open(command, { rival, waiters: 4 }, 2, namespace)
    const folder = await emptyFolder()
    const files = workers.map((_, process) => join(folder, `${process}`))
    const read = async () =>
      merge(await Promise.all(files.map((file, process) => readPart(process, file))), { waiters: 4, keys: 1 })

    const startAt = now() + 100
    const openAt = startAt + 50
    const times = { startAt, gap: 10, openAt, endAt: startAt + 1_000, giveUpAt: startAt + limit / 2 }
    const loops = workers.map((worker, process) =>
      worker.ask({ op: 'loop', ...times, hold: 0, keys: 1, file: files[process]! }, limit),
    )
    const looped = await Promise.all(loops)
    const samples = await read()
    expect(looped).toMatchObject(looped.map(() => ({ unfinished: 0, errors: 0 })))
    expect(samples.length).toBe(looped[0]!.samples + looped[1]!.samples)
    expect(new Set(samples.waiter).size).toBe(8)
    expect(overlaps(samples)).toBe(0)
    for (let i = 0; i < samples.length; i++) {
      const steps = [startAt, samples.asked[i]!, samples.acquired[i]!, samples.released[i]!, samples.done[i]!]
      expect(steps).toEqual(steps.toSorted((a, b) => a - b))
      expect(samples.released[i]!).toBeGreaterThanOrEqual(openAt)
    }
    const firsts = [0, 1, 2, 3].map(waiter => samples.asked[samples.waiter.indexOf(waiter)]!)
    for (const [waiter, asked] of firsts.entries()) expect(asked).toBeGreaterThanOrEqual(startAt + waiter * 10)
    for (const { cpu } of looped) expect(cpu).toBeGreaterThan(0)

    const [first, second] = workers as [Worker, Worker]
    const { at } = await first.ask({ op: 'hold' }, limit)
    await Promise.all(workers.map(worker => worker.ask({ op: 'queue', startAt: now(), gap: 0, hold: 1 }, limit)))
    const { heap, resident } = await second.ask({ op: 'memory' }, limit)
    expect(resident).toBeGreaterThan(heap)
    const queue = fair ? await redissonQueue(namespace, 8) : []
    const { calledAt } = await first.ask({ op: 'drop' }, limit)
    expect(calledAt).toBeGreaterThan(at)
    const collects = workers.map((worker, process) =>
      worker.ask({ op: 'collect', giveUpAt: now() + limit / 2, file: files[process]! }, limit),
    )
    expect(await Promise.all(collects)).toMatchObject(workers.map(() => ({ samples: 4, unfinished: 0, errors: 0 })))
    const queued = await read()
    expect(queued.acquired[0]!).toBeGreaterThan(calledAt)
    expect(overlaps(queued)).toBe(0)
    if (fair) expect([...queued.waiter]).toEqual(queue)
    await Promise.all(workers.map(worker => worker.ask({ op: 'close' }, limit)))
  })
})

describe.each([
  { rival: redissonSemaphore.name, sharing: { lock: 'semaphore', permits: 3 } },
  { rival: redissonPermits.name, sharing: { lock: 'semaphore', permits: 3 } },
  { rival: redissonReadWrite.name, sharing: { lock: 'readWrite', writerEvery: 4 } },
] as const)('$rival', ({ rival, sharing }) => {
  test('admits as many as its kind allows, and the waiters when others release', async () => {
    const command = built()
    if (!command) return
    const crowd = { waiters: 4, keys: 1, ...sharing }
    const workers = await open(command, { rival, waiters: 4, ...sharing }, 2)
    const folder = await emptyFolder()
    const files = workers.map((_, process) => join(folder, `${process}`))
    const read = async () => merge(await Promise.all(files.map((file, process) => readPart(process, file))), crowd)

    const startAt = now() + 100
    const times = { startAt, gap: 0, openAt: startAt, endAt: startAt + 1_000, giveUpAt: startAt + missedWakeUp }
    const loops = workers.map((worker, process) =>
      worker.ask({ op: 'loop', ...times, hold: 5, keys: 1, file: files[process]! }, missedWakeUp + limit),
    )
    expect(await Promise.all(loops)).toMatchObject(loops.map(() => ({ unfinished: 0, errors: 0 })))
    const samples = await read()
    expect(handoffs(samples, { from: 0, to: Number.POSITIVE_INFINITY }).overlaps).toBe(0)
    // Some holds must overlap, because a lock of this kind has several holders at a time.
    expect(overlaps(samples)).toBeGreaterThan(0)

    const [first] = workers as [Worker, Worker]
    await first.ask({ op: 'hold', count: sharing.lock === 'semaphore' ? sharing.permits : 1 }, limit)
    await Promise.all(workers.map(worker => worker.ask({ op: 'queue', startAt: now(), gap: 0, hold: 1 }, limit)))
    const { calledAt } = await first.ask({ op: 'drop' }, limit)
    const collects = workers.map((worker, process) =>
      worker.ask({ op: 'collect', giveUpAt: now() + missedWakeUp, file: files[process]! }, missedWakeUp + limit),
    )
    expect(await Promise.all(collects)).toMatchObject(workers.map(() => ({ samples: 4, unfinished: 0, errors: 0 })))
    expect((await read()).acquired[0]!).toBeGreaterThan(calledAt)
    await Promise.all(workers.map(worker => worker.ask({ op: 'close' }, limit)))
  }, 150_000)
})

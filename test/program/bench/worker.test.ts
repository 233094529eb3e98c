import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Setting } from '../../../benchmarks/contract.ts'
import { now } from '../../../benchmarks/harness/clock.ts'
import { nodeWorker, Worker } from '../../../benchmarks/harness/crew.ts'
import { merge, readPart } from '../../../benchmarks/harness/samples.ts'
import { redisUrl } from '../../kit/redis.ts'

const limit = 15_000

async function open(rival: string, waiters: number, more: Partial<Setting> = {}): Promise<Worker> {
  const worker = new Worker(nodeWorker(fileURLToPath(new URL('./rivals-for-tests.ts', import.meta.url))))
  onTestFinished(() => worker.kill())
  const namespace = `bench-test-${randomUUID()}`
  const setting = { rival, url: redisUrl(), namespace, process: 0, processes: 1, waiters, lease: undefined, ...more }
  await worker.ask({ op: 'open', setting }, limit)
  return worker
}

function fileName(): string {
  const name = join(tmpdir(), `baton-bench-test-${randomUUID()}`)
  onTestFinished(() => rm(name, { force: true }))
  return name
}

describe.each(['baton-fair', 'baton-unfair', 'floor-publish', 'floor-blpop'])('%s', rival => {
  test('has its turns in a loop and in a queue, and every turn is in the samples', async () => {
    const worker = await open(rival, 4)
    const startAt = now() + 20
    // One second is time enough for all four waiters to ask, even if the worker starts slowly.
    const endAt = startAt + 1_000
    const file = fileName()
    const openAt = startAt + 50
    const times = { startAt, gap: 10, openAt, endAt, giveUpAt: endAt + limit }
    const looped = await worker.ask({ op: 'loop', ...times, hold: 0, keys: 1, file }, limit)
    expect(looped).toMatchObject({ unfinished: 0, errors: 0 })
    expect(looped.cpu).toBeGreaterThan(0)
    const samples = merge([await readPart(0, file)], { waiters: 4, keys: 1 })
    expect(samples.length).toBe(looped.samples)
    expect(new Set(samples.waiter)).toEqual(new Set([0, 1, 2, 3]))
    for (let i = 0; i < samples.length; i++) {
      const times = [startAt, samples.asked[i]!, samples.acquired[i]!, samples.released[i]!, samples.done[i]!]
      expect(times).toEqual(times.toSorted((a, b) => a - b))
      expect(samples.asked[i]!).toBeLessThan(endAt)
      expect(samples.released[i]!).toBeGreaterThanOrEqual(openAt)
    }
    const firsts = [0, 1, 2, 3].map(waiter => samples.asked[samples.waiter.indexOf(waiter)]!)
    for (const [waiter, asked] of firsts.entries()) expect(asked).toBeGreaterThanOrEqual(startAt + waiter * 10)

    const { at } = await worker.ask({ op: 'hold' }, limit)
    await worker.ask({ op: 'queue', startAt: now(), gap: 5, hold: 1 }, limit)
    const { calledAt } = await worker.ask({ op: 'drop' }, limit)
    expect(calledAt).toBeGreaterThan(at)
    const collected = await worker.ask({ op: 'collect', giveUpAt: now() + limit, file }, limit)
    expect(collected).toMatchObject({ samples: 4, unfinished: 0, errors: 0 })
    const queued = merge([await readPart(0, file)], { waiters: 4, keys: 1 })
    expect(queued.acquired[0]!).toBeGreaterThan(calledAt)

    const { heap, resident } = await worker.ask({ op: 'memory' }, limit)
    expect(resident).toBeGreaterThan(heap)
    await worker.ask({ op: 'close' }, limit)
  })
})

test('a worker that has ended reports that instead of answering', async () => {
  const worker = await open('baton-fair', 1)
  const answer = worker.ask({ op: 'queue', startAt: now() + limit, gap: 0, hold: 0 }, limit)
  await Promise.all([worker.kill(), expect(answer).rejects.toThrow('the worker process ended (SIGKILL)')])
  await expect(worker.ask({ op: 'close' }, limit)).rejects.toThrow('the worker process has ended')
})

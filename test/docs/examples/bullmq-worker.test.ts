/** examples/bullmq-worker.ts: two workers share the jobs that the test adds. */
import { type Job, Queue } from 'bullmq'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Running } from '../../kit/program.ts'
import { eventually } from '../../kit/time.ts'
import { Scene } from './scene.ts'

const scene = new Scene()
let workers: Running[]
let queue: Queue

beforeAll(async () => {
  workers = ['one', 'two'].map(() => scene.start('bullmq-worker.ts', { LEASE_MS: '1500' }))
  queue = new Queue('bookings', { connection: { url: scene.url } })
  await Promise.all(workers.map(worker => worker.line(/^ready$/)))
})
afterAll(() => queue?.close())

const lockOf = (customer: string) => `example:customer:${customer}`
const books = (customer: string) => scene.redis.hgetall(lockOf(customer))
/** Returns the lines that the workers printed about failed attempts of this job. */
const failuresOf = ({ id }: Job) =>
  workers.flatMap(({ lines }) => lines.filter(line => line.startsWith(`${id}: attempt`)))

interface Wish {
  amount: number
  takes?: number
  /** The age of the new job, in ms. */
  age?: number
}

function add(customer: string, { amount, takes = 20, age = 0 }: Wish): Promise<Job> {
  const options = { timestamp: Date.now() - age, attempts: 2, removeOnComplete: false }
  return queue.add('book', { customer, amount, takes }, options)
}

async function done(...jobs: Job[]): Promise<void> {
  await eventually(async () => {
    const states = await Promise.all(jobs.map(({ id }) => queue.getJobState(id!)))
    expect(states).not.toContain('failed')
    return states.every(state => state === 'completed')
  }, 15_000)
}

test.concurrent('jobs of one customer run one by one, on any worker', async () => {
  const held = await scene.locks.lock(lockOf('ada'))
  const jobs = await Promise.all(Array.from({ length: 24 }, () => add('ada', { amount: 1 })))
  await scene.waiters(lockOf('ada'), 24)
  await held.release()
  await done(...jobs)
  // Each job reads the balance and writes the increased value. If two jobs of a customer ran at the same time, one
  // increase would be lost.
  expect(await books('ada')).toMatchObject({ balance: '24' })
})

test.concurrent('the oldest job runs first, whichever asked first; another customer’s job does not wait', async () => {
  const held = await scene.locks.lock(lockOf('bob'))
  const jobs = [
    await add('bob', { amount: 100, age: 10_000 }),
    await add('bob', { amount: 10, age: 20_000 }),
    await add('bob', { amount: 1, age: 30_000 }),
  ]
  await scene.waiters(lockOf('bob'), 3)
  await done(await add('carol', { amount: 5 }))
  expect(await books('bob')).toEqual({})
  await held.release()
  await done(...jobs)
  const [third, second, first] = jobs.map(({ id }) => `job:${id}`) as [string, string, string]
  expect(await books('bob')).toMatchObject({ [first]: '1', [second]: '11', [third]: '111' })
})

test.concurrent('a job whose lock is taken away fails, and its next attempt books the order once', async () => {
  const job = await add('emil', { amount: 7, takes: 1_000 })
  await eventually(() => scene.locks.isLocked(lockOf('emil')))
  const { fencingToken } = await scene.locks.inspect(lockOf('emil'))
  await scene.locks.forceRelease(lockOf('emil'))
  await done(job)
  const { balance, token } = await books('emil')
  expect(balance).toBe('7')
  expect(Number(token)).toBeGreaterThan(fencingToken!)
  expect(failuresOf(job)).toEqual([expect.stringMatching(/^\d+: attempt 1 failed: lock ".+" was lost/)])
})

test('SIGTERM: a waiting job goes back to the queue, and then to the other worker', async () => {
  const held = await scene.locks.lock(lockOf('fritz'))
  const job = await add('fritz', { amount: 3 })
  await scene.waiters(lockOf('fritz'), 1)
  const { waiters } = await scene.locks.inspect(lockOf('fritz'))
  const its = workers.find(({ pid }) => waiters[0]!.label.endsWith(`:${pid}`))!
  expect(await its.end('SIGTERM')).toBe(0)
  await scene.waiters(lockOf('fritz'), 1)
  await held.release()
  await done(job)
  expect(await books('fritz')).toMatchObject({ balance: '3' })
  expect(failuresOf(job)).toEqual([])
  await scene.expectNothingLeft()
  // The workers printed no warnings, for example about too many listeners on one signal.
  expect(workers.flatMap(({ lines }) => lines).filter(line => /warning/i.test(line))).toEqual([])
})

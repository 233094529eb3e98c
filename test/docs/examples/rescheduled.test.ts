/** examples/rescheduled.ts: two workers share the jobs that the test adds. */
import { type Job, Queue } from 'bullmq'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Running } from '../../kit/program.ts'
import { eventually } from '../../kit/time.ts'
import { Scene } from './scene.ts'

const scene = new Scene()
let workers: Running[]
let queue: Queue

beforeAll(async () => {
  workers = ['one', 'two'].map(() => scene.start('rescheduled.ts'))
  queue = new Queue('reports', { connection: { url: scene.url } })
  await Promise.all(workers.map(worker => worker.line(/^ready$/)))
})
afterAll(() => queue?.close())

const lines = () => workers.flatMap(worker => worker.lines)
const add = (tenant: string) => queue.add('report', { tenant, takes: 100 }, { removeOnComplete: false })
const finished = (job: Job) => eventually(async () => (await job.getState()) === 'completed', 30_000)

test('the jobs of a busy tenant are put off, another tenant’s job is done in the meantime, and none fails', async () => {
  const busy = await Promise.all(Array.from({ length: 40 }, () => add('busy')))
  await eventually(() => lines().some(line => line.includes('put off')))
  const single = await add('single')
  await finished(single)
  const doneBefore = lines().filter(line => line.endsWith(': done')).length
  expect(doneBefore).toBeLessThan(30)
  await Promise.all(busy.map(finished))
  expect(lines().filter(line => line.includes('failed'))).toEqual([])
  // The first are put off by a second, because nothing is known yet; later ones by what is expected.
  const delays = lines().flatMap(line => /put off by (\d+) ms/.exec(line)?.[1] ?? [])
  expect(delays).toContain('1000')
  expect(delays.filter(delay => delay !== '1000').length).toBeGreaterThan(0)
  expect(await Promise.all(workers.map(worker => worker.end('SIGTERM')))).toEqual([0, 0])
  await scene.expectNothingLeft()
}, 60_000)

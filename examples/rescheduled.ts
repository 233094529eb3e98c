/**
 * A BullMQ worker whose jobs do not wait for a permit for long: a job that would have to goes back to its queue, and
 * comes back when its turn is expected. Start this program several times; the workers share the jobs.
 *
 * All workers together run at most four reports at a time, and at most two of one tenant. While a job waits for its
 * permit, it occupies one of the few places of its worker. If the jobs of a busy tenant all waited, they would soon
 * occupy all places. What to copy:
 * - `maxWaiters` with a `group`: of each tenant, only a few jobs wait. Each further one rejects with LockQueueFullError.
 * - `expected` of this error says how long the job would have waited. Until enough reports have ended for an estimate, it
 *   is undefined.
 * - `moveToDelayed` and DelayedError: BullMQ hands the job out again after that time, and counts no failed attempt.
 *
 * Jobs that were put off may overtake each other. To keep their order, let them wait, as bullmq-worker.ts does.
 */
import { setTimeout as work } from 'node:timers/promises'
import { DelayedError, type Job, Worker } from 'bullmq'
import { LockClient, LockQueueFullError } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

interface Report {
  tenant: string
  /** How long the report takes, in ms. */
  takes: number
}

const locks = new LockClient(REDIS_URL)
locks.on('error', ({ error }) => console.error(error.message))
const reports = locks.semaphore('example:reports', 4)

async function attempt(job: Job<Report>, token?: string): Promise<void> {
  const { tenant, takes } = job.data
  try {
    await reports.using({ group: tenant, groupLimit: 2, maxWaiters: 2 }, lease =>
      work(takes, undefined, { signal: lease.signal }),
    )
  } catch (error) {
    if (!(error instanceof LockQueueFullError)) throw error
    // Not at once, even if the estimate is small.
    const delay = Math.max(100, Math.round(error.expected ?? 1_000))
    console.log(`${job.id}: put off by ${delay} ms`)
    await job.moveToDelayed(Date.now() + delay, token)
    throw new DelayedError()
  }
}

const worker = new Worker('reports', attempt, { connection: { url: REDIS_URL }, concurrency: 8 })
worker.on('completed', job => console.log(`${job.id}: done`))
worker.on('failed', (job, error) => console.log(`${job?.id}: failed: ${error.message}`))
worker.on('error', error => console.error(error.message))
await worker.waitUntilReady()
console.log('ready')

process.once('SIGTERM', async () => {
  await worker.close() // waits for the jobs that have begun, and for those that wait for a permit
  await locks.close()
  console.log('stopped')
})

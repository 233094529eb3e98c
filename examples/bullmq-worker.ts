/**
 * A BullMQ worker in which jobs of the same customer never run at the same time, in this process or in any other
 * worker. Jobs of different customers run side by side. Start this program several times; the workers share the jobs.
 *
 * BullMQ hands out each job once, but it does not know that two jobs concern the same customer. The lock does, because
 * its key names the customer. What to copy:
 * - `fair`, with the job's age as its `headStart`: a customer's jobs run in the order in which they were added, even if
 *   a later job requests the lock first. A retried job keeps its place.
 * - `concurrency` is high: a waiting job is only a promise and needs no thread. With a low number, the waiting jobs of
 *   one customer could keep the jobs of all others from starting.
 * - The lease is renewed while the job runs, so the job may take longer than a lease. `maxHold` ends a job that hangs.
 * - If the lock is lost, `lease.signal` aborts the job. The job fails, and BullMQ retries it with a larger fencing
 *   token. The write to the account books checks the token, so a late write is refused. It also stores the id of the
 *   job, so a second attempt at the same job changes nothing.
 */
import { setTimeout as work } from 'node:timers/promises'
import { type Job, WaitingError, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { type Lease, LockClient, LockClosedError } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', LEASE_MS = '30000' } = process.env

interface Booking {
  customer: string
  amount: number
  /** How long the booking takes, in ms. */
  takes: number
}

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { fair: true, lease: Number(LEASE_MS) })
const stopping = new AbortController()

/**
 * In this example the account books are in Redis. Any database works if the statement that writes also compares the
 * token.
 */
const BOOK = `
  -- KEYS[1] the customer; ARGV[1] fencing token, ARGV[2] job, ARGV[3] balance
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'balance', ARGV[3], 'job:' .. ARGV[2], ARGV[3])
  return 1
`

async function book({ id, data }: Job<Booking>, lease: Lease): Promise<void> {
  const customer = `example:customer:${data.customer}`
  if (await redis.hexists(customer, `job:${id}`)) return // an earlier attempt booked this job, and failed afterwards
  const balance = Number((await redis.hget(customer, 'balance')) ?? 0)
  // If the lock is lost, the work stops, and `using` rejects with LockLostError.
  await work(data.takes, undefined, { signal: lease.signal })
  if (!(await redis.eval(BOOK, 1, customer, lease.fencingToken, id!, balance + data.amount))) {
    throw new Error('the lock was lost, and somebody else has booked since')
  }
}

async function attempt(job: Job<Booking>, token?: string, cancelled?: AbortSignal): Promise<void> {
  const headStart = Math.max(0, Date.now() - job.timestamp)
  // When `signal` aborts, the job stops waiting for the lock. Each job has a signal of its own, because Node warns if
  // one signal has many listeners.
  const signal = AbortSignal.any([stopping.signal, ...(cancelled ? [cancelled] : [])])
  const options = { headStart, maxHold: 600_000, signal }
  try {
    await locks.using(`example:customer:${job.data.customer}`, options, lease => book(job, lease))
  } catch (error) {
    if (error !== stopping.signal.reason && !(error instanceof LockClosedError)) throw error
    // The worker is stopping, and the job has not started or could not finish. So the job goes back to the queue, and
    // another worker takes it. BullMQ does not count this as a failed attempt.
    await job.moveToWait(token)
    throw new WaitingError()
  }
}

const worker = new Worker('bookings', attempt, { connection: { url: REDIS_URL }, concurrency: 50 })
worker.on('completed', job => console.log(`${job.id}: booked`))
worker.on('failed', (job, error) => console.log(`${job?.id}: attempt ${job?.attemptsMade} failed: ${error.message}`))
worker.on('error', error => console.error(error.message))
await worker.waitUntilReady()
console.log('ready')

process.once('SIGTERM', async () => {
  stopping.abort(new Error('the worker is about to stop'))
  // `worker.close` waits for the running jobs. They have 30 s to finish. Then `locks.close` ends their leases, and the
  // signal of each lease aborts its job.
  await Promise.all([worker.close(), locks.close({ drain: 30_000 })])
  redis.disconnect()
  console.log('stopped')
})

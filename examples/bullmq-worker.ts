/**
 * BullMQ jobs, where the jobs of one customer must not run at the same time: not in this process, and not in any other
 * worker. Jobs of different customers run side by side. Start it as often as you like; the workers share the jobs.
 *
 * A queue hands out each job once; it does not know that two jobs concern the same customer. The lock does. What to
 * copy:
 * - `fair`, with the job's age as its `headStart`: a customer's jobs get their turns in the order in which they were
 *   added, whichever worker asked first. A job that is retried keeps its place in this order.
 * - A waiting job is a promise and costs no thread, so `concurrency` is generous. Otherwise the backlog of one customer
 *   would take all places.
 * - The lease is renewed while the job runs, so that the job may take longer. `maxHold` is for a job that hangs.
 * - If the lock is lost, `lease.signal` tells the job. The job fails, and BullMQ retries it under a larger fencing
 *   token. The books know the token and the job: they refuse a late write, and booking a job twice changes nothing.
 */
import { setTimeout as work } from 'node:timers/promises'
import { type Job, WaitingError, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { type Lease, LockClient, LockClosedError } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', LEASE_MS = '30000' } = process.env

interface Booking {
  customer: string
  amount: number
  /** How long it takes, in ms. */
  takes: number
}

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { fair: true, lease: Number(LEASE_MS) })
const stopping = new AbortController()

/** Here, the books are in Redis. Any database will do if the statement that writes also compares the token. */
const BOOK = `
  -- KEYS[1] the customer; ARGV[1] fencing token, ARGV[2] job, ARGV[3] balance
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'balance', ARGV[3], 'job:' .. ARGV[2], ARGV[3])
  return 1
`

async function book({ id, data }: Job<Booking>, lease: Lease): Promise<void> {
  const customer = `example:customer:${data.customer}`
  if (await redis.hexists(customer, `job:${id}`)) return // an earlier attempt failed only after it had booked
  const balance = Number((await redis.hget(customer, 'balance')) ?? 0)
  // Stops as soon as the lock is lost, and throws the reason.
  await work(data.takes, undefined, { signal: lease.signal }).catch(() => lease.signal.throwIfAborted())
  if (!(await redis.eval(BOOK, 1, customer, lease.fencingToken, id!, balance + data.amount))) {
    throw new Error('the lock was lost, and somebody else has booked since')
  }
}

async function attempt(job: Job<Booking>, token?: string, cancelled?: AbortSignal): Promise<void> {
  const headStart = Math.max(0, Date.now() - job.timestamp)
  // Ends the wait. Each job has a signal of its own, because Node warns of too many listeners on one signal.
  const signal = AbortSignal.any([stopping.signal, ...(cancelled ? [cancelled] : [])])
  const options = { headStart, maxHold: 600_000, signal }
  try {
    await locks.using(`example:customer:${job.data.customer}`, options, lease => book(job, lease))
  } catch (error) {
    if (error !== stopping.signal.reason && !(error instanceof LockClosedError)) throw error
    // The job has not begun, or had no time to finish. It goes back to the queue, for another worker, without counting
    // as a failed attempt.
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
  // Waits for the jobs that have begun. The signal of a job that takes longer stops it.
  await Promise.all([worker.close(), locks.close({ drain: 30_000 })])
  redis.disconnect()
  console.log('stopped')
})

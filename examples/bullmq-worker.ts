/**
 * Jobs of BullMQ, of which those of one customer must not run at the same time: not in this process, and not in any other
 * worker. Jobs of different customers run side by side. Start it as often as you like; the workers share the jobs.
 *
 * A queue hands out each job once; it does not know that two jobs concern the same thing. The lock does. What to take over:
 *   - `fair`, with the job's age as its `headStart`: a customer's jobs get their turn in the order in which they were added,
 *     whichever worker was quicker to ask, and one that is tried again does not start from the end.
 *   - A job that waits is a promise and costs no thread, so `concurrency` is generous: else the backlog of one customer
 *     would take all places.
 *   - The lease is renewed while the job runs, so that the job may take longer. `maxHold` is for the one that hangs.
 *   - If the lock is lost, `lease.signal` tells the job, which fails, and BullMQ tries it again under a larger fencing token.
 *     The books know the token and the job: they refuse a late write, and a second one changes nothing.
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

/** The books are in Redis here. Any database will do that compares the token in the statement which writes. */
const BOOK = `
  -- KEYS[1] the customer; ARGV[1] fencing token, ARGV[2] job, ARGV[3] balance
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'balance', ARGV[3], 'job:' .. ARGV[2], ARGV[3])
  return 1
`

async function book({ id, data }: Job<Booking>, lease: Lease): Promise<void> {
  const customer = `example:customer:${data.customer}`
  if (await redis.hexists(customer, `job:${id}`)) return // by an attempt that failed only after that
  const balance = Number((await redis.hget(customer, 'balance')) ?? 0)
  // Stops as soon as the lock is lost, and says why.
  await work(data.takes, undefined, { signal: lease.signal }).catch(() => lease.signal.throwIfAborted())
  if (!(await redis.eval(BOOK, 1, customer, lease.fencingToken, id!, balance + data.amount))) {
    throw new Error('the lock was lost, and somebody else has booked since')
  }
}

async function attempt(job: Job<Booking>, token?: string, cancelled?: AbortSignal): Promise<void> {
  const headStart = Math.max(0, Date.now() - job.timestamp)
  // Ends the wait. A signal of each job's own: Node warns of too many that listen to one.
  const signal = AbortSignal.any([stopping.signal, ...(cancelled ? [cancelled] : [])])
  const options = { headStart, maxHold: 600_000, signal }
  try {
    await locks.using(`example:customer:${job.data.customer}`, options, lease => book(job, lease))
  } catch (error) {
    if (error !== stopping.signal.reason && !(error instanceof LockClosedError)) throw error
    // It has not begun, or had no time to finish: back to the queue, for another worker. That is no failed attempt.
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
  // Waits for the jobs that have begun. One that takes longer is stopped by its signal.
  await Promise.all([worker.close(), locks.close({ drain: 30_000 })])
  redis.disconnect()
  console.log('stopped')
})

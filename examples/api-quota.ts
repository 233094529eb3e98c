/**
 * Several processes share an API's quota of five calls at a time.
 *
 * The quota is a semaphore of five permits. An ordinary call takes one permit. A report takes two, because the API
 * counts it twice. Calls are fair: otherwise ordinary calls could overtake a report forever, because a report has to
 * wait for two free permits at once.
 *
 *     NAME=a npx tsx examples/api-quota.ts
 *     NAME=b npx tsx examples/api-quota.ts
 *
 * If you kill one process (`kill -9`), its permits become free when its leases end. Until then the other processes
 * share the remaining permits. On SIGTERM a process finishes its calls and releases their permits.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'

const {
  REDIS_URL = 'redis://127.0.0.1:6379',
  NAME = String(process.pid),
  LEASE_MS = '10000',
  CALL_MS = '50',
  CALLS = '4',
} = process.env

/** The Redis key of the API's log, which has one line for the beginning and one for the end of each call. */
const seen = 'example:api'

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { label: NAME, lease: Number(LEASE_MS) })
const allowance = locks.semaphore('example:api-quota', 5)
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort())

/** Makes one call of the API. In this example a call takes CALL_MS and writes two lines to the log. */
async function call(id: string, weight: number): Promise<void> {
  await redis.rpush(seen, `${NAME} begin ${id} ${weight}`)
  await sleep(Number(CALL_MS))
  await redis.rpush(seen, `${NAME} end ${id} ${weight}`)
}

/** Makes one call after another. Each process runs several workers. */
async function worker(number: number): Promise<void> {
  // Worker 0 makes reports, which take two permits each. The other workers make ordinary calls.
  const permits = number === 0 ? 2 : 1
  try {
    for (;;) {
      await allowance.using({ permits, fair: true, signal: stopping.signal }, ({ id }) => call(id, permits))
    }
  } catch (error) {
    if (!stopping.signal.aborted) throw error
  }
}

try {
  console.log(`${NAME} ready`)
  await Promise.all(Array.from({ length: Number(CALLS) }, (_, number) => worker(number)))
} finally {
  await locks.close()
  redis.disconnect()
}

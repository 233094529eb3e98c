/**
 * An API allows its customer five calls at a time, and several processes share this allowance.
 *
 * The allowance is a semaphore of five permits. An ordinary call takes one permit. A report takes two, because the API
 * counts it twice. Calls are fair, so a report, which needs two permits at once, is not overtaken by ordinary calls for
 * ever.
 *
 *     NAME=a npx tsx examples/api-quota.ts
 *     NAME=b npx tsx examples/api-quota.ts
 *
 * Kill one of them (`kill -9`): its permits are free when its lease ends, and until then the others share the rest. On
 * SIGTERM, it completes its calls and releases their permits.
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

/** What the API has seen: a line for the beginning and the end of each call. */
const seen = 'example:api'

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { label: NAME, lease: Number(LEASE_MS) })
const allowance = locks.semaphore('example:api-quota', 5)
const stopping = new AbortController()
process.once('SIGTERM', () => stopping.abort())

/** Stands for the API. */
async function call(id: string, weight: number): Promise<void> {
  await redis.rpush(seen, `${NAME} begin ${id} ${weight}`)
  await sleep(Number(CALL_MS))
  await redis.rpush(seen, `${NAME} end ${id} ${weight}`)
}

/** One of the calls that this process would like to make at the same time. */
async function worker(number: number): Promise<void> {
  // Worker 0 makes reports.
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

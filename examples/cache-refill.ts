/**
 * Four processes serve requests from a cache. When the cache is out of date, one request refills it.
 *
 * A request reads the cache twice, with work in between, and a refill changes both values. So requests read under a
 * read lock, any number of them at a time. A request that finds the cache out of date takes the write lock. If many
 * requests find the cache out of date at once, only the first one refills it. The others check again when they get the
 * lock. `--no-lock` shows what happens without locks: many requests query the origin at once, and some answers mix old
 * and new values.
 *
 * After its refill, the request downgrades from writing to reading. From then on other requests can read. No other
 * request can refill the cache until this request is answered.
 *
 *     npx tsx examples/cache-refill.ts
 *
 * A process that is paused for longer than its lease may still write late. fenced-write.ts shows how to refuse such a
 * write.
 */
import { fork } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as work } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', ROLE } = process.env
const { values } = parseArgs({ options: { 'no-lock': { type: 'boolean' } } })

const PROCESSES = 4
/** How many requests a process handles at a time. */
const AT_A_TIME = 8
const EDITIONS = 40
/** The Redis key of the newest edition of the price list. */
const newest = 'example:prices:newest'
/**
 * The Redis key of the cache. Its fields `names` and `prices` are the two halves of the cache. The value of each half
 * is the number of an edition of the price list.
 */
const cache = 'example:prices:cache'
/** A log of the queries to the origin: for each query, the edition that the origin returned. */
const asked = 'example:prices:asked'
/**
 * The Redis key of two counters. `given` counts all answers. `mixed` counts the answers whose two halves came from
 * different editions.
 */
const answers = 'example:prices:answers'

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))

/** Queries the slow origin, and writes both halves of the cache. */
async function refill(signal?: AbortSignal): Promise<void> {
  const edition = (await redis.get(newest)) ?? ''
  await redis.rpush(asked, edition)
  await work(20)
  signal?.throwIfAborted() // the lock was lost, so another request may be refilling the cache
  await redis.hset(cache, 'names', edition)
  await redis.hset(cache, 'prices', edition)
}

async function isFresh(): Promise<boolean> {
  return (await redis.hget(cache, 'prices')) === (await redis.get(newest))
}

/** Answers a request from the cache. The answer is right unless another request refills the cache at the same time. */
async function answer(): Promise<void> {
  const names = await redis.hget(cache, 'names')
  await work(randomInt(8) === 0 ? 100 : 5) // some answers take longer than a refill
  const prices = await redis.hget(cache, 'prices')
  await redis.hincrby(answers, 'given', 1)
  if (names !== prices) await redis.hincrby(answers, 'mixed', 1)
}

async function answerWithoutLock(): Promise<void> {
  if (!(await isFresh())) await refill()
  await answer()
}

async function server(): Promise<void> {
  // The locks are fair: readers that keep coming cannot delay a refill forever, and a reader waits for at most one
  // refill.
  await using locks = new LockClient(redis, { fair: true })
  const { read, write } = locks.readWrite('example:prices')
  let stopped = false
  process.once('disconnect', () => {
    stopped = true
  })

  async function respond(): Promise<void> {
    const answered = await read.using(async () => {
      if (!(await isFresh())) return false
      await answer()
      return true
    })
    if (answered) return

    // At this point the request has already released its read lock. If it still had the read lock, it would wait for
    // itself here, so it would get LockDeadlockError.
    await using _reading = await write.using(async ({ signal }) => {
      if (!(await isFresh())) await refill(signal)
      return read.lock() // a writer gets the read lock at once, and keeps it when the write lock is released
    })
    await answer()
  }

  async function visitor(): Promise<void> {
    while (!stopped) await (values['no-lock'] ? answerWithoutLock() : respond())
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, visitor))
}

/** Starts the four processes, and publishes one edition after another. */
async function publisher(): Promise<void> {
  await redis.del(newest, cache, asked, answers)
  const servers = Array.from({ length: PROCESSES }, () =>
    fork(fileURLToPath(import.meta.url), process.argv.slice(2), { env: { ...process.env, ROLE: 'server' } }),
  )
  const ends = Promise.all(servers.map(child => once(child, 'exit')))
  for (let edition = 1; edition <= EDITIONS; edition++) {
    await redis.set(newest, edition)
    while (!(await isFresh())) await work(10)
    await work(randomInt(20))
  }
  for (const child of servers) child.disconnect()
  if ((await ends).some(([code]) => code !== 0)) throw new Error('a process has failed')

  const { given, mixed = 0 } = await redis.hgetall(answers)
  console.log(`${given} answers by ${PROCESSES} processes`)
  console.log(`${EDITIONS} editions, asked of the origin ${await redis.llen(asked)} times`)
  console.log(`answers of two editions: ${mixed}`)
}

try {
  await (ROLE === 'server' ? server() : publisher())
} finally {
  redis.disconnect()
}

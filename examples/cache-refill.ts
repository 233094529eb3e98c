/**
 * Many requests in four processes read a cache. When it is out of date, one request refills it.
 *
 * An answer needs two reads of the cache, with work in between, and a refill changes what both of them see. So requests
 * read under a read lock, any number of them at a time, and a request that finds the cache out of date takes the write
 * lock. However many find it out of date at once, only the first refills it: the others check again when their turn
 * comes. `--no-lock` shows what happens otherwise: many requests ask the origin at once, and answers are half old, half
 * new.
 *
 * The request that has refilled the cache changes from writing to reading (a downgrade). From then on others can read,
 * but the cache is not refilled again before this request has been answered, too.
 *
 *     npx tsx examples/cache-refill.ts
 *
 * A process that is paused for longer than its lease may still write late; fenced-write.ts shows how to refuse such a
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
/** How many requests a process has under way. */
const AT_A_TIME = 8
const EDITIONS = 40
/** The newest edition of the price list, according to its authors. */
const newest = 'example:prices:newest'
/** The edition in each half of the cache. */
const cache = 'example:prices:cache'
/** The editions that were requested from the origin, one line for each request. */
const asked = 'example:prices:asked'
/** How many answers were given, and how many of them mixed two editions. */
const answers = 'example:prices:answers'

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))

/** Asks the origin, which is slow and should be asked only once, and writes both halves. */
async function refill(signal?: AbortSignal): Promise<void> {
  const edition = (await redis.get(newest)) ?? ''
  await redis.rpush(asked, edition)
  await work(20)
  signal?.throwIfAborted() // the lock was lost: another request may be refilling the cache
  await redis.hset(cache, 'names', edition)
  await redis.hset(cache, 'prices', edition)
}

async function isFresh(): Promise<boolean> {
  return (await redis.hget(cache, 'prices')) === (await redis.get(newest))
}

/** Correct only while the cache is not refilled. */
async function answer(): Promise<void> {
  const names = await redis.hget(cache, 'names')
  await work(randomInt(8) === 0 ? 100 : 5) // some take longer than a refill
  const prices = await redis.hget(cache, 'prices')
  await redis.hincrby(answers, 'given', 1)
  if (names !== prices) await redis.hincrby(answers, 'mixed', 1)
}

async function answerWithoutLock(): Promise<void> {
  if (!(await isFresh())) await refill()
  await answer()
}

async function server(): Promise<void> {
  // Fair: a steady stream of readers does not keep out the request that wants to refill, and readers wait for one
  // refill at most.
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

    // Outside of the read lock. Inside it, the request would wait for itself, and is refused (LockDeadlockError).
    await using _reading = await write.using(async ({ signal }) => {
      if (!(await isFresh())) await refill(signal)
      return read.lock() // granted at once to the writer, and kept when the writing ends
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

/**
 * A cache that many requests read, in four processes, and that one request refills when it is out of date.
 *
 * An answer is made of two looks at the cache, with work in between, and a refill changes both of what they see. So requests read
 * under a read lock, any number of them at a time, and one that finds the cache out of date takes the write lock. However many
 * find it so at once, only the first refills it: the others look again when their turn comes. `--no-lock` shows what happens
 * otherwise: the origin is asked by many at once, and answers are half old, half new.
 *
 * The request that has refilled the cache goes from writing to reading (a downgrade): others read from then on, but nobody
 * refills it before this request, too, has been answered.
 *
 *     npx tsx examples/cache-refill.ts
 *
 * A process that is paused for longer than its lease may still write late; fenced-write.ts shows what refuses that.
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
/** The newest edition of the price list, as its authors say. */
const newest = 'example:prices:newest'
/** Which edition is in each half of the cache. */
const cache = 'example:prices:cache'
/** Which edition was asked of the origin, a line for each time. */
const asked = 'example:prices:asked'
/** How many answers were given, and how many of them were of two editions. */
const answers = 'example:prices:answers'

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))

/** Asks the origin, which is slow and wants to be asked once, and writes both halves. */
async function refill(signal?: AbortSignal): Promise<void> {
  const edition = (await redis.get(newest)) ?? ''
  await redis.rpush(asked, edition)
  await work(20)
  signal?.throwIfAborted() // the lock was lost: somebody else may be refilling it
  await redis.hset(cache, 'names', edition)
  await redis.hset(cache, 'prices', edition)
}

async function isFresh(): Promise<boolean> {
  return (await redis.hget(cache, 'prices')) === (await redis.get(newest))
}

/** Right only as long as nobody refills the cache. */
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
  // Fair: requests that keep reading do not keep out the one that wants to refill, and wait for one refill at most.
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

    // Not inside of the read lock: there it would wait for itself, and is refused (LockDeadlockError).
    await using _reading = await write.using(async ({ signal }) => {
      if (!(await isFresh())) await refill(signal)
      return read.lock() // granted at once to who writes, and kept when the writing ends
    })
    await answer()
  }

  async function visitor(): Promise<void> {
    while (!stopped) await (values['no-lock'] ? answerWithoutLock() : respond())
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, visitor))
}

/** Starts the four, and publishes one edition after another. */
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

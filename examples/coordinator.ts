/**
 * Workers that divide shards among themselves. Each shard is processed by one worker at a time, and each worker has an
 * equal share. Start this program in three terminals, then stop or kill one worker. The other workers take over its
 * shards.
 *
 * There is no leader and no list of assignments, only locks:
 * - Each worker takes a seat, which is a lock. The number of taken seats is the number of live workers; a dead worker's
 *   seat becomes free when its lease ends. A worker's share is the number of shards divided by the number of workers,
 *   rounded up.
 * - A worker with less than its share requests the locks of all shards that it does not have, and waits. It receives
 *   shards that are free or become free. As soon as it has enough, it withdraws its other requests.
 * - A worker keeps a shard for one term at most. If a job hangs, `maxHold` ends the hold. With `fairAfter`, a released
 *   shard goes to a waiting worker and not back to the worker that has just released it.
 *
 * A job runs under its shard's lease: it stops when the lease is lost, and its write carries the fencing token.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Lease, LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', NAME = `worker ${process.pid}`, SHARDS = '6' } = process.env
const { LEASE_MS = '5000', TERM_MS = '60000' } = process.env

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { lease: Number(LEASE_MS), label: NAME })
const shards = Array.from({ length: Number(SHARDS) }, (_, i) => i)
const stopping = new AbortController()

/** How many shards this worker should have. */
let share = 0
/** The shards that this worker has. To release a shard after the current job, abort its controller. */
const mine = new Map<number, AbortController>()
/** The shards that this worker has requested or has. To withdraw the request for a shard, abort its controller. */
const asked = new Map<number, AbortController>()

function keyOf(shard: number): string {
  return `example:shard:{${shard}}`
}

/** Releases the shards that exceed the worker's share, or requests more shards if the worker has too few. */
function settle(): void {
  for (const term of [...mine.values()].slice(share)) term.abort()
  for (const shard of shards) {
    if (mine.size >= share) asked.get(shard)?.abort()
    else if (!asked.has(shard)) void ask(shard)
  }
}

/** Waits for a shard, and works on it for a limited time (a term). */
async function ask(shard: number): Promise<void> {
  const asking = new AbortController()
  asked.set(shard, asking)
  try {
    // `serve` requests other shards. When the worker has worked on one of them, it may request this shard again. If
    // this function called `locks.using`, all these requests would begin inside `using`. There, a request for this
    // shard's lock re-enters the lock instead of waiting.
    const options = { fairAfter: 100, maxHold: 2 * Number(TERM_MS), signal: asking.signal }
    await using lease = await locks.lock(keyOf(shard), options)
    // The worker may have got enough shards just before this grant. Then it releases this shard at once, and the next
    // waiter gets the shard.
    if (mine.size >= share) return
    await serve(shard, lease)
  } catch (error) {
    // The lock was lost, or Redis is unreachable. The main loop counts the workers again after a while, and `settle`
    // then requests the shard again.
    if (error !== asking.signal.reason) console.log(`${NAME}: shard ${shard}: ${(error as Error).message}`)
    return
  } finally {
    asked.delete(shard)
    mine.delete(shard)
  }
  settle()
}

async function serve(shard: number, lease: Lease): Promise<void> {
  const term = new AbortController()
  mine.set(shard, term)
  settle()
  console.log(`${NAME}: shard ${shard} (${lease.via}), has ${mine.size} of ${share}`)
  const end = performance.now() + Number(TERM_MS)
  while (!term.signal.aborted && performance.now() < end) await job(shard, lease)
}

/**
 * In this example the shards are in Redis, and their jobs are numbered. This script refuses a write by a former holder,
 * and a job out of order.
 */
const DONE = `
  -- KEYS[1] the shard, KEYS[2] its log; ARGV[1] fencing token, ARGV[2] job, ARGV[3] worker
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  if tonumber(ARGV[2]) ~= tonumber(redis.call('HGET', KEYS[1], 'done') or 0) + 1 then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'done', ARGV[2])
  redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
  return 1
`

/** Does the shard's next job. If the lock is lost, the job stops, and `using` rejects with LockLostError. */
async function job(shard: number, { fencingToken, signal }: Lease): Promise<void> {
  const key = keyOf(shard)
  const next = Number((await redis.hget(key, 'done')) ?? 0) + 1
  await sleep(20, undefined, { signal })
  if (!(await redis.eval(DONE, 2, key, `${key}:log`, fencingToken, next, NAME)))
    throw new Error(`job ${next} was refused`)
}

/**
 * Takes the first free seat. A seat is a lock, and each live worker holds one of them. If no seat is free, returns
 * null. This worker then has no share, and tries again later.
 */
async function takeSeat(): Promise<Lease | null> {
  for (const seat of shards) {
    const lease = await locks.tryLock(`example:seat:${seat}`, { signal: stopping.signal })
    if (lease) return lease
  }
  return null
}

async function count(): Promise<number> {
  const seats = await Promise.all(shards.map(seat => locks.isLocked(`example:seat:${seat}`)))
  return seats.filter(taken => taken).length
}

process.once('SIGTERM', () => stopping.abort())
console.log(`${NAME}: ready`)

let seat: Lease | null = null
while (!stopping.signal.aborted) {
  try {
    if (!seat?.held) seat = await takeSeat()
    share = seat ? Math.ceil(shards.length / (await count())) : 0
  } catch (error) {
    // The worker could not take a seat or count the seats. The worker keeps its share, and keeps its shards for as long
    // as their leases last.
    if (!stopping.signal.aborted) console.log(`${NAME}: ${(error as Error).message}`)
  }
  settle()
  await sleep(Number(LEASE_MS) / 2, undefined, { signal: stopping.signal }).catch(() => {})
}

share = 0
settle()
while (mine.size > 0) await sleep(10) // waits until the current jobs are done
await locks.close()
redis.disconnect()
console.log(`${NAME}: stopped`)

/**
 * A coordinator that divides shards among processes. Each shard is worked on by one process at a time, and every
 * process has its share. Start it in three terminals, then end or kill one: the others take over.
 *
 * There is no leader, and no list of who has what. There are only locks:
 * - Each worker has a seat, which is a lock. So the number of taken seats is the number of live workers; a dead
 *   worker's seat becomes free when its lease ends. Each worker's share is the number of shards divided by the number
 *   of workers, rounded up.
 * - A worker with less than its share asks for the locks of all other shards, and parks. It is granted those that are
 *   free or become free, and stops asking for the rest as soon as it has enough.
 * - No worker keeps a shard for longer than a term. `maxHold` enforces this for a job that hangs. `fairAfter` makes
 *   sure that a waiting worker is next, and not the one that has just released.
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
/** The shards that it has. Aborting one releases it after the current job. */
const mine = new Map<number, AbortController>()
/** The shards that it asks for or has. Aborting one stops the request. */
const asked = new Map<number, AbortController>()

function keyOf(shard: number): string {
  return `example:shard:{${shard}}`
}

/** Adjusts what the worker has and asks for to its share. */
function settle(): void {
  for (const term of [...mine.values()].slice(share)) term.abort()
  for (const shard of shards) {
    if (mine.size >= share) asked.get(shard)?.abort()
    else if (!asked.has(shard)) void ask(shard)
  }
}

/** Waits for a shard and works on it for a term. */
async function ask(shard: number): Promise<void> {
  const asking = new AbortController()
  asked.set(shard, asking)
  try {
    // Not `using`, because the requests made from inside must be new ones, not re-entries of this one.
    const options = { fairAfter: 100, maxHold: 2 * Number(TERM_MS), signal: asking.signal }
    await using lease = await locks.lock(keyOf(shard), options)
    if (mine.size >= share) return // granted just when there were enough: the next waiter gets it
    await serve(shard, lease)
  } catch (error) {
    // Lost, or Redis is out of reach: the worker asks again at its next count, not at once.
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

/** Here, a shard is a sequence of jobs in Redis, done one by one. It refuses a late holder, and a job out of order. */
const DONE = `
  -- KEYS[1] the shard, KEYS[2] its log; ARGV[1] fencing token, ARGV[2] job, ARGV[3] worker
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  if tonumber(ARGV[2]) ~= tonumber(redis.call('HGET', KEYS[1], 'done') or 0) + 1 then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'done', ARGV[2])
  redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
  return 1
`

/** The next job of the shard. If the lock is lost it stops, and throws the reason. */
async function job(shard: number, { fencingToken, signal }: Lease): Promise<void> {
  const key = keyOf(shard)
  const next = Number((await redis.hget(key, 'done')) ?? 0) + 1
  await sleep(20, undefined, { signal }).catch(() => signal.throwIfAborted())
  if (!(await redis.eval(DONE, 2, key, `${key}:log`, fencingToken, next, NAME)))
    throw new Error(`job ${next} was refused`)
}

/** The first free seat. Null if there are as many workers as shards; then this one stands by. */
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
    // The worker keeps its shards as long as their leases last.
    if (!stopping.signal.aborted) console.log(`${NAME}: ${(error as Error).message}`)
  }
  settle()
  await sleep(Number(LEASE_MS) / 2, undefined, { signal: stopping.signal }).catch(() => {})
}

share = 0
settle()
while (mine.size > 0) await sleep(10) // until the current jobs are done
await locks.close()
redis.disconnect()
console.log(`${NAME}: stopped`)

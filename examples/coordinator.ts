/**
 * A coordinator that shares out shards. Work is cut into shards, each is worked on by one process at a time, and every
 * process has its share. Start it in three terminals, then end one, or kill it: the others take over.
 *
 * There is no leader, and no list of who has what. There are locks only:
 *   - Each worker sits on a seat, which is a lock. So the seats that are taken say how many workers live; that of a dead
 *     one gets free with its lease. The shards divided by the workers, rounded up, is everybody's share.
 *   - A worker with less than its share asks for the locks of all other shards, and parks. It is granted those that are
 *     free or get free, and stops asking for the rest as soon as it has enough.
 *   - Nobody keeps a shard for longer than a term. `maxHold` sees to it where a job hangs, and `fairAfter` to it that
 *     somebody who waits is next, and not the one that has just let go.
 *
 * A job is done under its shard's lease: it stops when the lease is lost, and its effect carries the fencing token.
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

/** How many shards this worker shall have. */
let share = 0
/** Those that it has. Aborted: it lets go after the job that is under way. */
const mine = new Map<number, AbortController>()
/** Those that it asks for or has. Aborted: it does not ask any more. */
const asked = new Map<number, AbortController>()

function keyOf(shard: number): string {
  return `example:shard:{${shard}}`
}

/** Brings what it has and what it asks for into line with its share. */
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
    // Not `using`: what is asked for below, out of here, is to be new claims, not re-entries of this one.
    const options = { fairAfter: 100, maxHold: 2 * Number(TERM_MS), signal: asking.signal }
    await using lease = await locks.lock(keyOf(shard), options)
    if (mine.size >= share) return // granted at the very moment at which there was enough: it goes to the next
    await serve(shard, lease)
  } catch (error) {
    // Lost, or Redis is out of reach: asked for again at the next count, not at once.
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

/** The shards are in Redis here, as a row of jobs to be done one by one. It refuses a late holder, and a job out of turn. */
const DONE = `
  -- KEYS[1] the shard, KEYS[2] its log; ARGV[1] fencing token, ARGV[2] job, ARGV[3] worker
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  if tonumber(ARGV[2]) ~= tonumber(redis.call('HGET', KEYS[1], 'done') or 0) + 1 then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'done', ARGV[2])
  redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
  return 1
`

/** The next job of the shard. If the lock is lost it stops, and says why. */
async function job(shard: number, { fencingToken, signal }: Lease): Promise<void> {
  const key = keyOf(shard)
  const next = Number((await redis.hget(key, 'done')) ?? 0) + 1
  await sleep(20, undefined, { signal }).catch(() => signal.throwIfAborted())
  if (!(await redis.eval(DONE, 2, key, `${key}:log`, fencingToken, next, NAME)))
    throw new Error(`job ${next} was refused`)
}

/** The first free seat; null: there are as many workers as shards, and this one stands by. */
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
    // What it has, it may have for as long as its leases last.
    if (!stopping.signal.aborted) console.log(`${NAME}: ${(error as Error).message}`)
  }
  settle()
  await sleep(Number(LEASE_MS) / 2, undefined, { signal: stopping.signal }).catch(() => {})
}

share = 0
settle()
while (mine.size > 0) await sleep(10) // until the jobs that are under way are done
await locks.close()
redis.disconnect()
console.log(`${NAME}: stopped`)

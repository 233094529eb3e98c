/**
 * A job that is scheduled on two machines, although only one of them should run it. Both machines have the same line in
 * their crontab:
 *
 *     0 2 * * *   REDIS_URL=redis://… node report.js
 *
 * The lock keeps the two machines from working at the same time. It does not make the job run only once: the second
 * machine may start a minute late, when the lock is free again. So the job records its result where both machines see
 * it, and checks under the lock whether there is a result already.
 *
 * If a command may safely run twice in a row, `baton run` is enough, and no code is needed:
 *
 *     0 2 * * *   baton run nightly-report --timeout 0 -- ./report.sh
 *
 * With `--timeout 0`, `baton run` does not wait. Exit code 124 means that the other machine is running the job.
 * `./report.sh` finds the fencing token in BATON_FENCING_TOKEN.
 */
import { setTimeout as work } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Lease, LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env
const [night = new Date().toISOString().slice(0, 10)] = process.argv.slice(2)

/**
 * Stores a report. In this example Redis is the database. The script refuses a write if its fencing token is smaller
 * than the token of the last write.
 */
const STORE = `
  -- KEYS[1] the reports; ARGV[1] fencing token, ARGV[2] night, ARGV[3] report
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], ARGV[2], ARGV[3])
  return 1
`
const reports = 'example:reports'

async function write({ fencingToken, signal }: Lease): Promise<void> {
  let report = ''
  for (const part of ['orders', 'returns', 'stock']) {
    // When the lock is lost, the other machine may begin. So the lease's signal stops this work.
    await work(50, undefined, { signal })
    report += `${part}: fine. `
  }
  const stored = await redis.eval(STORE, 1, reports, fencingToken, night, report.trim())
  if (!stored) throw new Error('the lock was lost, and somebody else has written since')
}

await using locks = new LockClient(REDIS_URL)
const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))

try {
  // A report that hangs must not keep the lock all night: after an hour the other machine may get it.
  await using lease = await locks.tryLock('example:nightly-report', { maxHold: 3_600_000 })
  if (!lease) console.log(`${night}: the other machine is at it`)
  else if (await redis.hexists(reports, night)) console.log(`${night}: done already`)
  else {
    await write(lease)
    console.log(`${night}: written`)
  }
} finally {
  redis.disconnect()
}

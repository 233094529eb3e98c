/**
 * A scheduled job on two machines, which only one of them should do. Both have the same line in their crontab:
 *
 *     0 2 * * *   REDIS_URL=redis://… node report.js
 *
 * The lock keeps the two from working at the same time. The lock alone does not make the job run only once: the second
 * machine may be a minute late, and find the lock free again. So each machine records under the lock what it has done,
 * where both can see it, and checks the record first.
 *
 * The same without a line of code, for a command that does no harm when it runs twice in a row:
 *
 *     0 2 * * *   baton run nightly-report --timeout 0 -- ./report.sh
 *
 * `--timeout 0` does not wait: exit code 124 means that the other machine is at work. `./report.sh` has the fencing
 * token in BATON_FENCING_TOKEN.
 */
import { setTimeout as work } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Lease, LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env
const [night = new Date().toISOString().slice(0, 10)] = process.argv.slice(2)

/** Stands for the database of the reports. It refuses the write of a holder if a later one has already written. */
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
    // Anything that takes a signal stops when the lock is lost, and the other machine may begin.
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
  // A report that hangs must not keep the lock until somebody comes to the office: after an hour the other machine may
  // begin.
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

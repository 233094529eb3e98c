/**
 * A scheduled job on two machines, of which one shall do it. Both have the same line in their crontab:
 *
 *     0 2 * * *   REDIS_URL=redis://… node report.js
 *
 * The lock keeps the two from working at the same time. It is not what makes the job run once: the second machine may be
 * a minute late, and find the lock free again. So what has been done is written down where both see it, and looked at
 * under the lock.
 *
 * The same without a line of code, for a command that does no harm when it runs twice in a row:
 *
 *     0 2 * * *   baton run nightly-report --timeout 0 -- ./report.sh
 *
 * `--timeout 0` does not wait: exit code 124 says that the other machine is at it. `./report.sh` has the fencing token in
 * BATON_FENCING_TOKEN.
 */
import { setTimeout as work } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Lease, LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env
const [night = new Date().toISOString().slice(0, 10)] = process.argv.slice(2)

/** Stands for the database of the reports: it refuses who held the lock before the last to write, and keeps the rest. */
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
    // Whatever takes a signal stops by itself when the lock is lost, and the other machine may begin.
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
  // A report that hangs shall not keep the lock until somebody comes to the office: after an hour it is the other's turn.
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

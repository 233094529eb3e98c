/**
 * A job that runs once a tick, on whichever of several machines asks first. The machines have clocks of their own, so
 * they ask at different moments. With `minHold`, the lock stays taken until all of them have asked, even if the job ends
 * at once, or its process dies. No state is kept, and no machine is special.
 *
 *     npx tsx examples/tick.ts
 *
 * `minHold` has to be longer than the clocks may differ and shorter than a tick without that time. For a job that runs
 * each minute, 50 s are right. From a crontab:
 *
 *     * * * * *   baton run tick --busy-ok --min-hold 50s -- ./tick.sh
 */
import { setTimeout as until } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', TICK_MS = '60000', TICKS = '3', SKEW_MS = '0' } = process.env
const tick = Number(TICK_MS)

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis)

/** The clock of this machine, which differs from that of the others. */
const now = () => Date.now() + Number(SKEW_MS)

console.log('ready')
try {
  for (let i = 0; i < Number(TICKS); i++) {
    const number = Math.floor(now() / tick) + 1
    await until(number * tick - now())
    const lease = await locks.tryLock('example:tick', { minHold: (tick * 3) / 4 })
    if (!lease) continue
    try {
      await redis.rpush('example:ticks', number)
      console.log(`tick ${number}`)
    } finally {
      await lease.release()
    }
  }
} finally {
  // What `minHold` keeps taken stays so.
  await locks.close()
  redis.disconnect()
}

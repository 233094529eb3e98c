/**
 * A process with one caller that wants a lock all the time, on the message 'go': it writes its name into a log each time that
 * it has the lock, and ends when the log is as long as it is to be.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { LockClient } from '../../../src/index.ts'

export interface Loop {
  url: string
  key: string
  /** A list of Redis. */
  log: string
  name: string
  /** ms. */
  hold: number
  /** Entries of the log. */
  length: number
}

const { url, key, log, name, hold, length } = JSON.parse(process.argv[2] as string) as Loop
const redis = new Redis(url)
const locks = new LockClient(url)

process.on('disconnect', () => process.exit())
process.once('message', async () => {
  for (let written = 0; written < length; ) {
    const lease = await locks.lock(key)
    written = await redis.rpush(log, name)
    await sleep(hold)
    await lease.release()
  }
  process.send?.({ type: 'done' })
})
await locks.isLocked(key)
process.send?.({ type: 'ready' })

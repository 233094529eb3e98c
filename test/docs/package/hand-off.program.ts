/** A user's program that is bundled. It has two clients; the first hands its lock over to the second. */
import { LockClient } from 'redis-baton'

const [url, key] = process.argv.slice(2) as [string, string]
const first = new LockClient(url)
const second = new LockClient(url)
try {
  const lease = await first.lock(key)
  const queued = new Promise(resolve => second.once('waiting', resolve))
  const granted = second.lock(key, { fair: true, timeout: 20_000 })
  await queued
  await lease.release()
  const next = await granted
  const later = next.fencingToken > lease.fencingToken
  const released = await next.release()
  console.log(JSON.stringify({ via: next.via, later, released, locked: await first.isLocked(key) }))
} finally {
  await Promise.all([first.close(), second.close()])
}

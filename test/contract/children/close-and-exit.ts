/** Uses a client in every way, closes it, and has nothing else to do: the process must then end by itself. */
import { LockClient } from '../../../src/index.ts'

const [url, key, way] = process.argv.slice(2) as [string, string, string]

if (way === 'await using') {
  await using locks = new LockClient(url)
  await locks.lock(key)
} else {
  const [locks, other] = [new LockClient(url), new LockClient(url)]
  if (way !== 'unused') {
    await locks.lock(key)
    await locks.lock(`${key}:fixed`, { lease: 60_000 })
    other.lock(key, { fair: true }).catch(() => {})
    other.lock(key, { fairAfter: 60_000 }).catch(() => {})
    other.lock(key, { timeout: 60_000, signal: new AbortController().signal }).catch(() => {})
    while ((await locks.inspect(key)).waiters.length === 0);
  }
  await Promise.all([locks.close(), other.close()])
}
process.send?.({ closed: true })
process.disconnect?.()

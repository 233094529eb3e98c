/**
 * Uses clients, unless the argument `way` is `unused`, closes them, and starts no other work. The process must then exit
 * on its own.
 */
import { LockClient } from '../../../src/index.ts'
import { sourceOf } from '../../kit/topologies/source.ts'

const [place, key, way] = process.argv.slice(2) as [string, string, string]
const newClient = () => new LockClient(sourceOf(JSON.parse(place)))

if (way === 'await using') {
  await using locks = newClient()
  await locks.lock(key)
} else {
  const [locks, other] = [newClient(), newClient()]
  if (way !== 'unused') {
    await locks.lock(key)
    await locks.lock(`${key}:fixed`, { lease: 20_000 })
    other.lock(key, { fair: true }).catch(() => {})
    other.lock(key, { fairAfter: 60_000 }).catch(() => {})
    other.lock(key, { timeout: 60_000, signal: new AbortController().signal }).catch(() => {})
    while ((await locks.inspect(key)).waiters.length === 0);
  }
  await Promise.all([locks.close(), other.close()])
}
process.send?.({ closed: true })
process.disconnect?.()

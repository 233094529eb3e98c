/**
 * With `await using`, the code under the lock needs no callback function. The lease is released at the end of the block
 * in which it was declared, also after a `return` or an exception. In the same way, the client is closed at the end of
 * the file.
 */
import { setTimeout as work } from 'node:timers/promises'
import { LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

await using locks = new LockClient(REDIS_URL)
const key = 'example:nightly-export'

async function exportAll(tables: string[]): Promise<number> {
  await using lease = await locks.lock(key, { timeout: 10_000 })
  console.log(`granted (${lease.via})`)

  for (const table of tables) {
    // Functions that take an AbortSignal stop when the lock is lost, before another caller can get it.
    await work(10, undefined, { signal: lease.signal })
    console.log(`exported ${table}`)
  }

  // `locks.using` reports that the lock was lost. The end of an `await using` block does not, so this line checks it.
  lease.signal.throwIfAborted()
  return lease.fencingToken // lets readers compare exports: the larger token is the later export
}

const first = await exportAll(['orders', 'customers'])
console.log(`still locked: ${await locks.isLocked(key)}`)

const second = await exportAll([])
console.log(`the second export has the larger token: ${second > first}`)

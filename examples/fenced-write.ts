/**
 * A fenced write protects data where a lock alone cannot. A process may be paused, for instance by garbage collection
 * or because a laptop is closed. If the process continues after its lease has ended, it overwrites the next holder's
 * work. Checking the time first does not help: the process can be paused after the check. So every write carries its
 * lease's fencing token, and the database refuses a write whose token is smaller than the last stored token.
 */
import sqlite from 'node-sqlite3-wasm'
import { type Lease, LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

class StaleWriterError extends Error {}

const db = new sqlite.Database() // an in-memory database, in place of one that all processes share
db.exec(`
  CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, fencing_token INTEGER NOT NULL) STRICT;
  INSERT INTO account VALUES ('alice', 100, 0);
`)

function balanceOf(id: string): number {
  return db.get('SELECT balance FROM account WHERE id = ?', id)?.['balance'] as number
}

/**
 * Checks the token and writes in one statement, so no other write can come between. An equal token is accepted, because
 * one holder may write several times.
 */
function setBalance(id: string, balance: number, { fencingToken }: Lease): void {
  const { changes } = db.run('UPDATE account SET balance = ?, fencing_token = ? WHERE id = ? AND fencing_token <= ?', [
    balance,
    fencingToken,
    id,
    fencingToken,
  ])
  if (changes === 0) throw new StaleWriterError(`${id} is unknown, or token ${fencingToken} is stale`)
}

await using locks = new LockClient(REDIS_URL)
const key = 'example:account:alice'

try {
  // This lease has a fixed length and is not renewed, so it runs out like the lease of a paused process. The next
  // holder waits until then.
  const paused = await locks.lock(key, { lease: 250 })
  const seenByPaused = balanceOf('alice')

  await locks.using(key, { timeout: 10_000 }, lease => {
    console.log(`the next holder has a larger token: ${lease.fencingToken > paused.fencingToken}`)
    setBalance('alice', balanceOf('alice') + 50, lease)
    console.log(`it deposits 50: ${balanceOf('alice')}`)
  })

  try {
    // This check does not protect the data, because a process may be paused between the check and its write. The
    // database protects the data: it refuses this write.
    console.log(`the paused process still holds: ${paused.held}`)
    setBalance('alice', seenByPaused - 30, paused)
  } catch (error) {
    if (!(error instanceof StaleWriterError)) throw error
    console.log(`its write is refused: ${balanceOf('alice')}`)
  }
} finally {
  db.close()
}

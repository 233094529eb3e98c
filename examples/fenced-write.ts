/**
 * A fenced write makes the data safe where a lock alone cannot. A process that is paused (by garbage collection, or a
 * laptop's lid) can outlive its lease, check the clock, be paused again, and then overwrite the next holder's work. So
 * every write carries its lease's fencing token, and the database refuses a token that is smaller than the last one.
 */
import sqlite from 'node-sqlite3-wasm'
import { type Lease, LockClient } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

class StaleWriterError extends Error {}

const db = new sqlite.Database() // in memory; it stands for the database that all processes share
db.exec(`
  CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, fencing_token INTEGER NOT NULL) STRICT;
  INSERT INTO account VALUES ('alice', 100, 0);
`)

function balanceOf(id: string): number {
  return db.get('SELECT balance FROM account WHERE id = ?', id)?.['balance'] as number
}

/**
 * Check and write are one statement, so nothing can happen in between. Equal tokens pass: one holder may write often.
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
  // A fixed lease is not renewed, so it runs out like that of a paused process. The next holder only has to wait.
  const paused = await locks.lock(key, { lease: 250 })
  const seenByPaused = balanceOf('alice')

  await locks.using(key, { timeout: 10_000 }, lease => {
    console.log(
      `the next holder came by ${lease.via}, with a larger token: ${lease.fencingToken > paused.fencingToken}`,
    )
    setBalance('alice', balanceOf('alice') + 50, lease)
    console.log(`it deposits 50: ${balanceOf('alice')}`)
  })

  try {
    // A process that is paused between this check and its write cannot rely on the check. The database refuses the
    // write.
    console.log(`the paused process still holds: ${paused.held}`)
    setBalance('alice', seenByPaused - 30, paused)
  } catch (error) {
    if (!(error instanceof StaleWriterError)) throw error
    console.log(`its write is refused: ${balanceOf('alice')}`)
  }
} finally {
  db.close()
}

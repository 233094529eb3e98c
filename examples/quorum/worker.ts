/**
 * A worker over a quorum of five servers. Start this program several times. The workers take turns. Each turn writes
 * two lines to a ledger, and no line of another worker is between these two. Turns continue while one or two servers
 * are down. While three are down, no turn begins, and no data is damaged.
 */
import { appendFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Lease, LockClient, LockError } from 'redis-baton'

const { LEDGER = 'ledger.txt', NAME = `worker ${process.pid}`, OUTAGE_MS = '15000' } = process.env
/** The default servers are those of compose.yaml in this folder. */
const { REDIS_URLS = [7001, 7002, 7003, 7004, 7005].map(port => `redis://127.0.0.1:${port}`).join() } = process.env

const locks = new LockClient(REDIS_URLS.split(','), { label: NAME, outageTimeout: Number(OUTAGE_MS) })
locks.on('error', ({ error }) => console.log(`${NAME}: ${error}`))

const stop = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort())

/**
 * Writes the two lines of a turn. A file cannot check the fencing token. A database would refuse a write with an older
 * token: see docs/fencing.md.
 */
async function turn({ fencingToken, signal }: Lease): Promise<void> {
  await appendFile(LEDGER, `begin ${fencingToken} ${NAME}\n`)
  await sleep(20, undefined, { signal })
  await appendFile(LEDGER, `end ${fencingToken} ${NAME}\n`)
}

console.log(`${NAME}: ready`)
while (!stop.signal.aborted) {
  try {
    await locks.using('example:ledger', { fair: true, signal: stop.signal }, turn)
  } catch (error) {
    if (stop.signal.aborted) break
    if (!(error instanceof LockError)) throw error
    // Too few servers answered. The error says which ones did not, and why. The worker tries again a little later.
    const reasons = error.cause instanceof AggregateError ? error.cause.errors.map(String) : []
    console.log(`${NAME}: ${[error.message, ...reasons].join('; ')}`)
    await sleep(500, undefined, { signal: stop.signal }).catch(() => {})
  }
}
await locks.close()
console.log(`${NAME}: stopped`)

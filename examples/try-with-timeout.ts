/**
 * Three ways to limit a wait: make one attempt, wait for a limited time, or stop waiting when the program has to stop.
 */
import { type Lease, LockClient, LockTimeoutError } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

await using locks = new LockClient(REDIS_URL, { label: 'report server' })
const key = 'example:report'

/** Pretends to store the report. The store refuses a write with an older fencing token: see `fenced-write.ts`. */
let lastToken = 0
function write({ fencingToken }: Lease): string {
  if (fencingToken < lastToken) throw new Error('a later holder has already written')
  lastToken = fencingToken
  return 'written'
}

/**
 * One writer per report is enough, so this function does not wait. `tryLock` returns null if another caller holds the
 * lock.
 */
async function writeUnlessBusy(): Promise<string> {
  await using lease = await locks.tryLock(key)
  return lease ? write(lease) : 'somebody else is writing it'
}

/** Waits for at most `timeout` ms. The error of a timeout names the holder. */
async function writeSoon(timeout: number): Promise<string> {
  try {
    return await locks.using(key, { timeout }, write)
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error
    return `given up, held by the ${error.holder?.label}`
  }
}

/** Waits for as long as necessary. If the signal aborts, the caller leaves the queue at once. */
async function writeUntilStopped(stop: AbortSignal): Promise<string> {
  try {
    return await locks.using(key, { fair: true, signal: stop }, write)
  } catch (error) {
    if (error !== stop.reason) throw error
    return `not written, ${stop.reason.message}`
  }
}

const holder = await locks.lock(key)
console.log(`one attempt: ${await writeUnlessBusy()}`)
console.log(`200 ms: ${await writeSoon(200)}`)

const stop = new AbortController() // a server would abort it in process.once('SIGTERM', …)
locks.once('waiting', () => stop.abort(new Error('the server shuts down')))
console.log(`until stopped: ${await writeUntilStopped(stop.signal)}`)

const soon = writeSoon(10_000)
await holder.release()
console.log(`10 s: ${await soon}`)
console.log(`one attempt: ${await writeUnlessBusy()}`)

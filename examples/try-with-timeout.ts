/** Ways not to wait for ever: one attempt, a bounded wait, and a wait that ends when the program is told to stop. */
import { type Lease, LockClient, LockTimeoutError } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379' } = process.env

await using locks = new LockClient(REDIS_URL, { label: 'report server' })
const key = 'example:report'

/**
 * Stands for the store of the report, which refuses the write of a holder if a later one has already written: see
 * `fenced-write.ts`.
 */
let lastToken = 0
function write({ fencingToken }: Lease): string {
  if (fencingToken < lastToken) throw new Error('a later holder has already written')
  lastToken = fencingToken
  return 'written'
}

/** A report that is being written needs no second writer: do not wait, and null is no error. */
async function writeUnlessBusy(): Promise<string> {
  await using lease = await locks.tryLock(key)
  return lease ? write(lease) : 'somebody else is writing it'
}

/** Waiting makes sense here, but not for long. The error says who holds the lock. */
async function writeSoon(timeout: number): Promise<string> {
  try {
    return await locks.using(key, { timeout }, write)
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error
    return `given up, held by the ${error.holder?.label}`
  }
}

/** Waits as long as it takes, unless it is told to stop. Then it leaves the queue at once. */
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

const stop = new AbortController() // in a server: aborted by process.once('SIGTERM', …)
locks.once('waiting', () => stop.abort(new Error('the server shuts down')))
console.log(`until stopped: ${await writeUntilStopped(stop.signal)}`)

const soon = writeSoon(10_000)
await holder.release()
console.log(`10 s: ${await soon}`)
console.log(`one attempt: ${await writeUnlessBusy()}`)

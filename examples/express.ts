/**
 * A web server with Express; several instances run side by side. Each change to an account runs under the account's
 * lock. The lock is fair, so requests are served in the order in which they arrive, whichever instance receives them.
 *
 *     POST /accounts/42/withdrawals   {"amount": 5}   →   200 {"balance": 95}
 *
 * What to copy:
 * - A request does not wait forever. It is answered with 503 and Retry-After, and the client decides whether to retry.
 * - Nor does it wait behind many others: the server sheds load, and says in Retry-After for how long it would have waited.
 * - A client that disconnects while it waits leaves the queue at once, so the lock is not granted to it.
 * - The work receives the lease's signal, and stops when the lock is lost. The write carries the fencing token.
 * - On SIGTERM, waiting requests are refused, so that their clients try another instance. Requests that hold a lock may
 *   finish, within the `drain` time of `close`.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as work } from 'node:timers/promises'
import express, { type NextFunction, type Request, type Response } from 'express'
import { Redis } from 'ioredis'
import {
  LockClient,
  LockClosedError,
  LockConnectionError,
  LockLostError,
  LockQueueFullError,
  LockTimeoutError,
} from 'redis-baton'

/** Errors after which it is unknown whether the work was done. */
const uncertain = [LockLostError, LockClosedError]

/** Whether a request did not get its lock because Redis is out of reach. Its work has not begun. */
const isAway = (error: unknown) =>
  error instanceof LockConnectionError || (error instanceof LockTimeoutError && error.cause !== undefined)

const {
  REDIS_URL = 'redis://127.0.0.1:6379',
  PORT = '3000',
  MAX_WAIT_MS = '2000',
  MAX_WAITERS = '20',
  PAYMENT_MS = '50',
} = process.env

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { fair: true, timeout: Number(MAX_WAIT_MS) })
const stopping = new AbortController()

/** A refused request. A refusal is an answer to the client, not a fault of the server. */
class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * In this example the accounts are in Redis. As a database should, this script refuses a write with an older fencing
 * token.
 */
const STORE = `
  -- KEYS[1] the account; ARGV[1] fencing token, ARGV[2] balance
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'balance', ARGV[2])
  return 1
`

/** Pretends to call the payment provider. If the lock is lost, the call stops, and `using` rejects with LockLostError. */
async function pay(_amount: number, signal: AbortSignal): Promise<void> {
  await work(Number(PAYMENT_MS), undefined, { signal })
}

function withdraw(account: string, amount: number, signal: AbortSignal): Promise<number> {
  // `signal` ends only the wait for the lock. Once the lock is held, the work is finished even if the client
  // disconnects.
  return locks.using(account, { signal, maxWaiters: Number(MAX_WAITERS) }, async lease => {
    const balance = Number((await redis.hget(account, 'balance')) ?? 100) - amount
    if (balance < 0) throw new Refusal(409, 'the account has less than that')
    await pay(amount, lease.signal)
    const stored = await redis.eval(STORE, 1, account, lease.fencingToken, balance)
    if (!stored) throw new Refusal(503, 'somebody else has had the account in the meantime')
    return balance
  })
}

/** Aborts when the client has disconnected, or when this server is about to stop. */
function noLongerWanted(response: Response): AbortSignal {
  const gone = new AbortController()
  response.once('close', () => gone.abort(new Refusal(499, 'the client has gone')))
  return AbortSignal.any([gone.signal, stopping.signal])
}

const app = express()

app.post('/accounts/:id/withdrawals', express.json(), async (request, response) => {
  const amount: unknown = request.body?.amount
  if (typeof amount !== 'number' || !(amount > 0)) throw new Refusal(400, 'an amount above 0 is needed')
  const balance = await withdraw(`example:account:${request.params.id}`, amount, noLongerWanted(response))
  response.json({ balance })
})

app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
  if (response.headersSent || response.destroyed) return
  if (isAway(error)) {
    const why = 'nothing was withdrawn, because Redis is out of reach'
    response.status(503).set('Retry-After', '5').json({ error: why })
  } else if (error instanceof LockTimeoutError) {
    const place = error.position ? `, ${error.position - 1} ahead of you` : ''
    response
      .status(503)
      .set('Retry-After', '1')
      .json({ error: `the account is busy${place}` })
  } else if (error instanceof LockQueueFullError) {
    const seconds = Math.ceil((error.expected ?? 1_000) / 1_000)
    response
      .status(503)
      .set('Retry-After', String(seconds))
      .json({ error: `the account is busy, with ${error.waiters} requests ahead of you` })
  } else if (uncertain.some(kind => error instanceof kind)) {
    response.status(503).set('Retry-After', '5').json({ error: 'look at the account before you try again' })
  } else if (error instanceof Refusal) {
    if (error.status === 503) response.set('Retry-After', '1')
    response.status(error.status).json({ error: error.message })
  } else next(error)
})

const server = createServer(app).listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`)

process.once('SIGTERM', async () => {
  stopping.abort(new Refusal(503, 'this server is about to stop'))
  server.close() // accepts no new requests; requests under way run to their end
  // Each kept-alive connection is closed after its last answer.
  const idle = setInterval(() => server.closeIdleConnections(), 50)
  // A payment that is not finished within `drain` loses its lock, and the signal of its lease aborts the payment.
  await Promise.all([once(server, 'close'), locks.close({ drain: 10_000 })])
  clearInterval(idle)
  redis.disconnect()
  console.log('stopped')
})

/**
 * A web server, with Express, of which several run side by side. Whatever changes an account runs under the account's
 * lock: fair, so that people are served in the order in which they came, on whichever server.
 *
 *     POST /accounts/42/withdrawals   {"amount": 5}   →   200 {"balance": 95}
 *
 * What to take over from it:
 *   - A request does not wait for ever: it is answered by 503 and Retry-After, and its client decides.
 *   - Who goes away while waiting leaves the queue at once. Nobody's turn is spent on a person who is gone.
 *   - The work gets the lease's signal, and stops when the lock is lost. The write carries the fencing token.
 *   - SIGTERM: who waits is sent to another server, who is being served is served, but not for ever: `close` with `drain`.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as work } from 'node:timers/promises'
import express, { type NextFunction, type Request, type Response } from 'express'
import { Redis } from 'ioredis'
import { LockClient, LockClosedError, LockConnectionError, LockLostError, LockTimeoutError } from 'redis-baton'

/** What ends a hold before its work is done, or hides how it ended. */
const uncertain = [LockLostError, LockConnectionError, LockClosedError]

const { REDIS_URL = 'redis://127.0.0.1:6379', PORT = '3000', MAX_WAIT_MS = '2000', PAYMENT_MS = '50' } = process.env

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { fair: true, timeout: Number(MAX_WAIT_MS) })
const stopping = new AbortController()

/** Why a request was not carried out: an answer, and no fault of ours. */
class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The accounts are in Redis here. As any good database, it refuses who held the lock before the last to write. */
const STORE = `
  -- KEYS[1] the account; ARGV[1] fencing token, ARGV[2] balance
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'balance', ARGV[2])
  return 1
`

/** Stands for the payment provider. It is asked to stop when the lock is lost, and says why it did. */
async function pay(_amount: number, signal: AbortSignal): Promise<void> {
  await work(Number(PAYMENT_MS), undefined, { signal }).catch(() => signal.throwIfAborted())
}

function withdraw(account: string, amount: number, signal: AbortSignal): Promise<number> {
  // `signal` ends the wait. Once the lock is ours, the work is done to its end, whether or not its client is still there.
  return locks.using(account, { signal }, async lease => {
    const balance = Number((await redis.hget(account, 'balance')) ?? 100) - amount
    if (balance < 0) throw new Refusal(409, 'the account has less than that')
    await pay(amount, lease.signal)
    const stored = await redis.eval(STORE, 1, account, lease.fencingToken, balance)
    if (!stored) throw new Refusal(503, 'somebody else has had the account in the meantime')
    return balance
  })
}

/** Aborts when nobody waits for this answer any more, or when this server is about to stop. */
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
  if (error instanceof LockTimeoutError) {
    const place = error.position ? `, ${error.position - 1} ahead of you` : ''
    response
      .status(503)
      .set('Retry-After', '1')
      .json({ error: `the account is busy${place}` })
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
  server.close() // no new requests; those that have the lock are carried out
  // Connections that are kept alive end when their last answer is out.
  const idle = setInterval(() => server.closeIdleConnections(), 50)
  // A payment that takes longer is told by its signal that it does not have the lock any more.
  await Promise.all([once(server, 'close'), locks.close({ drain: 10_000 })])
  clearInterval(idle)
  redis.disconnect()
  console.log('stopped')
})

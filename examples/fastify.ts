/**
 * A web server with Fastify; several instances run side by side. Each checkout runs under its cart's lock, and first
 * checks whether the cart has been paid for. So a double click charges the customer once, whichever instances receive
 * the two requests.
 *
 *     POST /carts/42/checkout   →   200 {"paid": true}, then 409; 423 while another request holds the lock
 *
 * `prepareForLocks` contains everything that locks need from a web server. If a client disconnects, its request stops
 * waiting. A request that does not get the lock in time is answered with an error. When the server stops, holders may
 * finish. express.ts lists further points to copy.
 */
import { setTimeout as work } from 'node:timers/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import { Redis } from 'ioredis'
import { LockClient, LockClosedError, LockConnectionError, LockLostError, LockTimeoutError } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', PORT = '3000', MAX_WAIT_MS = '2000', PAYMENT_MS = '50' } = process.env

declare module 'fastify' {
  interface FastifyRequest {
    /** Aborts when the client has disconnected, or when this server is about to stop. */
    wanted: AbortSignal
  }
}

/** A refused request. A refusal is not a fault of the server. Fastify reads the status from this error. */
class Refusal extends Error {
  readonly statusCode: number

  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}

/** Errors after which it is unknown whether the work was done. */
const uncertain = [LockLostError, LockClosedError]

/** Whether a request did not get its lock because Redis is out of reach. Its work has not begun. */
const isAway = (error: unknown) =>
  error instanceof LockConnectionError || (error instanceof LockTimeoutError && error.cause !== undefined)

/**
 * Prepares all routes that take locks. Ends the wait of a client that disconnects, turns lock errors into answers, and
 * closes the lock client when the server stops.
 */
function prepareForLocks(app: FastifyInstance, locks: LockClient): void {
  const stopping = new AbortController()

  app.decorateRequest('wanted')
  app.addHook('onRequest', async (request, reply) => {
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort(new Refusal(499, 'the client has gone')))
    request.wanted = AbortSignal.any([gone.signal, stopping.signal])
  })

  app.setErrorHandler((error, _request, reply) => {
    if (isAway(error)) {
      const why = 'nothing was paid, because Redis is out of reach'
      return reply.code(503).header('Retry-After', '5').send({ error: why })
    }
    if (error instanceof LockTimeoutError) {
      const since = error.holder ? `, since ${Math.round(error.holder.heldFor)} ms` : ''
      return reply
        .code(423)
        .header('Retry-After', '1')
        .send({ error: `another request is at it${since}` })
    }
    if (uncertain.some(kind => error instanceof kind)) {
      return reply.code(503).header('Retry-After', '5').send({ error: 'look at the cart before you try again' })
    }
    if (error instanceof Refusal && error.statusCode === 503) reply.header('Retry-After', '1')
    return reply.send(error)
  })

  let closed: Promise<void> | undefined
  app.addHook('preClose', async () => {
    stopping.abort(new Refusal(503, 'this server is about to stop'))
    closed = locks.close({ drain: 10_000 }) // holders have 10 s to finish; then their signals abort
  })
  app.addHook('onSend', async (_request, reply) => {
    // Without this header, clients would keep their connections open, and closing the server would wait for them.
    if (stopping.signal.aborted) reply.header('Connection', 'close')
  })
  app.addHook('onClose', async () => closed)
}

/**
 * In this example the carts are in Redis. As a database should, this script refuses a write with an older fencing
 * token.
 */
const PAID = `
  -- KEYS[1] the cart; ARGV[1] fencing token
  if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'token') or 0) then return 0 end
  redis.call('HSET', KEYS[1], 'token', ARGV[1], 'paid', 'true')
  return 1
`

const redis = new Redis(REDIS_URL)
redis.on('error', error => console.error(`Redis: ${error.message}`))
const locks = new LockClient(redis, { timeout: Number(MAX_WAIT_MS) })
const app = Fastify()
app.addHook('onClose', async () => redis.disconnect())
prepareForLocks(app, locks)

/** Pretends to call the payment provider. If the lock is lost, the call stops, and `using` rejects with LockLostError. */
async function charge(cart: string, signal: AbortSignal): Promise<void> {
  await work(Number(PAYMENT_MS), undefined, { signal })
  await redis.hincrby(cart, 'charges', 1)
}

app.post<{ Params: { id: string } }>('/carts/:id/checkout', ({ params, wanted }) => {
  const cart = `example:cart:${params.id}`

  // `signal` ends only the wait for the lock. Once the lock is held, the work is finished even if the client
  // disconnects.
  return locks.using(cart, { signal: wanted }, async lease => {
    if (await redis.hexists(cart, 'paid')) throw new Refusal(409, 'the cart has been paid for')
    await charge(cart, lease.signal)
    const stored = await redis.eval(PAID, 1, cart, lease.fencingToken)
    if (!stored) throw new Refusal(503, 'somebody else has had the cart in the meantime')
    return { paid: true }
  })
})

console.log(`listening on ${await app.listen({ port: Number(PORT), host: '127.0.0.1' })}`)

process.once('SIGTERM', async () => {
  await app.close()
  console.log('stopped')
})

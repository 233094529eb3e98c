/**
 * A web server that makes exports for many tenants; several instances run side by side. All instances together make at
 * most six exports at a time, and at most two of one tenant.
 *
 *     POST /exports   X-Tenant: acme   →   200 {"rows": 1000}
 *
 * What to copy:
 * - `group` and `groupLimit`: the tenants take turns, so a tenant with many requests does not hold up the others.
 * - `maxWaiters` counts the waiting requests of this tenant only. A tenant that has that many gets 429 at once, with the
 *   expected wait in Retry-After, while the requests of all other tenants are still accepted.
 * - `timeout`: a request that was accepted, but whose turn does not come in time, gets 503.
 * - A client that disconnects leaves the queue at once, so no permit is granted to it.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type NextFunction, type Request, type Response } from 'express'
import { LockClient, LockQueueFullError, LockTimeoutError } from 'redis-baton'

const { REDIS_URL = 'redis://127.0.0.1:6379', PORT = '3000', EXPORT_MS = '200', MAX_WAIT_MS = '10000' } = process.env

const locks = new LockClient(REDIS_URL)
locks.on('error', ({ error }) => console.error(error.message))
const exports = locks.semaphore('example:exports', 6)
const perTenant = { groupLimit: 2, maxWaiters: 5, timeout: Number(MAX_WAIT_MS) }

const app = express()

app.post('/exports', async (request, response) => {
  // In a real server, the tenant comes from the login.
  const group = request.get('X-Tenant')
  if (!group) return void response.status(400).json({ error: 'the header X-Tenant is needed' })
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const rows = await exports.using({ ...perTenant, group, signal: gone.signal }, async lease => {
    await sleep(Number(EXPORT_MS), undefined, { signal: lease.signal }) // the work
    return 1_000
  })
  response.json({ rows })
})

app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
  if (response.headersSent || response.destroyed) return
  const answer = (status: number, seconds: number, why: string) =>
    response.status(status).set('Retry-After', String(seconds)).json({ error: why })
  if (error instanceof LockQueueFullError) {
    const seconds = Math.ceil((error.expected ?? 1_000) / 1_000)
    answer(429, seconds, `${error.waiters} of your exports wait already`)
  } else if (error instanceof LockTimeoutError) answer(503, 5, 'the server is busy')
  else next(error)
})

const server = app.listen(Number(PORT), '127.0.0.1')
await once(server, 'listening')
console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`)

process.once('SIGTERM', async () => {
  server.close()
  await locks.close({ drain: 10_000 })
  server.closeAllConnections()
})

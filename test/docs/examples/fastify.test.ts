/**
 * Tests examples/fastify.ts on three web servers. The hasty server gives up a wait after 100 ms, so that a test can
 * check its answer. The patient server waits 15 s. On the slow server a payment takes 15 s, so that a test can take the
 * lock away before the payment ends.
 */
import { beforeAll, expect, test } from 'vitest'
import type { Running } from '../../kit/program.ts'
import { eventually } from '../../kit/time.ts'
import { listening, post, Scene } from './scene.ts'

const scene = new Scene()
let server: Running
let hasty: string
let patient: string
let slow: string

beforeAll(async () => {
  const other = scene.start('fastify.ts', { PORT: '0', MAX_WAIT_MS: '100', PAYMENT_MS: '900' })
  server = scene.start('fastify.ts', { PORT: '0', MAX_WAIT_MS: '15000', PAYMENT_MS: '900' })
  const third = scene.start('fastify.ts', { PORT: '0', PAYMENT_MS: '15000' })
  hasty = await listening(other)
  patient = await listening(server)
  slow = await listening(third)
})

const lockOf = (cart: string) => `example:cart:${cart}`
const checkOut = (from: string, cart: string, signal?: AbortSignal) =>
  post(`${from}/carts/${cart}/checkout`, {}, signal)
const charges = (cart: string) => scene.redis.hget(lockOf(cart), 'charges')
const begun = (cart: string) => eventually(() => scene.locks.isLocked(lockOf(cart)))

/** Waits until this many servers have subscribed to the release of the cart's lock. */
const listeners = (cart: string, count: number) =>
  eventually(async () => (await scene.redis.pubsub('CHANNELS', `*${lockOf(cart)}*`)).length === count)

test.concurrent('several clicks, on both servers, are charged once', async () => {
  const clicks = [patient, hasty, patient, hasty].map(server => checkOut(server, 'clicked'))
  const statuses = (await Promise.all(clicks)).map(({ status }) => status)
  expect(statuses.filter(status => status === 200)).toEqual([200])
  // One request is answered with 200. Each of the others finds the cart paid for (409), or gives up its wait (423).
  expect(statuses.filter(status => ![200, 409, 423].includes(status))).toEqual([])
  expect(await charges('clicked')).toBe('1')
})

test.concurrent('a request that waits in vain is told that another request is at work', async () => {
  const held = await scene.locks.lock(lockOf('busy'))
  expect(await checkOut(hasty, 'busy')).toMatchObject({ status: 423, retryAfter: '1' })
  await held.release()
  expect(await charges('busy')).toBeNull()
})

test.concurrent('while Redis is away, the answer does not say that another request is at work', async () => {
  const away = await listening(
    scene.start('fastify.ts', { REDIS_URL: 'redis://127.0.0.1:1', PORT: '0', MAX_WAIT_MS: '200' }),
  )
  const body = { error: 'nothing was paid, because Redis is out of reach' }
  expect(await checkOut(away, 'any')).toEqual({ status: 503, retryAfter: '5', body })
})

test.concurrent('a checkout whose lock is taken away stops, and can be repeated', async () => {
  const request = checkOut(slow, 'taken')
  await begun('taken')
  await scene.locks.forceRelease(lockOf('taken'))
  expect(await request).toMatchObject({ status: 503, retryAfter: '5' })
  expect(await scene.redis.exists(lockOf('taken'))).toBe(0)
  expect(await checkOut(patient, 'taken')).toMatchObject({ status: 200 })
  expect(await charges('taken')).toBe('1')
})

test('SIGTERM: waiting requests are rejected, running requests are completed, and the process ends', async () => {
  const held = await scene.locks.lock(lockOf('waiting'))
  const waits = checkOut(patient, 'waiting')
  await listeners('waiting', 1)
  const served = checkOut(patient, 'served')
  await begun('served')
  expect(await server.end('SIGTERM')).toBe(0)
  const sentAway = { status: 503, retryAfter: '1', body: { message: 'this server is about to stop' } }
  expect(await waits).toMatchObject(sentAway)
  expect(await served).toMatchObject({ status: 200 })
  await held.release()
  await scene.expectNothingLeft()
})

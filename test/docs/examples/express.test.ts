/**
 * Tests examples/express.ts on two web servers. The hasty server gives up a wait after 200 ms, so that a test can check
 * its answer. The patient server waits 15 s.
 */
import { beforeAll, expect, test } from 'vitest'
import type { Running } from '../../kit/program.ts'
import { eventually, sleep } from '../../kit/time.ts'
import { listening, post, Scene } from './scene.ts'

const scene = new Scene()
let server: Running
let hasty: string
let patient: string

beforeAll(async () => {
  const other = scene.start('express.ts', { PORT: '0', MAX_WAIT_MS: '200', PAYMENT_MS: '20' })
  server = scene.start('express.ts', { PORT: '0', MAX_WAIT_MS: '15000', PAYMENT_MS: '20' })
  hasty = await listening(other)
  patient = await listening(server)
})

const lockOf = (account: string) => `example:account:${account}`
const withdraw = (from: string, account: string, signal?: AbortSignal) =>
  post(`${from}/accounts/${account}/withdrawals`, { amount: 1 }, signal)

test('no withdrawal is lost among requests to both servers', async () => {
  const requests = Array.from({ length: 12 }, (_, i) => withdraw(i % 2 ? hasty : patient, 'shared'))
  const answers = await Promise.all(requests)
  const paid = answers.filter(({ status }) => status === 200).map(({ body }) => body['balance'] as number)
  // The patient server serves all six of its requests. The hasty server may have rejected some of its six.
  expect(paid.length).toBeGreaterThanOrEqual(6)
  expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
  // Each withdrawal took 1, and no two answers contain the same balance. Two withdrawals at the same time would have
  // left the same balance.
  expect(paid.sort((a, b) => b - a)).toEqual(paid.map((_, i) => 99 - i))
  expect(await scene.redis.hget(lockOf('shared'), 'balance')).toBe(String(100 - paid.length))
})

test('a request that waits in vain is asked to come again, and leaves nothing behind', async () => {
  const held = await scene.locks.lock(lockOf('busy'))
  expect(await withdraw(hasty, 'busy')).toMatchObject({ status: 503, retryAfter: '1' })
  // The request leaves the queue while the answer is sent, so wait until it has left.
  await scene.waiters(held.key, 0)
  await held.release()
  expect(await scene.redis.exists(held.key)).toBe(0)
})

test('a request behind many others is turned away at once, and learns when to come again', async () => {
  // While the account is busy, more than eight requests are served one after the other, by this test and the server.
  const key = lockOf('crowded')
  const passing = Array.from({ length: 10 }, () => scene.locks.using(key, { fair: true }, () => sleep(300)))
  await Promise.all(passing)
  const held = await scene.locks.lock(key)
  const waiting = Array.from({ length: 20 }, () => withdraw(patient, 'crowded'))
  await scene.waiters(key, 20)
  const { status, retryAfter, body } = await withdraw(patient, 'crowded')
  expect({ status, body }).toEqual({
    status: 503,
    body: { error: 'the account is busy, with 20 requests ahead of you' },
  })
  // The last holds took 300 ms each.
  expect(Number(retryAfter)).toBeGreaterThanOrEqual(6)
  await held.release()
  expect((await Promise.all(waiting)).every(answer => answer.status === 200)).toBe(true)
})

test('while Redis is away, the answer does not say that the account is busy', async () => {
  const away = await listening(
    scene.start('express.ts', { REDIS_URL: 'redis://127.0.0.1:1', PORT: '0', MAX_WAIT_MS: '200' }),
  )
  const body = { error: 'nothing was withdrawn, because Redis is out of reach' }
  expect(await withdraw(away, 'any')).toEqual({ status: 503, retryAfter: '5', body })
})

test('a client that disconnects leaves the queue at once', async () => {
  const held = await scene.locks.lock(lockOf('left'))
  const client = new AbortController()
  const request = withdraw(patient, 'left', client.signal)
  await scene.waiters(held.key, 1)
  client.abort()
  await expect(request).rejects.toThrow()
  // The request leaves the queue at once, although the server itself would wait for 15 s.
  await scene.waiters(held.key, 0)
  await held.release()
  await scene.expectNothingLeft()
})

test('SIGTERM: waiting requests are rejected, running requests are completed, and the process ends', async () => {
  const held = await scene.locks.lock(lockOf('waiting'))
  const waits = withdraw(patient, 'waiting')
  await scene.waiters(held.key, 1)
  const served = withdraw(patient, 'served')
  const begun = eventually(() => scene.locks.isLocked(lockOf('served')))
  await Promise.race([begun, served])
  expect(await server.end('SIGTERM')).toBe(0)
  const sentAway = { status: 503, retryAfter: '1', body: { error: 'this server is about to stop' } }
  expect(await waits).toMatchObject(sentAway)
  expect(await served).toMatchObject({ status: 200, body: { balance: 99 } })
  await begun.catch(() => {})
  await held.release()
  await scene.expectNothingLeft()
})

/**
 * Tests examples/nestjs on two web servers. The hasty server gives up a wait after 200 ms, so that a test can check its
 * answer. The patient server waits 15 s.
 */
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { type Running, runNode } from '../../kit/program.ts'
import { eventually } from '../../kit/time.ts'
import { listening, post, Scene } from './scene.ts'

const scene = new Scene()
const at = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const TSX_TSCONFIG_PATH = at('examples/nestjs/tsconfig.json')
let server: Running
let hasty: string
let patient: string

beforeAll(async () => {
  const env = { TSX_TSCONFIG_PATH, PORT: '0', PAYMENT_MS: '20' }
  const other = scene.start('nestjs/main.ts', { ...env, MAX_WAIT_MS: '200' })
  server = scene.start('nestjs/main.ts', { ...env, MAX_WAIT_MS: '15000' })
  hasty = await listening(other)
  patient = await listening(server)
})

const lockOf = (account: string) => `example:account:${account}`
const withdraw = (from: string, account: string) => post(`${from}/accounts/${account}/withdrawals`, { amount: 1 })

test('no withdrawal is lost among requests to both servers', async () => {
  const requests = Array.from({ length: 12 }, (_, i) => withdraw(i % 2 ? hasty : patient, 'shared'))
  const answers = await Promise.all(requests)
  const paid = answers.filter(({ status }) => status === 200).map(({ body }) => body['balance'] as number)
  // The patient server serves all six of its requests. The hasty server may have rejected some of its six.
  expect(paid.length).toBeGreaterThanOrEqual(6)
  expect(answers.filter(({ status }) => status !== 200 && status !== 423)).toEqual([])
  // Each withdrawal took 1, and no two answers contain the same balance. Two withdrawals at the same time would have
  // left the same balance.
  expect(paid.sort((a, b) => b - a)).toEqual(paid.map((_, i) => 99 - i))
})

test('a request that waits in vain is asked to come again', async () => {
  const held = await scene.locks.lock(lockOf('busy'))
  expect(await withdraw(hasty, 'busy')).toMatchObject({ status: 423, retryAfter: '1' })
  await held.release()
})

test('SIGTERM: waiting requests are rejected, and nothing is left', async () => {
  const held = await scene.locks.lock(lockOf('waiting'))
  const waits = withdraw(patient, 'waiting')
  await eventually(async () => (await scene.locks.inspect(lockOf('waiting'))).waiters.length === 1)
  const ended = server.end('SIGTERM')
  expect(await waits).toMatchObject({ status: 503, body: { message: 'This server is about to stop' } })
  await ended
  await held.release()
  await scene.expectNothingLeft()
})

test('the project’s compiler finds no type error in it', async () => {
  const { code, output } = await runNode([at('node_modules/typescript/bin/tsc'), '-p', TSX_TSCONFIG_PATH])
  expect(output).toBe('')
  expect(code).toBe(0)
}, 70_000)

/** examples/lambda.ts: the process of the function is stopped between its calls, as Lambda freezes it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sleep } from '../../kit/time.ts'
import { Scene } from './scene.ts'

const scene = new Scene()
const limit = 1_500
const handler = new URL('../../../examples/lambda.ts', import.meta.url)
/** Calls the handler for each message, and answers with what it returns, or with the text of its error. */
const runtime = `
import { handler } from '${handler}'
process.on('message', async order => {
  const context = { getRemainingTimeInMillis: () => ${limit} }
  process.send(await handler({ order }, context).catch(error => error.message))
})
process.send('ready')`

let lambda: ChildProcess

beforeAll(async () => {
  lambda = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', runtime], {
    env: { ...process.env, REDIS_URL: scene.url },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  await once(lambda, 'message')
})
afterAll(() => void lambda?.kill('SIGKILL'))

async function call(): Promise<unknown> {
  lambda.send('1')
  return (await once(lambda, 'message'))[0]
}

test('nothing is held while the process is frozen, and the next call works', async () => {
  expect(await call()).toEqual({ statusCode: 200 })
  lambda.kill('SIGSTOP')
  const lease = await scene.locks.tryLock('example:order:1')
  expect(lease?.held).toBe(true)
  await lease?.release()
  await sleep(2 * limit)
  lambda.kill('SIGCONT')
  expect(await call()).toEqual({ statusCode: 200 })
})

test('the next call works although the server has cut the connections in the meantime', async () => {
  lambda.kill('SIGSTOP')
  for (const type of ['normal', 'pubsub']) await scene.redis.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes')
  await sleep(500)
  lambda.kill('SIGCONT')
  expect(await call()).toEqual({ statusCode: 200 })
})

test('a call that is frozen while it waits, and thawed after its time limit, gives up and leaves nothing behind', async () => {
  const held = await scene.locks.lock('example:order:1')
  lambda.send('1')
  const answer = once(lambda, 'message')
  await scene.waiters(held.key, 1)
  lambda.kill('SIGSTOP')
  await sleep(2 * limit)
  lambda.kill('SIGCONT')
  expect((await answer)[0]).toEqual({ statusCode: 503 })
  await held.release()
  await scene.expectNothingLeft()
})

/** Tests examples/tenants.ts on two web servers, whose requests share the limits. */
import { beforeAll, expect, test } from 'vitest'
import type { Running } from '../../kit/program.ts'
import { listening, Scene } from './scene.ts'

const scene = new Scene()
let servers: Running[]
let urls: string[]

beforeAll(async () => {
  servers = [1, 2].map(() => scene.start('tenants.ts', { PORT: '0', EXPORT_MS: '300', MAX_WAIT_MS: '5000' }))
  urls = await Promise.all(servers.map(listening))
})

const ask = async (tenant: string, i = 0, signal?: AbortSignal) => {
  const request = { method: 'POST', headers: { 'X-Tenant': tenant }, ...(signal && { signal }) }
  const response = await fetch(`${urls[i % 2]}/exports`, request)
  return { status: response.status, retryAfter: response.headers.get('Retry-After'), body: await response.json() }
}

test('a tenant that asks for too much gets 429 at once; another tenant is served', async () => {
  const greedy = Array.from({ length: 20 }, (_, i) => ask('greedy', i))
  const first = await Promise.race(greedy)
  expect(first).toMatchObject({ status: 429, retryAfter: expect.stringMatching(/^[1-9]\d*$/) })
  expect(await ask('modest')).toMatchObject({ status: 200, body: { rows: 1_000 } })
  const statuses = (await Promise.all(greedy)).map(({ status }) => status)
  // Two ran and five waited. More were accepted only if they arrived after a waiting one had begun.
  const served = statuses.filter(status => status === 200).length
  expect(served).toBeGreaterThanOrEqual(7)
  expect(served).toBeLessThan(20)
  expect(statuses.filter(status => status !== 200 && status !== 429)).toEqual([])
  await scene.expectNothingLeft()
})

test('a client that disconnects leaves the queue, and SIGTERM lets running exports end', async () => {
  const held = await scene.locks.semaphore('example:exports', 6).lock({ permits: 6 })
  const client = new AbortController()
  const left = ask('acme', 0, client.signal)
  const stays = ask('acme')
  const waiting = async (count: number) =>
    expect.poll(async () => (await scene.locks.semaphore('example:exports', 6).inspect()).waiters.length).toBe(count)
  await waiting(2)
  client.abort()
  await expect(left).rejects.toThrow()
  await waiting(1)
  await held.release()
  expect(await stays).toMatchObject({ status: 200 })
  expect(await Promise.all(servers.map(server => server.end('SIGTERM')))).toEqual([0, 0])
  await scene.expectNothingLeft()
})

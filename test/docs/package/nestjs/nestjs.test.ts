/** Tests redis-baton/nestjs in applications of each supported version of Nest. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { Running } from '../../../kit/program.ts'
import { client, freshKey, redisUrl, test } from '../../../kit/redis.ts'
import { eventually } from '../../../kit/time.ts'
import { listening } from '../../examples/scene.ts'
import { projectOf, versions } from './project.ts'

/** The names of the application's cases, read from its source files. */
const cases = ['container', 'decorator', 'module'].flatMap(group => {
  const source = readFileSync(new URL(`app/${group}.ts`, import.meta.url), 'utf8')
  return [...source.matchAll(/^export async function (\w+)/gm)].map(([, name]) => `${group} ${name}`)
})

interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly body: Record<string, unknown>
}

/**
 * Sends a request on a connection of its own. The connection ends with the answer; if it stayed open, the server would
 * stop late.
 */
async function post(url: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Answer> {
  const sent = request(url, {
    method: 'POST',
    agent: false,
    headers: { 'Content-Type': 'application/json', ...headers },
  })
  sent.end(JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const answer = await text(response)
  const retryAfter = response.headers['retry-after'] ?? null
  return { status: response.statusCode ?? 0, retryAfter, body: answer ? JSON.parse(answer) : {} }
}

describe.each(versions)('with Nest $major', nest => {
  /** Requests are sent to the oldest and to the newest version. Between them, how Nest serves requests did not change. */
  const serves = nest !== versions[1]
  const started: Running[] = []
  let folder: string
  let told: Map<string, string | null>
  let express: string
  let fastify: string
  let unfiltered: string

  const start = (env: Record<string, string>) => {
    const server = new Running([join(folder, 'server.js')], { REDIS_URL: redisUrl(), ...env })
    started.push(server)
    return server
  }

  beforeAll(async () => {
    folder = await projectOf(nest)
    if (serves) {
      const servers = [{ ADAPTER: 'express' }, { ADAPTER: 'fastify' }, { FILTER: 'off' }].map(env => start(env))
      const urls = await Promise.all(servers.map(listening))
      ;[express, fastify, unfiltered] = urls as [string, string, string]
    }
    const env = { ...process.env, REDIS_URL: redisUrl() }
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'cases.js')], { env, timeout: 60_000 })
    const lines = stdout.trim().split('\n')
    told = new Map(lines.map(line => JSON.parse(line)).map(({ name, error }) => [name, error]))
  }, 300_000)

  afterAll(() => Promise.all(started.map(server => server.end('SIGKILL'))))

  test.each(cases)('%s', name => {
    expect(told.get(name)).toBeNull()
  })

  if (!serves) return

  test('I1: requests to two applications exclude each other', async () => {
    const id = freshKey()
    const urls = Array.from({ length: 12 }, (_, i) => `${i % 2 ? express : fastify}/orders/${id}/add`)
    const answers = await Promise.all(urls.map(url => post(url)))
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(201))
    const counts = answers.map(({ body }) => body['count'] as number)
    expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1))
  })

  const adapters = [
    ['Express', () => express],
    ['Fastify', () => fastify],
  ] as const

  test.each(adapters)(
    '%s: a lock that was not granted in time, or has a full queue, is a 423 without details of the lock',
    async (_, url) => {
      const id = freshKey()
      await using _held = await client().lock(`nest:${id}`)
      const message = 'Another request is working on this resource'
      const answer = { status: 423, retryAfter: '1', body: { statusCode: 423, message, error: 'Locked' } }
      for (const route of ['impatient', 'crowded']) expect(await post(`${url()}/orders/${id}/${route}`)).toEqual(answer)
    },
  )

  test.each(adapters)('%s: with Redis out of reach, the answer is 503', async (_, url) => {
    const message = 'The lock service cannot be reached'
    const body = { statusCode: 503, message, error: 'Service Unavailable' }
    expect(await post(`${url()}/orders/1/away`)).toEqual({ status: 503, retryAfter: '5', body })
  })

  test.each(adapters)('%s: a lost lock is left to Nest, since the handler may have had effects', async (_, url) => {
    const id = freshKey()
    const lost = post(`${url()}/orders/${id}/overlong`)
    expect(await lost).toMatchObject({ status: 500, retryAfter: null })
  })

  test('without the filter, Nest handles the error', async () => {
    const id = freshKey()
    await using _held = await client().lock(`nest:${id}`)
    const body = { statusCode: 500, message: 'Internal server error' }
    expect(await post(`${unfiltered}/orders/${id}/impatient`)).toEqual({ status: 500, retryAfter: null, body })
  })

  describe.each(adapters)('%s: a locked route', (_, url) => {
    test.each(['above', 'below'])('keeps path, status and guard of decorators %s it', async where => {
      const id = freshKey()
      const route = `${url()}/orders/${id}/${where}`
      expect(await post(route)).toMatchObject({ status: 403 })
      const member = { 'x-role': 'member' }
      expect(await post(route, {}, member)).toMatchObject({ status: 202, body: { id } })
      await using _held = await client().lock(`nest:${id}`)
      expect(await post(route, {}, member)).toMatchObject({ status: 423 })
    })
  })

  test.for(['express', 'fastify'])(
    '%s: at the end of the application, requests that hold are served and waiting requests are rejected',
    async (ADAPTER, { locks }) => {
      const server = start({ ADAPTER })
      const url = await listening(server)
      const [id, other] = [freshKey(), freshKey()]
      const works = post(`${url}/orders/${id}/work`, { ms: 600 })
      await eventually(() => locks.isLocked(`nest:${id}`))
      const held = await locks.lock(`nest:${other}`)
      const waits = post(`${url}/orders/${other}/add`)
      const redis = new Redis(redisUrl())
      await eventually(async () => (await redis.pubsub('CHANNELS', `*nest:${other}*`)).length === 1)
      redis.disconnect()
      const ended = server.end('SIGTERM')
      const message = 'This server is about to stop'
      expect(await waits).toMatchObject({ status: 503, retryAfter: null, body: { message } })
      expect(await works).toMatchObject({ status: 201, body: { via: 'reentry' } })
      await ended
      expect(await locks.isLocked(`nest:${id}`)).toBe(false)
      expect(await held.release()).toBe(true)
    },
  )

  test('a request that holds for longer than the drain loses the lock and is notified, and the lock is free', async () => {
    const server = start({ DRAIN: '200' })
    const id = freshKey()
    const locks = client()
    const works = post(`${await listening(server)}/orders/${id}/work`, { ms: 60_000 })
    await eventually(() => locks.isLocked(`nest:${id}`))
    const ended = server.end('SIGTERM')
    expect(await works).toMatchObject({ status: 503, retryAfter: null })
    await ended
    expect(await locks.isLocked(`nest:${id}`)).toBe(false)
  })
})

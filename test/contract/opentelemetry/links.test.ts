/** Tests the links from the span of a hold to the span of the previous hold. */

import { type DiagLogger, diag } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { type Redis, Redis as RedisClient } from 'ioredis'
import { describe, expect, onTestFinished } from 'vitest'
import { park } from '../../kit/parking.ts'
import { Child } from '../../kit/process.ts'
import { client, freshKey, ownServer, plainRedis, redisUrl } from '../../kit/redis.ts'
import { Telemetry, test } from './telemetry.ts'

const nameOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId
const linked = (span: ReadableSpan | undefined) =>
  span?.links.map(({ context, attributes }) => [context.spanId, attributes?.['redis_baton.fencing_token']])
const tokenOf = (span: ReadableSpan | undefined) => span?.attributes['redis_baton.fencing_token']

describe('within a client', () => {
  test.each([
    ['fair', true],
    ['unfair', false],
  ])('each holder that waited is linked to the previous holder: %s', async (_, fair) => {
    const telemetry = new Telemetry()
    const { locks } = telemetry.client()
    const key = freshKey()
    await Promise.all(Array.from({ length: 4 }, () => locks.using(key, { fair }, () => {})))
    const holds = telemetry.spans('lock.hold')
    expect(holds).toHaveLength(4)
    expect(holds.map(linked)).toEqual([[], ...holds.slice(0, 3).map(span => [[nameOf(span), tokenOf(span)]])])
  })

  test('a caller that takes a released lock ahead of its waiters is linked to nothing', async ({ telemetry, key }) => {
    const { locks } = telemetry.client()
    const first = await locks.lock(key, { owner: 'somebody' })
    const parked = await park(locks, key)
    const released = first.release()
    const newcomer = await locks.tryLock(key)
    await released
    await newcomer?.release()
    await (await parked.lease).release()
    const [, ahead, behind] = telemetry.spans('lock.hold')
    expect(ahead?.attributes['redis_baton.via']).toBe('immediate')
    expect(linked(ahead)).toEqual([])
    expect(linked(behind)).toEqual([[nameOf(ahead), tokenOf(ahead)]])
  })
})

describe('across clients and processes', () => {
  test('a holder is linked to the one before it, in another process', async ({ telemetry, key }) => {
    const { locks } = telemetry.client({ links: { redis: plainRedis() } })
    const child = new Child(new URL('children/holder.ts', import.meta.url), [redisUrl(), key])
    const { spanId, traceId, token } = await child.message<{ spanId: string; traceId: string; token: number }>(
      message => 'spanId' in message,
    )
    const { lease } = await park(locks, key, { fair: true })
    child.send({ release: true })
    await (await lease).release()
    const [hold] = await telemetry.ended('lock.hold', 1)
    expect(hold?.links.map(link => link.context)).toEqual([expect.objectContaining({ spanId, traceId })])
    expect(linked(hold)).toEqual([[spanId, token]])
  })

  test('the data left in Redis is small, expires on its own, and is in the lock’s slot', async ({ telemetry, key }) => {
    const redis = plainRedis()
    const { locks } = telemetry.client({ links: { redis } })
    await locks.using(key, () => {})
    const [hold] = await telemetry.ended('lock.hold', 1)
    const { traceId, spanId } = hold!.spanContext()
    const name = `lock-trace:{${key}}`
    expect(await redis.get(name)).toBe(`${tokenOf(hold)} 00-${traceId}-${spanId}-01`)
    const ttl = await redis.pttl(name)
    expect(ttl).toBeGreaterThan(500_000)
    expect(ttl).toBeLessThanOrEqual(600_000)
    const state = await locks.inspect(key)
    expect(state.locked).toBe(false)
    for await (const other of locks.list(`*${key}*`)) expect(other.key).toBe(key)
  })

  test('garbage in Redis, or a version newer than this one, makes no link', async ({ telemetry, key }) => {
    const redis = plainRedis()
    const { locks } = telemetry.client({ links: { redis } })
    const span = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    const values = [
      'nonsense',
      `1 ${span} more`,
      `1 00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`,
      `${2 ** 53} ${span}`,
      `1 ${span}`,
    ]
    for (const [i, value] of values.entries()) {
      const lease = await client().lock(key)
      const { lease: next } = await park(locks, key, { fair: true })
      await redis.set(`lock-trace:{${key}}`, value)
      await lease.release()
      await (await next).release()
      await telemetry.ended('lock.hold', i + 1)
    }
    expect(telemetry.spans('lock.hold').map(({ links }) => links.length)).toEqual([0, 0, 0, 0, 1])
  })

  test('if the Redis for links is unreachable, holds have no links, but locks and spans work', async () => {
    const telemetry = new Telemetry()
    const warnings: string[] = []
    const logger = { warn: (text: string) => warnings.push(text) } as unknown as DiagLogger
    diag.setLogger(logger)
    onTestFinished(() => diag.disable())
    const server = await ownServer()
    const redis = plainRedis(server.url)
    redis.on('error', () => {})
    await redis.ping()
    await server.kill()
    const { locks } = telemetry.client({ links: { redis } })
    const keys = [freshKey(), freshKey()]
    const begin = performance.now()
    for (const key of keys) await locks.using(key, () => {})
    expect(performance.now() - begin).toBeLessThan(900)
    const holds = await telemetry.ended('lock.hold', 2)
    expect(holds.map(linked)).toEqual([[], []])
    expect(warnings.filter(text => text.startsWith('redis-baton:'))).toHaveLength(1)
  })

  test('the Redis user for links needs only the right that the documentation names', async ({ telemetry, key }) => {
    const server = await ownServer()
    const admin = plainRedis(server.url)
    await admin.call('ACL', 'SETUSER', 'links', 'on', '>secret', '~lock-trace:*', '-@all', '+set')
    const redis: Redis = new RedisClient({
      port: server.port,
      username: 'links',
      password: 'secret',
      enableReadyCheck: false,
      disableClientInfo: true,
    })
    onTestFinished(() => redis.disconnect())
    const { locks } = telemetry.client({ links: { redis } }, {}, server.url)
    await Promise.all([1, 2].map(() => locks.using(key, { fair: true }, () => {})))
    const holds = await telemetry.ended('lock.hold', 2)
    expect(linked(holds[1])).toEqual([[nameOf(holds[0]), tokenOf(holds[0])]])
    expect(await admin.call('ACL', 'LOG')).toEqual([])
  })
})

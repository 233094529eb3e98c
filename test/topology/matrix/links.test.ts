/**
 * Tests that the trace span of a holder links to the span of the previous holder, which used another client. Each
 * client stores its span in Redis, and needs other commands for this on servers before 6.2.
 */
import { expect, test } from 'vitest'
import { passOn, Telemetry } from '../../contract/opentelemetry/telemetry.ts'
import { freshKey, plainRedis } from '../../kit/redis.ts'

test('each holder that waited is linked to the previous holder, and the data left in Redis expires on its own', async () => {
  const telemetry = new Telemetry()
  const redis = plainRedis()
  const [one, two] = [telemetry.client({ links: { redis } }).locks, telemetry.client({ links: { redis } }).locks]
  const key = freshKey()
  await passOn(one, two, key)
  const holds = await telemetry.ended('lock.hold', 3)
  const names = holds.map(span => span.spanContext().spanId)
  expect(holds.map(({ links }) => links.map(({ context }) => context.spanId))).toEqual([[], [names[0]], [names[1]]])
  expect(await redis.pttl(`lock-trace:{${key}}`)).toBeGreaterThan(500_000)
})

/** Tests the spans of waits and holds with the real SDK and a real Redis. */
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { describe, expect } from 'vitest'
import { LockLostError, LockTimeoutError } from '../../../src/index.ts'
import { reasonOf, rejection } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { client, freshKey, ownServer } from '../../kit/redis.ts'
import { sleep } from '../../kit/time.ts'
import { activeSpan, milliseconds, Telemetry, test } from './telemetry.ts'

describe('a lock that is free', () => {
  test('has a span for the wait and one for the hold, both below the caller’s', async ({ telemetry, key }) => {
    const { locks } = telemetry.client({ attributes: { 'server.address': 'redis.example', 'server.port': 6390 } })
    const [lease, caller] = await telemetry.within('caller', async span => [await locks.lock(key), span] as const)
    await sleep(50)
    await lease.release()

    const common = {
      'db.system.name': 'redis',
      'server.address': 'redis.example',
      'server.port': 6390,
      'redis_baton.key': key,
      'redis_baton.kind': 'mutex',
      'redis_baton.fencing_token': lease.fencingToken,
      'redis_baton.via': 'immediate',
    }
    const [wait] = telemetry.spans('lock.wait')
    expect(wait?.kind).toBe(SpanKind.CLIENT)
    expect(wait?.attributes).toEqual({ ...common, 'db.operation.name': 'lock', 'redis_baton.outcome': 'granted' })
    const [hold] = telemetry.spans('lock.hold')
    expect(hold?.kind).toBe(SpanKind.INTERNAL)
    expect(hold?.attributes).toEqual({ ...common, 'redis_baton.outcome': 'released' })
    for (const span of [wait, hold]) {
      expect(span?.parentSpanContext?.spanId).toBe(caller.spanContext().spanId)
      expect(span?.status.code).toBe(SpanStatusCode.UNSET)
      expect(span?.links).toEqual([])
      expect(span?.instrumentationScope).toMatchObject({
        name: 'redis-baton',
        schemaUrl: expect.stringMatching(/1\.\d+/),
      })
    }
    expect(milliseconds(hold!.duration)).toBeGreaterThanOrEqual(48)
    expect(milliseconds(hold!.duration)).toBeLessThan(5_000)
    expect(milliseconds(hold!.startTime)).toBeGreaterThanOrEqual(milliseconds(wait!.startTime))
  })

  test.for(['using', 'wrap', 'tryLock', 'await using'] as const)('by %s', async (way, { telemetry, key }) => {
    const { locks } = telemetry.client()
    const ways = {
      using: () => locks.using(key, {}, () => 'done'),
      wrap: () => locks.wrap(key, (what: string) => what)('done'),
      tryLock: async () => (await locks.tryLock(key))?.release().then(() => 'done'),
      'await using': async () => {
        await using _ = await locks.lock(key)
        return 'done'
      },
    }
    expect(await ways[way]()).toBe('done')
    expect(telemetry.spans('lock.wait')).toHaveLength(1)
    const operation = way === 'tryLock' ? 'tryLock' : 'lock'
    expect(telemetry.spans('lock.wait')[0]?.attributes['db.operation.name']).toBe(operation)
    expect(telemetry.spans('lock.hold').map(span => span.attributes['redis_baton.outcome'])).toEqual(['released'])
  })
})

describe('the active span', () => {
  test('is the hold’s inside using, and the caller’s before and after it', async ({ telemetry, traced: locks }) => {
    await telemetry.within('caller', async caller => {
      const inside = await locks.using(freshKey(), async () => {
        await sleep(1)
        return activeSpan()
      })
      expect(inside).toBe(telemetry.spans('lock.hold')[0]?.spanContext().spanId)
      expect(activeSpan()).toBe(caller.spanContext().spanId)
      await (await locks.lock(freshKey())).release()
      expect(activeSpan()).toBe(caller.spanContext().spanId)
    })
  })

  test('is the wait’s during the call, so the spans of its commands are below it', async ({ telemetry, key }) => {
    const { locks } = telemetry.client()
    const lease = await locks.lock(key)
    const first = await park(locks, key)
    // If a call of the same client is already parked, a new call emits `waiting` before `lock` returns. The span of the
    // new call must be active even then.
    const active: (string | undefined)[] = []
    locks.once('waiting', () => active.push(activeSpan()))
    const second = locks.lock(key)
    expect(active).toHaveLength(1)
    await lease.release()
    await (await first.lease).release()
    await (await second).release()
    expect(telemetry.spans('lock.wait').map(span => span.spanContext().spanId)[2]).toBe(active[0])
  })
})

describe('a wait', () => {
  test('records the holder, and the position in the queue', async ({ telemetry, traced: locks, key }) => {
    const lease = await client({ label: 'the holder' }).lock(key)
    const [fair, unfair] = [await park(locks, key, { fair: true }), locks.lock(key)]
    await sleep(50)
    await lease.release()
    await (await fair.lease).release()
    await (await unfair).release()
    const [first, second] = telemetry.spans('lock.wait')
    expect(first?.attributes).toMatchObject({
      'redis_baton.holder.label': 'the holder',
      'redis_baton.queue.position': 1,
      'redis_baton.via': 'handoff',
    })
    expect(milliseconds(first!.duration)).toBeGreaterThanOrEqual(48)
    expect(second?.attributes).toMatchObject({ 'redis_baton.holder.label': 'the holder' })
    expect(second?.attributes).not.toHaveProperty('redis_baton.queue.position')
  })

  test('that times out is an error, with the exception and the holder', async ({ telemetry, traced: locks, key }) => {
    await client({ label: 'the holder' }).lock(key)
    const error = await rejection(locks.lock(key, { timeout: 1_000, fair: true }), LockTimeoutError)
    const [wait] = telemetry.spans('lock.wait')
    expect(wait?.attributes).toMatchObject({
      'redis_baton.outcome': 'timeout',
      'error.type': 'LockTimeoutError',
      'redis_baton.holder.label': 'the holder',
      'redis_baton.queue.position': 1,
    })
    expect(wait?.status).toEqual({ code: SpanStatusCode.ERROR, message: error.message })
    expect(wait?.events.map(({ name, attributes }) => [name, attributes?.['exception.message']])).toEqual([
      ['exception', error.message],
    ])
    expect(telemetry.spans('lock.hold')).toEqual([])
  })

  test.each([
    ['refused', {}],
    ['timeout', { timeout: 50 }],
  ])('that ends with null from tryLock is not an error: %s', async (outcome, options) => {
    const telemetry = new Telemetry()
    const { locks } = telemetry.client()
    const key = freshKey()
    await client().lock(key)
    expect(await locks.tryLock(key, options)).toBeNull()
    const [wait] = telemetry.spans('lock.wait')
    expect(wait?.attributes['redis_baton.outcome']).toBe(outcome)
    expect(wait?.status.code).toBe(SpanStatusCode.UNSET)
    expect(wait?.attributes).not.toHaveProperty('error.type')
  })

  test('that ends because its client is closed, or because Redis refuses, is an error', async ({ telemetry, key }) => {
    const { locks } = telemetry.client()
    await client().lock(key)
    const { lease } = await park(locks, key, { fair: true })
    const closed = reasonOf(lease)
    await locks.close()
    await closed
    const server = await ownServer()
    const { locks: cutOff } = telemetry.client({}, { outageTimeout: 200 }, server.url)
    await (await cutOff.lock(key)).release()
    await server.kill()
    await reasonOf(cutOff.lock(key))
    await reasonOf(cutOff.lock(''))
    const ends = telemetry
      .spans('lock.wait')
      .map(span => [
        span.attributes['redis_baton.outcome'],
        span.attributes['error.type'],
        span.status.code === SpanStatusCode.ERROR,
      ])
    expect(ends).toEqual([
      ['closed', 'LockClosedError', true],
      ['granted', undefined, false],
      ['failed', 'LockConnectionError', true],
      ['failed', 'LockArgumentError', true],
    ])
  })
})

describe('a hold', () => {
  test('that is lost is an error, with the exception, at the moment of the loss', async ({
    telemetry,
    traced: locks,
  }) => {
    const lease = await locks.lock(freshKey(), { lease: 200 })
    const [hold] = await telemetry.ended('lock.hold', 1)
    const error = lease.signal.reason
    expect(error).toBeInstanceOf(LockLostError)
    expect(hold?.attributes).toMatchObject({ 'redis_baton.outcome': 'lost', 'error.type': 'LockLostError' })
    expect(hold?.status).toEqual({ code: SpanStatusCode.ERROR, message: error.message })
    expect(hold?.events.map(({ name }) => name)).toEqual(['exception'])
    expect(await lease.release()).toBe(false)
    expect(telemetry.spans('lock.hold')).toHaveLength(1)
  })

  test('that re-enters is below the outer one; each ends separately', async ({ telemetry, traced: locks, key }) => {
    const keep = await locks.using(key, async () => {
      await locks.using(key, () => sleep(20))
      return locks.lock(key)
    })
    expect(telemetry.spans('lock.hold')).toHaveLength(2)
    await keep.release()
    const [inner, outer, kept] = telemetry.spans('lock.hold')
    expect([inner, outer, kept].map(span => span?.attributes['redis_baton.via'])).toEqual([
      'reentry',
      'immediate',
      'reentry',
    ])
    for (const span of [inner, kept]) {
      expect(span?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId)
      expect(span?.attributes['redis_baton.fencing_token']).toBe(outer?.attributes['redis_baton.fencing_token'])
      expect(span?.links).toEqual([])
    }
  })
})

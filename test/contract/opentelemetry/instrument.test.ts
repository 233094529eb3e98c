/** Tests that instrumenting a client adds spans and metrics and changes nothing else, and that it can be undone. */
import { metrics, trace } from '@opentelemetry/api'
import { describe, expect, onTestFinished } from 'vitest'
import { LockArgumentError, LockTimeoutError } from '../../../src/index.ts'
import { type InstrumentOptions, instrument } from '../../../src/opentelemetry/index.ts'
import { reasonOf, rejection } from '../../kit/outcomes.ts'
import { park } from '../../kit/parking.ts'
import { client, freshKey } from '../../kit/redis.ts'
import { test } from './telemetry.ts'

describe('instrument', () => {
  test('uses the SDK registered with the API if none is passed', async ({ telemetry }) => {
    trace.setGlobalTracerProvider(telemetry.tracerProvider)
    metrics.setGlobalMeterProvider(telemetry.meterProvider)
    onTestFinished(() => {
      trace.disable()
      metrics.disable()
    })
    const locks = client()
    instrument(locks)
    await locks.using(freshKey(), () => {})
    expect(telemetry.spans('lock.hold')).toHaveLength(1)
    expect(await telemetry.sum('redis_baton.grants')).toBe(1)
  })

  test('without an SDK everything works as before', async ({ locks, key }) => {
    using _ = instrument(locks)
    const lease = await locks.lock(key)
    expect(await locks.tryLock(key)).toBeNull()
    expect(await lease.release()).toBe(true)
    expect(await lease.release()).toBe(false)
    expect(await locks.using(key, inner => inner.held)).toBe(true)
  })

  test('with an unknown option is refused, and changes nothing', async ({ locks }) => {
    const options = { keygroup: () => '' } as InstrumentOptions
    expect(() => instrument(locks, options)).toThrow(LockArgumentError)
    expect(Object.keys(locks)).not.toContain('lock')
    expect(locks.eventNames()).toEqual([])
  })
})

describe('an instrumented client', () => {
  test('gives the same leases, errors and results', async ({ traced: locks, key }) => {
    const lease = await locks.lock(key, { lease: 10_000 })
    expect(lease).toMatchObject({ key, held: true, via: 'immediate' })
    expect(lease.remaining()).toBeGreaterThan(5_000)
    expect(Object.keys(lease)).toEqual(Object.keys(await client().lock(freshKey())))
    expect(await rejection(locks.lock(key, { timeout: 0 }), LockTimeoutError)).toMatchObject({ key })
    expect(await locks.tryLock(key)).toBeNull()
    await lease.renew(20_000)
    expect(await lease.release()).toBe(true)
    expect(await lease.release()).toBe(false)
    const thrown = new Error('its own')
    const fail = () => {
      throw thrown
    }
    expect(await reasonOf(locks.using(key, {}, fail))).toBe(thrown)
    const bad = [locks.using(key, 'no function' as never), locks.lock(key, null as never), locks.lock(5 as never)]
    for (const call of bad) await rejection(call, LockArgumentError)
  })
})

describe('disable', () => {
  test('leaves the client as it was, even one that has called using', async ({ telemetry }) => {
    const { locks, instrumentation } = telemetry.client()
    instrumentation.disable()
    instrumentation.disable()
    expect(Object.getOwnPropertyNames(locks)).toEqual(Object.getOwnPropertyNames(client()))
    expect(locks.eventNames()).toEqual([])
    await locks.using(freshKey(), () => {})
    expect(telemetry.spans('lock.wait')).toEqual([])
    expect(await telemetry.sum('redis_baton.grants')).toBe(0)
  })

  test('ends open spans; the calls and leases under them continue', async ({ telemetry, key }) => {
    const { locks, instrumentation } = telemetry.client()
    const lease = await locks.lock(key)
    const { lease: next } = await park(locks, key, { fair: true })
    instrumentation[Symbol.dispose]()
    expect(telemetry.spans('lock.wait')).toHaveLength(2)
    expect(telemetry.spans('lock.hold')).toHaveLength(1)
    expect(await lease.release()).toBe(true)
    expect(await (await next).release()).toBe(true)
    expect(telemetry.spans('lock.hold')).toHaveLength(1)
    for (const name of ['waiters', 'leases']) expect(await telemetry.sum(`redis_baton.${name}`)).toBe(0)
  })
})

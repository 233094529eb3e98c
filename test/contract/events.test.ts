/** Tests the client's events. The client emits each event, and also publishes it through node:diagnostics_channel. */

import { channel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { describe, expect, onTestFinished } from 'vitest'
import type { ClientEvents } from '../../src/index.ts'
import { LockConnectionError, LockTimeoutError } from '../../src/index.ts'
import { heard, rejection } from '../kit/outcomes.ts'
import { park } from '../kit/parking.ts'
import { ownPlace, place } from '../kit/place.ts'
import { Child } from '../kit/process.ts'
import { client, clients, freshKey, test } from '../kit/redis.ts'
import { eventually, sleep } from '../kit/time.ts'

function published<E extends keyof ClientEvents>(name: E): ClientEvents[E][] {
  const events: ClientEvents[E][] = []
  const listen = (event: unknown) => events.push(event as ClientEvents[E])
  channel(`redis-baton:${name}`).subscribe(listen)
  onTestFinished(() => {
    channel(`redis-baton:${name}`).unsubscribe(listen)
  })
  return events
}

test('a client, its locks and its leases can be written as JSON, also with listeners', async ({ key }) => {
  const locks = client()
  locks.on('acquired', () => {})
  locks.once('lost', () => {})
  const lease = await locks.lock(key)
  const all = await locks.all([freshKey()]).lock()
  for (const each of [locks, locks.mutex(key), locks.all([key]), lease, all]) {
    expect(JSON.parse(JSON.stringify(each))).not.toHaveProperty('_events')
  }
  expect(JSON.stringify(locks)).toBe('{}')
  expect(JSON.parse(JSON.stringify(locks.mutex(key)))).toEqual({ key })
  locks.removeAllListeners()
  expect(JSON.stringify(locks)).toBe('{}')
})

test('times have no more digits than µs', async ({ key }) => {
  const [holder, waiter] = clients(2)
  const [granted, waits] = [heard(waiter!, 'acquired'), heard(waiter!, 'waiting')]
  const lease = await holder!.lock(key)
  const late = await rejection(waiter!.lock(key, { timeout: 37 }), LockTimeoutError)
  const next = waiter!.lock(key)
  await sleep(13)
  await lease.release()
  const times = [(await next).waited, granted[0]!.waited, late.waited, late.holder!.heldFor, waits[0]!.holder!.heldFor]
  times.push((await next).remaining(), ...Object.values(waiter!.stats().wait))
  const rest = await rejection(waiter!.all([key, freshKey()]).lock({ timeout: 21, owner: 'another' }), LockTimeoutError)
  for (const time of [...times, rest.waited]) expect(`${time}`).toMatch(/^\d+(\.\d{1,3})?$/)
})

describe('events', () => {
  test('acquired {key, owner, fencingToken, waited, via}', async ({ locks }) => {
    const [events, messages] = [heard(locks, 'acquired'), published('acquired')]
    const { key, owner, fencingToken, waited, via } = await locks.lock(freshKey())
    expect(events).toEqual([{ key, owner, fencingToken, waited, via }])
    expect(messages).toEqual(events)
  })

  test('waiting {key, owner, position, holder} of a fair waiter', async ({ key }) => {
    const [holder, first, second] = [client({ label: 'the holder' }), client(), client()]
    await holder.lock(key)
    const messages = published('waiting')
    const [ones, twos] = [heard(first, 'waiting'), heard(second, 'waiting')]
    await park(first, key, { fair: true, owner: 'one' })
    await park(second, key, { fair: true, owner: 'two' })
    const info = { label: 'the holder', heldFor: expect.any(Number) }
    expect(ones).toEqual([{ key, owner: 'one', position: 1, holder: info }])
    expect(twos).toEqual([{ key, owner: 'two', position: 2, holder: info }])
    expect(messages).toEqual([...ones, ...twos])
  })

  test('waiting {key, owner, holder} of an unfair waiter', async ({ key }) => {
    const [holder, waiter] = [client({ label: 'the holder' }), client()]
    await holder.lock(key)
    const events = heard(waiter, 'waiting')
    await park(waiter, key, { owner: 'me' })
    expect(events).toEqual([{ key, owner: 'me', holder: { label: 'the holder', heldFor: expect.any(Number) } }])
    expect(events[0]).not.toHaveProperty('position')
  })

  test('waiting is not emitted by a call that is granted at once, nor by a single attempt', async ({ key }) => {
    const [one, two] = clients(2)
    const events = [...[one!, two!].map(each => heard(each, 'waiting')), published('waiting')]
    await one!.lock(key)
    await two!.tryLock(key)
    await two!.lock(key, { timeout: 0 }).catch(() => {})
    expect(events).toEqual([[], [], []])
  })

  test('renewed {key, fencingToken}', async () => {
    const locks = client({ lease: 900 })
    const [events, messages] = [heard(locks, 'renewed'), published('renewed')]
    const { key, fencingToken } = await locks.lock(freshKey())
    await eventually(() => events.length >= 2)
    for (const event of events) expect(event).toEqual({ key, fencingToken })
    expect(messages).toEqual(events)
  })

  test('released {key, fencingToken, held}', async ({ locks }) => {
    const [events, messages] = [heard(locks, 'released'), published('released')]
    const lease = await locks.lock(freshKey())
    await sleep(100)
    await lease.release()
    await lease.release()
    expect(events).toEqual([{ key: lease.key, fencingToken: lease.fencingToken, held: expect.any(Number) }])
    expect(events[0]!.held).toBeGreaterThanOrEqual(98)
    expect(events[0]!.held).toBeLessThan(5_000)
    expect(messages).toEqual(events)
  })

  test('disconnected {error} and reconnected {}, once each for an outage', async () => {
    const { source, proxy } = await place().proxied()
    const locks = client({}, source)
    const [down, up] = [heard(locks, 'disconnected'), heard(locks, 'reconnected')]
    const [downs, ups] = [published('disconnected'), published('reconnected')]
    await locks.lock(freshKey())
    await sleep(100)
    expect([down, up]).toEqual([[], []])
    proxy.refuse()
    proxy.cut()
    await eventually(() => down.length > 0)
    await sleep(300)
    expect(up).toEqual([])
    proxy.accept()
    await eventually(() => up.length > 0)
    expect(down).toEqual([{ error: expect.any(Error) }])
    expect(up).toEqual([{}])
    expect([downs, ups]).toEqual([down, up])
  })

  test('error {error} for a failure that no promise reports: a release in using that failed', async ({ own, key }) => {
    const locks = client({ outageTimeout: 500 }, own.source())
    const [events, messages] = [heard(locks, 'error'), published('error')]
    await locks.using(key, () => own.kill())
    expect(events).toEqual([{ error: expect.any(LockConnectionError) }])
    const [{ error }] = events as [ClientEvents['error']]
    expect(error).toMatchObject({ key, cause: expect.any(Error) })
    expect(error.message).toMatch(/: Redis did not confirm the release, so .* lease ends: ./)
    expect(messages).toEqual(events)
  })

  test('error is not thrown without listeners, and not emitted for a failure that a promise reports', async () => {
    const own = await ownPlace()
    const locks = client({ outageTimeout: 500 }, own.source())
    expect(await locks.using(freshKey(), () => own.kill().then(() => 'result'))).toBe('result')
    const events = heard(locks, 'error')
    await rejection(locks.lock(freshKey()), LockConnectionError)
    await rejection(locks.inspect(freshKey()), LockConnectionError)
    expect(events).toEqual([])
  })

  test('the diagnostics channels work without any listener of the client', async () => {
    const messages = published('acquired')
    const { key } = await client().lock(freshKey())
    expect(messages.map(event => event.key)).toEqual([key])
  })

  test('a listener can be removed, and can be called only once', async ({ locks }) => {
    const keys: string[] = []
    const listen = (event: ClientEvents['acquired']) => keys.push(event.key)
    locks.once('acquired', listen)
    const first = await locks.lock(freshKey())
    locks.on('acquired', listen)
    locks.off('acquired', listen)
    await locks.lock(freshKey())
    expect(keys).toEqual([first.key])
  })
})

test('a listener that throws does not break the lock', async () => {
  const child = new Child(new URL('children/throwing-listener.ts', import.meta.url), [
    JSON.stringify(place().way),
    freshKey(),
  ])
  const exit = once(child.process, 'exit')
  const report = await child.message<{ uncaught: number }>(message => 'uncaught' in message)
  expect(report).toMatchObject({ renewed: true, released: [true, true, true], lost: true })
  expect(report.uncaught).toBeGreaterThan(0)
  expect(await exit).toEqual([0, null])
})

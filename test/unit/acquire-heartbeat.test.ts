/** Tests heartbeats, which make up for lost messages (I4), and waiters that give up during an outage (I6). */
import { describe, expect } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import { now, settled } from './promises.ts'
import { HEARTBEAT, KEY, LEASE, OUTAGE, test } from './waiting.ts'

const unreachable = new LockConnectionError('out of reach')

describe('I4 the state of the lock is checked', () => {
  const cases = [
    { ttl: 500, after: 502, why: 'when the holder’s lease has expired' },
    { ttl: LEASE, after: HEARTBEAT, why: 'after the pause between heartbeats at the latest' },
  ]

  test.for(cases)('by a fair waiter $why', async ({ ttl, after }, { at }) => {
    await at.start({ id: 'A', mode: 'queue' })
    await at.kind.attempts.next.answer(at.refused({ position: 1, ticket: '5', ttl }))
    await at.clock.advance(after - 1)
    expect(at.kind.tends.count).toBe(0)
    await at.clock.advance(1)
    expect(at.kind.tends.count).toBe(1)
  })

  test.for(cases)('by an unfair waiter $why', async ({ ttl, after }, { at }) => {
    await at.start({ id: 'A' })
    for (let i = 0; i < 2; i++) await at.kind.attempts.next.answer(at.refused({ ttl }))
    await at.clock.advance(after - 1)
    expect(at.asking).toEqual([])
    await at.clock.advance(1)
    expect(at.asking).toEqual(['A'])
  })

  test('again, and sooner, after a heartbeat has reported that the lease ends sooner', async ({ at }) => {
    await at.parkedFair({ id: 'A' })
    await at.clock.advance(HEARTBEAT)
    await at.kind.tends.next.answer(at.tended([1], { ttl: 100 }))
    await at.clock.advance(102)
    expect(at.kind.tends.count).toBe(2)
  })

  test('when a connection has been made again, without waiting for the timer', async ({ at }) => {
    await at.parkedFair({ id: 'A' })
    await at.parkedHead({ id: 'B' })
    at.requests.look()
    await settled()
    expect(at.kind.tends.count).toBe(1)
    expect(at.asking).toEqual(['B'])
  })
})

describe('I9 a heartbeat', () => {
  test('is one request for all fair waiters of a key, with their tickets', async ({ at }) => {
    const waiters = [await at.parkedFair({ id: 'A' }), await at.parkedFair({ id: 'B' }, 2)]
    await at.start({ id: 'C', mode: 'queue' })
    await at.clock.advance(HEARTBEAT)
    const queued = waiters.map(({ claim }) => ({ claim, ticket: `ticket of ${claim.id}` }))
    expect(at.kind.tends.all.map(({ args }) => args)).toEqual([[KEY, queued]])
  })

  test('is never under way twice', async ({ at }) => {
    await at.parkedFair({ id: 'A' })
    for (let i = 0; i < 3; i++) at.requests.look()
    await at.clock.advance(2 * HEARTBEAT)
    expect(at.kind.tends.count).toBe(1)
  })

  test('I6 that is refused for all of `outageTimeout` ends the wait with the refusal', async ({ at }) => {
    const waiter = await at.parkedFair({ id: 'A' })
    await at.clock.advance(HEARTBEAT)
    const refused = at.clock.now()
    while (at.clock.now() - refused < OUTAGE) {
      expect(await now(waiter.outcome)).toBe('pending')
      await at.kind.tends.next.fail(unreachable)
      await at.clock.advance(HEARTBEAT)
    }
    expect(await now(waiter.outcome)).toEqual(unreachable.of(KEY))
    expect(at.clock.now() - refused).toBe(OUTAGE)
  })
})

describe('I6 an outage', () => {
  test('ends each waiter exactly when its own patience is over', async ({ at }) => {
    const cause = new Error('ECONNREFUSED')
    const before = [await at.parkedFair({ id: 'A' }), await at.parkedHead({ id: 'B', key: 'other' })]
    await at.clock.advance(1_000)
    at.requests.onDisconnected(cause)
    await at.clock.advance(5_000)
    const later = await at.start({ id: 'C', mode: 'queue' })
    await at.clock.advance(OUTAGE - 5_001)
    for (const waiter of before) expect(await now(waiter.outcome)).toBe('pending')
    await at.clock.advance(1)
    for (const waiter of before) {
      expect(await now(waiter.outcome)).toMatchObject({ code: 'ERR_LOCK_CONNECTION', key: waiter.claim.key, cause })
    }
    await at.clock.advance(4_999)
    expect(await now(later.outcome)).toBe('pending')
    await at.clock.advance(1)
    expect(await now(later.outcome)).toMatchObject({ code: 'ERR_LOCK_CONNECTION' })
  })

  test('is counted from its beginning, and explained by its latest error', async ({ at }) => {
    const waiter = await at.parkedFair({ id: 'A' })
    at.requests.onDisconnected(new Error('first'))
    await at.clock.advance(OUTAGE - 1)
    const latest = new Error('latest')
    at.requests.onDisconnected(latest)
    await at.clock.advance(1)
    expect(await now(waiter.outcome)).toMatchObject({ cause: latest })
  })
})

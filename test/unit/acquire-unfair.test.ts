/** Tests unfair waiters: one request at a time for each key, no lost wake-up, joining the queue late, and re-entry. */
import { describe, expect } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import { now, settled } from './promises.ts'
import { HEARTBEAT, KEY, LEASE, NOTHING, test, Waiting } from './waiting.ts'

test('I4 a waiter subscribes, asks once more, and only then parks', async ({ at }) => {
  at.channels.slow = true
  const waiter = await at.start({ id: 'A' })
  expect(at.channels.hearings.count).toBe(0)
  expect(at.kind.attempts.next.args[1]).toEqual({ reserve: 0 })
  await at.kind.attempts.next.answer(at.refused())
  expect(at.channels.hearings.next.args).toEqual([KEY, 'unlock'])
  expect(at.asking).toEqual([])
  await at.channels.hearings.next.answer()
  expect(at.asking).toEqual(['A'])
  await at.kind.attempts.next.answer(at.refused())
  expect(at.asking).toEqual([])
  expect(await now(waiter.outcome)).toBe('pending')
  expect(at.told).toEqual(['A'])
})

test('I1 if the clock was in doubt since the request of a grant, the waiter asks once more before it uses the grant', async () => {
  const at = new Waiting()
  const waiter = await at.start({ id: 'A' })
  const late = at.granted({ token: 7 })
  at.clock.fallBehind(LEASE)
  await at.kind.attempts.next.answer(late)
  expect(await now(waiter.outcome)).toBe('pending')
  await at.kind.attempts.next.answer(at.granted({ token: 7 }))
  expect(await now(waiter.outcome)).toMatchObject({ token: 7 })
  expect(at.holding.remaining(at.table.hold('A')!)).toBeGreaterThan(0)
})

test('I9 only the head of the line asks, and a release makes it ask once', async ({ at }) => {
  await at.parkedHead({ id: 'A' })
  for (const id of ['B', 'C', 'D']) await at.start({ id })
  expect(at.asking).toEqual([])
  at.unlocked(KEY)
  await settled()
  expect(at.asking).toEqual(['A'])
  await at.kind.attempts.next.answer(at.granted())
  expect(at.asking).toEqual([])
  at.unlocked(KEY)
  await settled()
  expect(at.asking).toEqual(['B'])
})

describe('I4 a wake-up is not lost if it comes', () => {
  test('while the head is asking', async ({ at }) => {
    await at.parkedHead({ id: 'A' })
    at.unlocked(KEY)
    await settled()
    for (let i = 0; i < 3; i++) at.unlocked(KEY)
    await at.kind.attempts.next.answer(at.refused())
    expect(at.asking).toEqual(['A'])
    await at.kind.attempts.next.answer(at.refused())
    expect(at.asking).toEqual([])
  })

  test('while the head is asking and then gives up: the next waiter uses it', async ({ at }) => {
    const head = await at.parkedHead({ id: 'A' })
    await at.start({ id: 'B' })
    at.unlocked(KEY)
    await settled()
    at.unlocked(KEY)
    at.requests.end(head, undefined)
    await at.kind.attempts.next.answer(at.refused())
    expect(at.asking).toEqual(['B'])
  })

  test('in the form of a grant to a head that has given up: the next waiter asks when that grant has been given back', async () => {
    const at = new Waiting()
    const head = await at.parkedHead({ id: 'A' })
    await at.start({ id: 'B' })
    at.unlocked(KEY)
    await settled()
    at.requests.end(head, undefined)
    await at.kind.attempts.next.answer(at.granted())
    expect(at.left).toEqual(['A', 'A'])
    for (const call of at.kind.leaves.open) await call.answer()
    expect(at.asking).toEqual(['B'])
  })

  test('while an attempt is unanswered whose waiter has given up: the next waiter asks when that attempt has failed', async () => {
    const at = new Waiting()
    const head = await at.parkedHead({ id: 'A' })
    await at.start({ id: 'B' })
    at.unlocked(KEY)
    await settled()
    at.requests.end(head, undefined)
    await at.kind.leaves.next.answer()
    await at.kind.attempts.next.fail(new LockConnectionError('out of reach'))
    expect(at.asking).toEqual(['B'])
  })

  test('while the head subscribes and then gives up', async ({ at }) => {
    at.channels.slow = true
    const head = await at.start({ id: 'A' })
    await at.kind.attempts.next.answer(at.refused())
    await at.start({ id: 'B' })
    at.unlocked(KEY)
    at.requests.end(head, undefined)
    await at.channels.hearings.next.answer()
    expect(at.asking).toEqual(['B'])
  })
})

describe('fairAfter', () => {
  test('counts from the call, even for a waiter that was never the head and joins the queue before the head', async () => {
    const at = new Waiting()
    await at.parkedHead({ id: 'A' })
    await at.clock.advance(400)
    await at.start({ id: 'B', fairAfter: 1_000 })
    await at.clock.advance(1_000)
    expect(at.kind.attempts.next.args).toEqual([expect.objectContaining({ id: 'B' }), { join: true }])
  })

  test('I7 leaves no timer when its waiter was granted the lock or gave up before', async ({ at }) => {
    await at.start({ id: 'A', fairAfter: 1_000 })
    await at.kind.attempts.next.answer(at.granted())
    at.requests.end(await at.parkedHead({ id: 'B', fairAfter: 1_000 }), undefined)
    await settled()
    expect(at.residue).toEqual(NOTHING)
  })
})

describe('waiters whose owner may re-enter', () => {
  test('ask on their own, even with others ahead of them in the line', async ({ at }) => {
    await at.parkedHead({ id: 'A' })
    const waiter = await at.start({ id: 'B', mayReenter: true })
    expect(at.asking).toEqual(['B'])
    const grant = at.granted({ via: 'reentry' })
    await at.kind.attempts.next.answer(grant)
    expect(await now(waiter.outcome)).toEqual(grant)
  })

  test('I9 leave checks of the lock to the head, and ask on their own when it finds that their owner holds the lock', async () => {
    const at = new Waiting()
    await at.parkedHead({ id: 'A' })
    const waiter = await at.start({ id: 'B', owner: 'ours', mayReenter: true })
    await at.kind.attempts.next.answer(at.refused())
    await at.start({ id: 'C', owner: 'theirs', mayReenter: true })
    await at.kind.attempts.next.answer(at.refused())
    await at.clock.advance(HEARTBEAT)
    expect(at.asking).toEqual(['A'])
    await at.kind.attempts.next.answer(at.refused({ owner: 'ours' }))
    expect(at.asking).toEqual(['B'])
    await at.kind.attempts.next.answer(at.granted({ via: 'reentry' }))
    expect(await now(waiter.outcome)).toMatchObject({ via: 'reentry' })
  })

  test.for([
    { where: 'in the line', mode: 'line' as const },
    { where: 'in the queue', mode: 'queue' as const },
  ])('I4 $where ask at once when they hear that their owner has been granted the lock', async ({ mode }, { at }) => {
    const [ours, theirs] = [
      await at.start({ id: 'A', owner: 'ours', mayReenter: true, mode }),
      await at.start({ id: 'B', owner: 'theirs', mayReenter: true, mode }),
    ]
    while (at.asking.length > 0) await at.kind.attempts.next.answer(at.refused({ ticket: '7', position: 1 }))
    at.entered(KEY, 'ours')
    await settled()
    expect(at.asking).toEqual(['A'])
    await at.kind.attempts.next.answer(at.granted({ via: 'reentry' }))
    expect(await now(ours.outcome)).toMatchObject({ via: 'reentry' })
    expect(await now(theirs.outcome)).toBe('pending')
  })

  // A, B and C wait in one client and have the same owner. A is granted the lock. The client is not yet subscribed to
  // the lock's channel, so it misses the message that this owner holds the lock. B, which is now first in the client's
  // line, asks next and re-enters. C could re-enter, too. So C must ask now, and not stay parked until the next
  // heartbeat.
  test('I4 ask on their own when the head re-enters, because the message of their owner’s grant may have been missed', async () => {
    const at = new Waiting()
    at.channels.slow = true
    for (const id of ['A', 'B', 'C', 'D']) {
      await at.start({ id, owner: id === 'D' ? 'theirs' : 'ours', mayReenter: true })
    }
    for (let i = 0; i < 4; i++) await at.kind.attempts.next.answer(at.refused())
    expect(at.asking).toEqual(['A'])
    await at.kind.attempts.next.answer(at.granted())
    await at.channels.hearings.next.answer()
    expect(at.asking).toEqual(['B'])
    await at.kind.attempts.next.answer(at.granted({ via: 'reentry' }))
    expect(at.asking).toEqual(['C'])
  })

  test('keep waiting if their own attempt fails', async ({ at }) => {
    await at.parkedHead({ id: 'A' })
    const waiter = await at.start({ id: 'B', owner: 'ours', mayReenter: true })
    await at.kind.attempts.next.answer(at.refused())
    at.entered(KEY, 'ours')
    await at.kind.attempts.next.fail(new LockConnectionError('busy'))
    expect(await now(waiter.outcome)).toBe('pending')
  })
})

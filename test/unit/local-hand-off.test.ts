/** Tests local hand-offs: when they happen, which waiter gets the lock, and how long a run of them lasts. */
import { describe, expect } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import { BLOCK, FIRST, type HandingOn, leaseOf, test } from './handing-on.ts'
import { settled } from './promises.ts'
import { KEY, LEASE } from './waiting.ts'

describe('a release hands the lock on', () => {
  test('I1 for no longer than its own lease lasts', async ({ at }) => {
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' })
    at.clock.block(2)
    const left = leaseOf(a!).remaining()
    void leaseOf(a!).release()
    expect(leaseOf(b!).remaining()).toBe(left)
  })

  test('I1 not if the clock is in doubt: then Redis is asked for whom it is', async ({ at }) => {
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' })
    at.clock.fallBehind(LEASE)
    void leaseOf(a!).release()
    expect([b!.lease, at.kind.releases.count]).toEqual([undefined, 1])
  })

  test('I2 with a token of its own, and the release names the last token that was used', async ({ at }) => {
    const askers = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
    for (const asker of askers) void leaseOf(asker).release()
    await settled()
    expect(askers.map(asker => leaseOf(asker).fencingToken)).toEqual([FIRST, FIRST + 1, FIRST + 2])
    expect(at.kind.releases.next.args).toMatchObject([{ key: KEY, id: 'A' }, FIRST + 2])
  })
})

describe('a release that finds nobody waiting is put off to the end of the event loop’s turn,', () => {
  test('and hands the lock to a waiter that comes until then', async ({ at }) => {
    const [a] = await at.run({ id: 'A' })
    const sent = at.kind.attempts.count
    const released = leaseOf(a!).release()
    const b = at.begin({ id: 'B' })
    expect([leaseOf(a!).held, b.lease, at.ended]).toEqual([false, undefined, []])
    await settled()
    expect([leaseOf(b).held, leaseOf(b).via, leaseOf(b).fencingToken]).toEqual([true, 'handoff', FIRST + 1])
    expect([await released, at.kind.attempts.count, at.ended]).toEqual([true, sent, []])
    expect(at.told.slice(-3)).toEqual(['waiting B', 'released A', 'acquired B'])
  })

  test('I1 and is sent to Redis if the run is over by then', async ({ at }) => {
    const [a] = await at.run({ id: 'A' })
    void leaseOf(a!).release()
    const b = at.begin({ id: 'B' })
    at.clock.block(4)
    await settled()
    expect([b.lease, at.ended]).toEqual([undefined, [['A', undefined]]])
    await at.released()
    expect(at.asking).toEqual(['B'])
  })

  test('I6 and from the call on the lease cannot be prolonged', async ({ at }) => {
    const [a] = await at.run({ id: 'A' })
    void leaseOf(a!).release()
    await expect(leaseOf(a!).renew()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' })
  })
})

describe('I4 a run ends, and the lock goes back to Redis,', () => {
  test('with the last token of its block', async ({ at }) => {
    const names = Array.from({ length: BLOCK + 1 }, (_, i) => ({ id: `${i + 1}` }))
    const askers = await at.run({ id: '0' }, ...names)
    for (const asker of askers.slice(0, -1)) void leaseOf(asker).release()
    expect(askers.at(-1)?.lease).toBeUndefined()
    expect(leaseOf(askers.at(-2)!).fencingToken).toBe(FIRST + BLOCK)
    expect(at.ended).toEqual([['0', BLOCK]])
  })

  test('4 ms after its start, however often it was handed on', async ({ at }) => {
    const askers = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' }, { id: 'D' })
    for (const asker of askers.slice(0, 3)) {
      at.clock.block(1.4)
      void leaseOf(asker).release()
    }
    expect(askers[3]!.lease).toBeUndefined()
    expect(at.ended).toEqual([['A', 2]])
  })
})

/** Expects that A's release goes to Redis, and that B is not handed the lock. */
async function expectNotHandedOn(at: HandingOn, [a, b]: Awaited<ReturnType<HandingOn['run']>>): Promise<void> {
  const released = leaseOf(a!).release()
  expect(b!.lease).toBeUndefined()
  expect(at.kind.releases.next.args[0]).toMatchObject({ key: KEY, id: 'A' })
  await at.released()
  expect(await released).toBe(true)
  expect(at.told.filter(told => told === 'released A').length).toBe(1)
}

describe('a lease is not handed on', () => {
  test('I1 if less than half of it certainly lasts', async ({ at }) => {
    const askers = await at.run({ id: 'A', lease: 6 }, { id: 'B', lease: 6 })
    at.clock.block(2.3)
    expect(leaseOf(askers[0]!).remaining()).toBeGreaterThan(3)
    at.clock.block(0.2)
    expect(leaseOf(askers[0]!).remaining()).toBeLessThan(3)
    await expectNotHandedOn(at, askers)
  })

  test('I1 if it has run out, even before a timer fires: it is lost, and the line asks', async ({ at }) => {
    const [a, b] = await at.run({ id: 'A', lease: 4 }, { id: 'B', lease: 4 })
    at.clock.block(3.8)
    expect(await leaseOf(a!).release()).toBe(false)
    expect([b!.lease, at.told.at(-1), at.asking]).toEqual([undefined, 'lost A', ['B']])
  })

  test('to a waiter that asked for another length', async ({ at }) => {
    await expectNotHandedOn(at, await at.run({ id: 'A' }, { id: 'B', lease: LEASE + 1 }))
  })

  test.for(['once', 'line'] as const)('I1 while its owner asks to re-enter: %s', async (mode, { at }) => {
    const askers = await at.run({ id: 'A' }, { id: 'B' })
    const nested = await at.ask({ id: 'N', owner: 'A', mode })
    expect(at.asking).toEqual(['N'])
    void leaseOf(askers[0]!).release()
    // Redis has received the re-entry before the release.
    const deadline = at.clock.now() + LEASE / 2
    await at.attempt.answer({ granted: true, token: FIRST, deadline, via: 'reentry' })
    expect([leaseOf(nested).held, askers[1]!.lease, at.ended]).toEqual([true, undefined, [['A', undefined]]])
  })

  test('I8 while it may be gone, according to a message', async ({ at }) => {
    const askers = await at.run({ id: 'A' }, { id: 'B' })
    at.holding.doubt(at.table.hold('A')!)
    await expectNotHandedOn(at, askers)
  })

  test('I8 while Redis is being asked about it, because its heir would miss the answer', async ({ at }) => {
    const askers = await at.run({ id: 'A', lease: 6 }, { id: 'B', lease: 6 })
    await at.clock.advance(1.5)
    expect(at.kind.renewals.open.length).toBe(1)
    await expectNotHandedOn(at, askers)
  })

  test('I8 while its user is renewing it, because its heir would miss the answer', async ({ at }) => {
    const askers = await at.run({ id: 'A' }, { id: 'B', renew: false })
    void leaseOf(askers[0]!).renew(LEASE)
    expect(at.kind.renewals.open.length).toBe(1)
    await expectNotHandedOn(at, askers)
  })

  test.for(['yes', 'no answer'])('but is handed on after its user’s renewal has settled: %s', async (said, { at }) => {
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' })
    const renewed = Promise.allSettled([leaseOf(a!).renew(LEASE)])
    const { next } = at.kind.renewals
    if (said === 'yes') await next.answer([at.clock.now() + LEASE / 2])
    else await next.fail(new LockConnectionError('out of reach'))
    await renewed
    void leaseOf(a!).release()
    expect(leaseOf(b!).via).toBe('handoff')
  })
})

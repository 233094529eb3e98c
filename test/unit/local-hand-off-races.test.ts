/**
 * Tests events that race with a local hand-off: late answers, callers that give up, listeners, a close, and a lost lock
 * (I6, I7, I8).
 */
import { describe, expect } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import { FIRST, HandingOn, leaseOf, test } from './handing-on.ts'
import { settled } from './promises.ts'
import { KEY } from './waiting.ts'

const unreachable = new LockConnectionError('out of reach')

/** Lets A hand the lock on to B while B's own attempt is unanswered. */
async function askedMeanwhile() {
  const at = new HandingOn()
  const [a, b, c] = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
  at.unlocked(KEY)
  await settled()
  expect(at.asking).toEqual(['B'])
  void leaseOf(a!).release()
  return { at, lease: leaseOf(b!), c: c! }
}

describe('if an answer comes after its waiter was handed the lock,', () => {
  test('I7 a grant is given back, and the lease from the hand-off lives on', async () => {
    const { at, lease } = await askedMeanwhile()
    await at.grantNext(FIRST + 5_000)
    expect(at.left).toEqual(['B'])
    expect([lease.held, lease.fencingToken, at.table.holds]).toEqual([true, FIRST + 1, 1])
    expect(at.told.filter(told => told === 'acquired B').length).toBe(1)
  })

  test('I4 the line asks when that grant has been given back', async () => {
    const { at, lease, c } = await askedMeanwhile()
    at.clock.block(5)
    void lease.release()
    await at.released()
    await at.grantNext(FIRST + 5_000)
    expect(c.lease).toBeUndefined()
    for (const call of at.kind.leaves.open) await call.answer()
    expect(at.asking).toEqual(['C'])
  })

  test('a failure ends nobody’s wait', async () => {
    const { at, lease, c } = await askedMeanwhile()
    await at.attempt.fail(unreachable)
    expect([lease.held, c.end]).toEqual([true, undefined])
  })
})

describe('I6 callers that give up', () => {
  test('I7 leave no fairAfter timer if they were handed the lock', async ({ at }) => {
    const [a, b] = await at.run({ id: 'A' }, { id: 'B', fairAfter: 1_000 })
    void leaseOf(a!).release()
    void leaseOf(b!).release()
    await at.released()
    const sent = at.kind.attempts.count
    await at.clock.advance(60_000)
    expect(at.kind.attempts.count).toBe(sent)
    expect(at.residue).toEqual({ waiting: 0, leases: 0, timers: 0, channels: {} })
  })
})

describe('listeners that act at once', () => {
  test('I7 on "released", by closing: close waits until the hold is ended in Redis', async ({ at }) => {
    const [a] = await at.run({ id: 'A' }, { id: 'B' })
    let closed = false
    at.heard = what => {
      if (what !== 'released') return
      void at.requests.close()
      const released = at.holding.releaseAll().then(() => at.withdrawals.close())
      void released.then(() => {
        closed = true
      })
    }
    void leaseOf(a!).release()
    await settled()
    expect([at.ended, closed]).toEqual([[['A', undefined]], false])
    await at.released()
    expect(closed).toBe(true)
  })

  test('I1 on "released", by naming the owner: Redis decides who is next, because it may let the owner re-enter', async () => {
    const at = new HandingOn()
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' })
    at.heard = what => {
      if (what === 'released') at.begin({ id: 'N', owner: 'A', mode: 'once' })
    }
    void leaseOf(a!).release()
    await settled()
    expect([b!.lease, at.asking, at.ended]).toEqual([undefined, ['N'], [['A', undefined]]])
  })

  test('on "acquired", by closing: the lease is released in Redis, with its own token', async ({ at }) => {
    const [a] = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
    at.heard = (what, id) => {
      if (what !== 'acquired' || id !== 'B') return
      void at.requests.close()
      void at.holding.releaseAll()
    }
    void leaseOf(a!).release()
    await settled()
    expect(at.ended).toEqual([['A', 1]])
    await at.released()
    await at.clock.advance(60_000)
    expect(at.residue).toMatchObject({ waiting: 0, leases: 0, timers: 0 })
  })
})

describe('I7 a close in the middle of a run', () => {
  test('ends the waiters, and releases the hold under the id that Redis knows', async ({ at }) => {
    const [a, b, c] = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
    void leaseOf(a!).release()
    const closed = Promise.all([at.requests.close(), at.holding.releaseAll()])
    expect(c!.end).toMatchObject({ code: 'ERR_LOCK_CLOSED' })
    expect(leaseOf(b!).held).toBe(false)
    await settled()
    expect(at.ended).toEqual([['A', 1]])
    await at.released()
    await closed
    await at.clock.advance(10)
    expect(at.records).toEqual([])
  })
})

describe('I8 a lock that is lost in the middle of a run', () => {
  /**
   * Lets A hand the lock on to B while C waits behind B. Redis does not know of the hand-off yet, so it knows the hold
   * by the id of A. Then Redis answers that the hold with this id is gone.
   */
  async function lostByB() {
    const at = new HandingOn()
    const [a, b, c] = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
    void leaseOf(a!).release()
    at.holding.doubt(at.table.hold('A')!)
    await at.clock.advance(0)
    await at.kind.renewals.next.answer(['lost'])
    return { at, a, b, c }
  }

  test('is lost to its present holder, under the id that Redis knows, and the line asks', async () => {
    const { at, a, b, c } = await lostByB()
    expect([leaseOf(b!).signal.aborted, leaseOf(a!).signal.aborted]).toEqual([true, false])
    expect([at.told.at(-1), at.asking]).toEqual(['lost B', ['C']])
    expect(c!.lease).toBeUndefined()
  })

  test('is neither handed on nor recorded after that', async () => {
    const { at, b, c } = await lostByB()
    expect(await leaseOf(b!).release()).toBe(false)
    await at.clock.advance(10)
    expect([c!.lease, at.records, at.ended]).toEqual([undefined, [], []])
  })

  test('counts as lost if only its release in Redis finds that out, and the line asks', async ({ at }) => {
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' })
    at.clock.block(5)
    const released = leaseOf(a!).release()
    await at.kind.releases.next.answer({ ended: false })
    expect([await released, leaseOf(a!).signal.aborted, b!.lease]).toEqual([false, true, undefined])
    expect(at.asking).toEqual(['B'])
  })
})

test('I4 a release in Redis that fails makes the line ask', async ({ at }) => {
  const [a] = await at.run({ id: 'A' }, { id: 'B' })
  at.clock.block(5)
  const released = leaseOf(a!)
    .release()
    .catch((error: unknown) => error)
  await at.kind.releases.next.fail(unreachable)
  expect([await released, at.asking]).toEqual([expect.any(LockConnectionError), ['B']])
})

test('I8 a lease that was handed on is renewed under the id of the hold that Redis knows', async ({ at }) => {
  const [a, b] = await at.run({ id: 'A', lease: 90 }, { id: 'B', lease: 90 })
  void leaseOf(a!).release()
  await at.clock.advance(1)
  await at.recorded()
  const renewed = leaseOf(b!).renew(500)
  await at.kind.renewals.next.answer([at.clock.now() + 450])
  await renewed
  expect(leaseOf(b!).remaining()).toBeCloseTo(450)
  await at.clock.advance(400)
  expect(at.kind.renewals.all.map(({ args: [asked] }) => asked.map(({ hold }) => hold.id))).toEqual([['A'], ['A']])
  expect(at.told.filter(told => told.endsWith('B'))).toEqual(['waiting B', 'acquired B', 'renewed B'])
})

/** Tests when a client records the new holder in Redis after local hand-offs, and which calls wait for the record. */
import { describe, expect } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import { FIRST, HandingOn, leaseOf, test } from './handing-on.ts'
import { KEY } from './waiting.ts'

const unreachable = new LockConnectionError('out of reach')

describe('the holder is recorded in Redis', () => {
  test('once, 1 ms after a hand-off, if it still holds then', async ({ at }) => {
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
    void leaseOf(a!).release()
    await at.clock.advance(0.6)
    void leaseOf(b!).release()
    await at.clock.advance(0.3)
    expect(at.records).toEqual([])
    await at.clock.advance(0.1)
    expect(at.records).toEqual([['C', FIRST + 2]])
    expect(at.kind.passes.next.args[0]).toMatchObject({ key: KEY, id: 'A' })
    await at.clock.advance(100)
    expect(at.records.length).toBe(1)
  })

  test('I7 but not after the lock has gone back', async ({ at }) => {
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' })
    void leaseOf(a!).release()
    void leaseOf(b!).release()
    await at.clock.advance(10)
    expect(at.records).toEqual([])
  })

  test('and the answer may prolong a later holder’s lease, because the hold is the same', async ({ at }) => {
    const [a, b, c] = await at.run({ id: 'A', lease: 100 }, { id: 'B', lease: 100 }, { id: 'C', lease: 100 })
    void leaseOf(a!).release()
    await at.clock.advance(1)
    void leaseOf(b!).release()
    const before = leaseOf(c!).remaining()
    await at.recorded()
    expect(leaseOf(c!).remaining()).toBeGreaterThan(before)
  })

  test('I8 and if the hold is gone, Redis is asked about the lease, which is lost, and the line asks', async () => {
    const at = new HandingOn()
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
    void leaseOf(a!).release()
    await at.clock.advance(1)
    await at.kind.passes.next.answer(undefined)
    await at.clock.advance(0)
    expect(at.kind.renewals.next.args[0]).toMatchObject([{ hold: { key: KEY, id: 'A' } }])
    expect(leaseOf(b!).held).toBe(true)
    await at.kind.renewals.next.answer(['lost'])
    expect([leaseOf(b!).held, leaseOf(b!).signal.aborted, at.told.at(-1)]).toEqual([false, true, 'lost B'])
    expect(at.asking).toEqual(['C'])
  })

  test('and a record that fails is reported, and made again after the next hand-off', async ({ at }) => {
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
    void leaseOf(a!).release()
    await at.clock.advance(1)
    await at.kind.passes.next.fail(unreachable)
    expect(at.failures).toEqual([unreachable])
    void leaseOf(b!).release()
    await at.clock.advance(1)
    expect(at.records.at(-1)).toEqual(['C', FIRST + 2])
  })
})

describe('an owner that asks to re-enter a lease that was handed on', () => {
  async function handedOn() {
    const at = new HandingOn()
    const [a, b, c] = await at.run({ id: 'A' }, { id: 'B' }, { id: 'C' })
    void leaseOf(a!).release()
    return { at, lease: leaseOf(b!), behind: c! }
  }

  test.each(['once', 'line', 'queue'] as const)('asks for the lock only when Redis knows it: %s', async mode => {
    const { at, lease } = await handedOn()
    await at.ask({ id: 'N', owner: lease.owner, mode })
    expect(at.records).toEqual([['B', FIRST + 1]])
    expect(at.asking).toEqual([])
    await at.recorded()
    expect(at.asking).toEqual(['N'])
  })

  // N has the same owner as B. If N's request reached Redis before the request that records B, Redis would still have A
  // as the holder, and would refuse N.
  test('waits for a record that is under way, and causes no other', async () => {
    const { at, lease } = await handedOn()
    await at.clock.advance(1)
    await at.ask({ id: 'N', owner: lease.owner, mode: 'once' })
    expect([at.records.length, at.asking]).toEqual([1, []])
    await at.recorded()
    expect(at.asking).toEqual(['N'])
  })

  // N, which has the same owner as B, is about to re-enter. If B now handed the lock on to C, Redis would let N
  // re-enter while C holds the lock.
  test('I1 ends the run: no waiter is handed the lock beside it', async () => {
    const { at, lease, behind } = await handedOn()
    await at.ask({ id: 'N', owner: lease.owner, mode: 'once' })
    void lease.release()
    expect([behind.lease, at.ended]).toEqual([undefined, [['A', 1]]])
  })

  test('asks at once if Redis knows it', async () => {
    const { at, lease } = await handedOn()
    await at.clock.advance(1)
    await at.recorded()
    await at.ask({ id: 'N', owner: lease.owner, mode: 'once' })
    expect([at.records.length, at.asking]).toEqual([1, ['N']])
  })

  test.each(['once', 'line', 'queue'] as const)('is rejected if it cannot be recorded in Redis: %s', async mode => {
    const { at, lease } = await handedOn()
    const nested = await at.ask({ id: 'N', owner: lease.owner, mode })
    await at.kind.passes.next.fail(unreachable)
    expect(nested.end).toBe(unreachable)
    expect([at.asking, at.left, lease.held]).toEqual([[], [], true])
    const again = await at.ask({ id: 'M', owner: lease.owner, mode })
    await at.recorded()
    expect([again.end, at.asking]).toEqual([undefined, ['M']])
  })

  test('I1 is not mistaken for one that holds another key', async () => {
    const { at, lease, behind } = await handedOn()
    void at.holding.record('another key', lease.owner)
    void lease.release()
    expect([leaseOf(behind).via, at.records]).toEqual(['handoff', []])
  })

  test('I1 that held the lock before the hand-off waits for the record of the new holder, or Redis would let it re-enter', async () => {
    const { at } = await handedOn()
    await at.ask({ id: 'N', owner: 'A', mode: 'once' })
    expect([at.records, at.asking]).toEqual([[['B', FIRST + 1]], []])
    await at.recorded()
    expect(at.asking).toEqual(['N'])
  })
})

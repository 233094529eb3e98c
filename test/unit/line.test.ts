/**
 * Tests which unfair waiter of a client asks, and when, while the client holds the
 * lock.
 */
import { describe, expect } from 'vitest'
import { HandingOn, leaseOf, test } from './handing-on.ts'
import { settled } from './promises.ts'
import { HEARTBEAT, KEY } from './waiting.ts'

/** Lets B hold the lock in a run of local hand-offs. The client is subscribed to no channel. */
async function unheard() {
  const at = new HandingOn()
  at.channels.slow = true
  const a = await at.ask({ id: 'A' })
  const b = await at.ask({ id: 'B' })
  const gone = await at.ask({ id: 'gone' })
  // A was alone when it asked, so its grant came without tokens for hand-offs. The grant to B comes with such tokens.
  await at.grantNext()
  await at.channels.hearings.next.answer()
  await at.grantNext(20_000)
  at.requests.end(gone.waiter, undefined)
  void leaseOf(a).release()
  await at.released()
  at.rest()
  at.channels.slow = false
  return { at, lease: leaseOf(b) }
}

describe('while a lease of the same client may hand the lock on', () => {
  test('I9 a newcomer neither asks nor listens: it is the heir', async () => {
    const { at, lease } = await unheard()
    expect(at.channels.users).toEqual({})
    const sent = at.kind.attempts.count
    const c = await at.ask({ id: 'C' })
    expect([at.kind.attempts.count, at.channels.users]).toEqual([sent, {}])
    void lease.release()
    expect(leaseOf(c).via).toBe('handoff')
    expect(at.kind.attempts.count).toBe(sent)
  })

  test('I4 a newcomer asks and listens when the run is over, whether the lock is still held or was deleted meanwhile', async () => {
    const { at } = await unheard()
    const c = await at.ask({ id: 'C' })
    await at.clock.advance(4)
    expect(at.asking).toEqual([])
    await at.clock.advance(2)
    expect(at.asking).toEqual(['C'])
    await at.grantNext(30_000)
    expect(leaseOf(c).fencingToken).toBe(30_000)
  })

  test('I4 a newcomer listens before it parks for longer', async () => {
    const { at } = await unheard()
    await at.ask({ id: 'C' })
    await at.clock.advance(6)
    await at.attempt.answer(at.refused())
    expect(at.channels.users).toEqual({ [`unlock of ${KEY}`]: 1 })
    expect(at.asking).toEqual(['C'])
  })

  test('I9 a waiter that Redis grants the lock may hand it on as well, so nobody else asks or listens', async () => {
    const { at, lease } = await unheard()
    const [c, d] = [await at.ask({ id: 'C', lease: 1_000 }), await at.ask({ id: 'D', lease: 1_000 })]
    void lease.release()
    await at.released()
    await at.grantNext(30_000)
    expect([leaseOf(c).held, at.asking, at.channels.users]).toEqual([true, [], {}])
    void leaseOf(c).release()
    expect(leaseOf(d).held).toBe(true)
  })

  test('a newcomer does not park behind a lease whose release is under way', async () => {
    const { at, lease } = await unheard()
    void lease.release()
    await settled()
    expect(at.kind.releases.open.length).toBe(1)
    await at.ask({ id: 'C' })
    expect(at.asking).toEqual(['C'])
  })
})

test('an attempt reserves tokens for hand-offs if another waiter is behind it, or if a refusal has shown other clients', async () => {
  const at = new HandingOn()
  await at.ask({ id: 'A' })
  await at.ask({ id: 'B' })
  await at.grantNext()
  expect(at.asking).toEqual(['B'])
  await at.attempt.answer(at.refused())
  await at.clock.advance(HEARTBEAT)
  expect(at.kind.attempts.all.map(({ args: [{ id }, beside] }) => [id, beside])).toEqual([
    ['A', { reserve: 0 }],
    ['B', { reserve: 0 }],
    ['B', { reserve: 1_000 }],
  ])
})

test('an attempt after this client’s own release reserves tokens for hand-offs, because the caller may soon be back', async () => {
  const at = new HandingOn()
  const a = await at.ask({ id: 'A' })
  await at.ask({ id: 'B' })
  at.heard = (what, id) => {
    if (what === 'acquired' && id === 'A') void leaseOf(a).release()
  }
  await at.grantNext()
  expect([at.ended, at.attempt.args]).toMatchObject([[['A', undefined]], [{ id: 'B' }, { reserve: 1_000 }]])
})

/**
 * Tests which unfair waiter of a client asks, and when: after the client's own release, and while the client holds the
 * lock.
 */
import { describe, expect, test } from 'vitest'
import { type Asker, FIRST, HandingOn, leaseOf } from './handing-on.ts'
import { settled } from './promises.ts'
import { HEARTBEAT, KEY, LEASE } from './waiting.ts'

/**
 * After its release, a client leaves the lock to other clients for a while: for TURN ms if they take turns with it, and
 * for CHANCE ms if they receive the messages about releases, but have not taken the lock yet.
 */
const CHANCE = 3
const TURN = 7

/**
 * Makes a client in which A holds the lock and B is parked. A's run of local hand-offs is over, so A's release goes to
 * Redis. The client receives the messages about other clients' releases.
 */
async function overAndParked(...others: string[]): Promise<{ at: HandingOn; askers: Asker[] }> {
  const at = new HandingOn()
  const askers = await at.run({ id: 'A' }, { id: 'B' }, ...others.map(id => ({ id })))
  at.clock.block(5)
  return { at, askers }
}

/** Lets A release the lock. Redis reports that `heard` clients received the message. */
async function releasedTo(heard: number, ...others: string[]) {
  const made = await overAndParked(...others)
  void leaseOf(made.askers[0]!).release()
  expect(made.at.asking).toEqual([])
  await made.at.released(heard)
  return made
}

describe('after its own release, a client', () => {
  test('leaves the lock to other clients that received the message, and asks if none of them takes it for a while', async () => {
    const { at } = await releasedTo(2)
    await at.clock.advance(CHANCE - 0.1)
    expect(at.asking).toEqual([])
    await at.clock.advance(0.1)
    expect(at.asking).toEqual(['B'])
  })

  test('asks at once if no other client received the message', async () => {
    expect((await releasedTo(1)).at.asking).toEqual(['B'])
  })

  test('asks at once if no client received the message', async () => {
    expect((await releasedTo(0)).at.asking).toEqual(['B'])
  })

  test('asks as soon as another client has released, and not a second time', async () => {
    const { at } = await releasedTo(2)
    await at.clock.advance(1)
    at.unlocked(KEY, 'other')
    await settled()
    expect(at.asking).toEqual(['B'])
    await at.attempt.answer(at.refused())
    await at.clock.advance(2 * TURN)
    expect(at.asking).toEqual([])
  })

  test('I4 asks for the next waiter in the line if the head gives up meanwhile', async () => {
    const { at, askers } = await releasedTo(2, 'C')
    at.io.end(askers[1]!.waiter, undefined)
    await at.clock.advance(TURN)
    expect(at.asking).toEqual(['C'])
  })

  test('I9 sends one request, however many waiters there are, and none for a newcomer', async () => {
    const { at } = await releasedTo(2, 'C', 'D')
    const sent = at.kind.attempts.count
    await at.ask({ id: 'E' })
    expect(at.kind.attempts.count).toBe(sent)
    await at.clock.advance(TURN)
    expect(at.asking).toEqual(['B'])
  })

  test('I7 keeps no timer for long when nobody waits any more', async () => {
    const { at, askers } = await releasedTo(2)
    at.io.end(askers[1]!.waiter, undefined)
    // The timer is left for a moment, for the next look at the holds, and to forget the other clients.
    expect(at.residue).toEqual({ waiting: 0, leases: 0, timers: 1, channels: {} })
    await at.clock.advance(LEASE)
    expect([at.asking, at.residue.timers]).toEqual([[], 0])
  })

  test('takes turns again after its next release', async () => {
    const { at, askers } = await releasedTo(2, 'C')
    at.unlocked(KEY, 'other')
    await settled()
    await at.grantNext(20_000)
    at.clock.block(5)
    void leaseOf(askers[1]!).release()
    await at.released(2)
    await at.clock.advance(TURN - 0.1)
    expect(at.asking).toEqual([])
    await at.clock.advance(0.1)
    expect(at.asking).toEqual(['C'])
  })

  test('I4 leaves its turn to others even while the head is still asking', async () => {
    const { at, askers } = await overAndParked()
    at.unlocked(KEY)
    await settled()
    void leaseOf(askers[0]!).release()
    await at.released(2)
    await at.attempt.answer(at.refused())
    await at.clock.advance(TURN)
    expect(at.asking).toEqual(['B'])
  })
})

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
  at.io.end(gone.waiter, undefined)
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

  test('a newcomer learns that it has to wait, and for which holder', async () => {
    const { at } = await unheard()
    const c = await at.ask({ id: 'C' })
    expect(at.told.at(-1)).toBe('waiting C')
    expect(c.waiter.refusal).toMatchObject({
      granted: false,
      position: 0,
      holder: { label: 'this client', since: at.clock.now() },
    })
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

  test('I4 a newcomer asks when the lock had to go back to Redis', async () => {
    const { at, lease } = await unheard()
    await at.ask({ id: 'C', lease: 1_000 })
    void lease.release()
    expect(at.asking).toEqual([])
    await at.released(0)
    expect(at.asking).toEqual(['C'])
  })

  test('I9 a waiter that Redis grants the lock may hand it on as well, so nobody else asks or listens', async () => {
    const { at, lease } = await unheard()
    const [c, d] = [await at.ask({ id: 'C', lease: 1_000 }), await at.ask({ id: 'D', lease: 1_000 })]
    void lease.release()
    await at.released(0)
    await at.grantNext(30_000)
    expect([leaseOf(c).held, at.asking, at.channels.users]).toEqual([true, [], {}])
    void leaseOf(c).release()
    expect(leaseOf(d).held).toBe(true)
  })

  test('I9 a newcomer does not ask when an older hold of this client has ended in Redis', async () => {
    const { at } = await unheard()
    await at.ask({ id: 'C' })
    at.table.of(KEY).released(0, at.clock.now())
    await settled()
    expect(at.asking).toEqual([])
  })

  test('a newcomer listens and takes turns if other clients listened when the lock went back to Redis', async () => {
    const { at, lease } = await unheard()
    await at.ask({ id: 'C', lease: 1_000 })
    void lease.release()
    await at.released(1)
    expect([at.asking, at.channels.users]).toEqual([[], { [`unlock of ${KEY}`]: 1 }])
    await at.clock.advance(TURN)
    expect(at.asking).toEqual(['C'])
  })

  test('I4 a newcomer asks when that lease is lost', async () => {
    const { at } = await unheard()
    await at.ask({ id: 'C' })
    at.holding.doubt('B')
    await at.clock.advance(0)
    await at.kind.renewals.next.answer([undefined])
    expect(at.asking).toEqual(['C'])
  })

  test('a newcomer does not park behind a lease whose release is under way', async () => {
    const { at, lease } = await unheard()
    void lease.release()
    await settled()
    expect(at.kind.releases.open.length).toBe(1)
    await at.ask({ id: 'C' })
    expect(at.asking).toEqual(['C'])
  })

  test('a fair waiter and a single attempt ask nevertheless', async () => {
    const { at } = await unheard()
    await at.ask({ id: 'F', mode: 'queue' })
    await at.ask({ id: 'O', mode: 'once' })
    expect(at.asking).toEqual(['F', 'O'])
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

describe('I4 a run is longer if no other client is known to wait:', () => {
  /**
   * Lets A release the lock in Redis, where `heard` clients receive the message. Then B is granted the lock, and C
   * waits behind B.
   */
  async function runOfB(heard: number, meanwhile: (at: HandingOn) => void = () => {}) {
    const at = new HandingOn()
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' })
    at.clock.block(4)
    void leaseOf(a!).release()
    await at.released(heard)
    meanwhile(at)
    await at.clock.advance(TURN)
    await at.grantNext(FIRST * 2)
    const c = await at.ask({ id: 'C' })
    return { at, lease: leaseOf(b!), c }
  }

  test.each([
    { what: 'nobody heard the last release', heard: 0, longest: 25 },
    { what: 'nobody but this client heard it', heard: 1, longest: 25 },
    { what: 'another client heard it', heard: 2, longest: 4 },
    {
      what: 'nobody heard it, but another client has released the lock since',
      heard: 0,
      meanwhile: (at: HandingOn) => at.unlocked(KEY),
      longest: 4,
    },
  ])('$what', async ({ heard, meanwhile, longest }) => {
    for (const ms of [longest - 0.1, longest]) {
      const { at, lease, c } = await runOfB(heard, meanwhile)
      at.clock.block(ms)
      void lease.release()
      expect([ms, c.lease !== undefined]).toEqual([ms, ms < longest])
    }
  })

  test('a refusal shows another client', async () => {
    const at = new HandingOn()
    const [a, b] = await at.run({ id: 'A' }, { id: 'B' })
    at.clock.block(4)
    void leaseOf(a!).release()
    await at.released(0)
    await at.attempt.answer(at.refused())
    await at.clock.advance(HEARTBEAT)
    await at.grantNext(FIRST * 2)
    const c = await at.ask({ id: 'C' })
    at.clock.block(4)
    void leaseOf(b!).release()
    expect(c.lease).toBeUndefined()
  })
})

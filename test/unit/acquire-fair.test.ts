/**
 * Tests fair waiters: they subscribe to their inbox, ask for the lock, and park. Their grant may then come in several
 * ways.
 */
import { describe, expect } from 'vitest'
import { surelyUntil } from '../../src/clock.ts'
import { LockConnectionError } from '../../src/errors.ts'
import type { Hold } from '../../src/key/hold.ts'
import { now } from './promises.ts'
import { HEARTBEAT, KEY, LEASE, NOTHING, test, Waiting } from './waiting.ts'

test('I4 a fair waiter listens to its inbox before it asks', async ({ at }) => {
  at.channels.slow = true
  await at.start({ id: 'A', mode: 'queue' })
  expect(at.channels.hearings.next.args).toEqual([KEY, 'inbox'])
  expect(at.asking).toEqual([])
  await at.channels.hearings.next.answer()
  expect(at.kind.attempts.next.args).toEqual([expect.objectContaining({ id: 'A' }), { join: true }])
})

test('I4 a fair waiter listens before it asks, also if its client has lost the connection since the waiter before', async () => {
  const at = new Waiting()
  await at.parkedFair({ id: 'A' })
  at.message('A', 100, 'handoff')
  at.channels.deafen()
  at.channels.slow = true
  await at.start({ id: 'B', mode: 'queue' })
  expect(at.asking).toEqual([])
  await at.channels.hearings.next.answer()
  expect(at.asking).toEqual(['B'])
})

test('I4 a grant by message settles the wait even if it comes before the refusal that was sent earlier', async () => {
  const at = new Waiting()
  const waiter = await at.start({ id: 'A', mode: 'queue' })
  expect(at.message('A', 7, 'handoff')).toBe(true)
  expect(await now(waiter.outcome)).toMatchObject({ granted: true, token: 7, via: 'handoff' })
  await at.kind.attempts.next.answer(at.refused({ position: 1, ticket: '5' }))
  expect(at.left).toEqual([])
  expect(at.residue).toEqual(NOTHING)
})

test('I1 the lease of a grant by message counts from when the request was sent, not from its answer', async () => {
  const at = new Waiting()
  const asked = at.clock.now()
  const waiter = await at.start({ id: 'A', mode: 'queue', lease: 4_000 })
  await at.clock.advance(500)
  await at.kind.attempts.next.answer(at.refused({ sent: asked, position: 1 }))
  at.message('A', 100, 'handoff')
  expect(await now(waiter.outcome)).toMatchObject({ deadline: surelyUntil(asked, 4_000) })
})

test('I1 a late message of a grant is not believed if that grant ended before the waiter joined again', async () => {
  const at = new Waiting()
  const waiter = await at.parkedFair({ id: 'A' })
  at.requests.look()
  await at.kind.tends.next.answer(at.tended([1], { clock: 200 }))
  at.message('A', 200, 'handoff')
  expect(await now(waiter.outcome)).toBe('pending')
  await at.kind.tends.next.answer(at.tended([1], { clock: 200 }))
  expect(await now(waiter.outcome)).toBe('pending')
  at.message('A', 201, 'handoff')
  expect(await now(waiter.outcome)).toMatchObject({ token: 201 })
})

/**
 * Parks a fair waiter, and later sends it a grant by message. The message does not say when the lease began, and more
 * than half of the lease may already be over.
 */
async function hardlyProven() {
  const at = new Waiting()
  const waiter = await at.parkedFair({ id: 'A', lease: 4_000 })
  await at.clock.advance(2_100)
  expect(at.message('A', 100, 'handoff')).toBe(true)
  expect(await now(waiter.outcome)).toBe('pending')
  return { at, waiter }
}

test('I1 a grant by message is checked with Redis before it is used, if too little of its lease is proven', async () => {
  const { at, waiter } = await hardlyProven()
  // The lock may have been granted again since the message (I2).
  const grant = at.granted({ token: 300, via: 'handoff' })
  await at.kind.tends.next.answer(at.tended([grant]))
  expect(await now(waiter.outcome)).toEqual(grant)
  expect(at.residue).toEqual(NOTHING)
})

test('I4 if a heartbeat was under way when the message came, another one follows', async ({ at }) => {
  const waiter = await at.parkedFair({ id: 'A', lease: 4_000 })
  await at.clock.advance(HEARTBEAT)
  at.message('A', 100, 'handoff')
  await at.kind.tends.next.answer(at.tended([1], { sent: at.clock.now() - 3_000 }))
  await at.kind.tends.next.answer(at.tended([at.granted({ token: 100, via: 'handoff' })]))
  expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
})

test('I4 a message that comes before the ticket is checked as soon as there is a ticket', async ({ at }) => {
  const waiter = await at.start({ id: 'A', mode: 'queue', lease: 4_000 })
  await at.clock.advance(2_100)
  at.message('A', 100, 'handoff')
  await at.kind.attempts.next.answer(at.refused({ position: 1, ticket: 'ticket of A' }))
  await at.kind.tends.next.answer(at.tended([at.granted({ token: 100, via: 'handoff' })]))
  expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
})

test('I1 a grant under way is checked with Redis before it is used, if the clock was in doubt meanwhile', async ({
  at,
}) => {
  const [message, reply] = [await at.parkedFair({ id: 'A' }), await at.parkedFair({ id: 'B' }, 2)]
  const theirs = at.granted({ token: 101, via: 'handoff' })
  at.clock.fallBehind(LEASE)
  expect(at.message('A', 100, 'handoff')).toBe(true)
  expect(at.table.granted('B', theirs, at.clock.now())).toBe(true)
  expect([await now(message.outcome), await now(reply.outcome)]).toEqual(['pending', 'pending'])
  // The lease of A has ended meanwhile, that of B has not.
  await at.kind.tends.next.answer(at.tended([1, at.granted({ token: 101, via: 'handoff' })]))
  expect([await now(message.outcome), await now(reply.outcome)]).toMatchObject(['pending', { token: 101 }])
})

test('I1 a doubt of the clock that is shorter than the lease takes no grant away', async ({ at }) => {
  const waiter = await at.parkedFair({ id: 'A' })
  at.clock.fallBehind(LEASE / 2)
  expect(at.message('A', 100, 'handoff')).toBe(true)
  expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
  // Redis is asked about it.
  await at.clock.advance(0)
  expect(at.kind.renewals.count).toBe(1)
})

test('I1 a grant that turns out to be gone is not used', async () => {
  const { at, waiter } = await hardlyProven()
  await at.kind.tends.next.answer(at.tended([1]))
  expect(await now(waiter.outcome)).toBe('pending')
})

test('I7 a grant that is being checked is given back if its waiter gives up', async () => {
  const { at, waiter } = await hardlyProven()
  at.requests.end(waiter, undefined)
  await at.kind.leaves.next.answer()
  await at.kind.tends.next.answer(at.tended([at.granted({ token: 100 })]))
  expect(at.left).toEqual(['A', 'A'])
})

test('a grant in the answer to this client’s own release needs no message', async ({ at }) => {
  const waiter = await at.parkedFair({ id: 'A' })
  const grant = at.granted({ token: 9, via: 'handoff' })
  expect(at.table.granted('A', grant, at.clock.now())).toBe(true)
  expect(await now(waiter.outcome)).toEqual(grant)
  expect(at.residue).toEqual(NOTHING)
})

test('I1 a grant in a late answer is checked once before it is used, because a lease may be shorter than any round trip', async () => {
  const at = new Waiting()
  const waiter = await at.parkedFair({ id: 'A' })
  const late = () => at.granted({ token: 100, via: 'handoff', deadline: at.clock.now() })
  expect(at.table.granted('A', late(), at.clock.now())).toBe(true)
  expect(await now(waiter.outcome)).toBe('pending')
  expect(at.kind.tends.count).toBe(1)
  await at.kind.tends.next.answer(at.tended([late()]))
  expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
  expect(at.kind.tends.count).toBe(1)
  expect(at.residue).toEqual(NOTHING)
})

test('I7 if a repeated request queues its waiter after the waiter’s hold was released, the waiter is taken back', async () => {
  const at = new Waiting()
  const waiter = await at.start({ id: 'A', mode: 'queue' })
  at.message('A', 100, 'handoff')
  expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
  at.ended('A')
  await at.kind.attempts.next.answer(at.refused({ position: 1, ticket: '5' }))
  expect(at.left).toEqual(['A'])
})

test('a grant for an id that does not wait is refused, and the caller of the method learns that', async ({ at }) => {
  await at.parkedFair({ id: 'A' })
  expect(at.message('B', 2, 'handoff')).toBe(false)
  expect(at.table.granted('B', at.granted(), at.clock.now())).toBe(false)
})

test('I5 an unfair waiter takes no grant by message, because it has not asked for one', async ({ at }) => {
  const a = await at.parkedHead({ id: 'A' })
  expect(at.message('A', 2, 'handoff')).toBe(true)
  expect(a.waits).toBe(true)
})

describe('I5 the live lease is not given back if its grant is reported again', () => {
  /** Grants a waiter the lock by message while two requests about this waiter are unanswered. */
  async function grantedMeanwhile() {
    const at = new Waiting()
    const waiter = await at.parkedFair({ id: 'A' })
    at.requests.look()
    at.message('A', 100, 'handoff')
    expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
    return at
  }

  test('by the answer to the request that joined the queue', async ({ at }) => {
    const waiter = await at.start({ id: 'A', mode: 'queue' })
    at.message('A', 100, 'handoff')
    await at.kind.attempts.next.answer(at.granted({ token: 100 }))
    await at.clock.advance(100)
    expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
    expect(at.left).toEqual([])
  })

  test('by the answer to the release that passed the lock on, after a heartbeat has found it', async ({ at }) => {
    const first = await at.start({ id: 'first' })
    await at.kind.attempts.next.answer(at.granted({ token: 99 }))
    await first.outcome
    const waiter = await at.parkedFair({ id: 'A' })
    at.holding.release(at.table.hold('first') as Hold)
    at.requests.look()
    await at.kind.tends.next.answer(at.tended([at.granted({ token: 100 })]))
    expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
    const successors = [{ id: 'A', grant: at.granted({ token: 100, via: 'handoff' }) }]
    await at.kind.releases.next.answer({ ended: true, successors })
    expect(at.kind.returns.count).toBe(0)
  })

  test.each(['queued', 'granted'] as const)(
    'but if a heartbeat ran after the release and found it %s again, that is undone',
    async how => {
      const at = await grantedMeanwhile()
      at.ended('A')
      await at.kind.tends.next.answer(at.tended([how === 'queued' ? 1 : at.granted({ token: 101 })]))
      await at.clock.advance(100)
      expect(at.left).toEqual(['A'])
    },
  )
})

test('I6 an owner with a name needs two channels: if neither can be heard, its wait ends with the first error', async () => {
  const at = new Waiting()
  at.channels.slow = true
  const deaf = await at.start({ id: 'A', mode: 'queue', owner: 'somebody', mayReenter: true })
  const error = new LockConnectionError('refused')
  await at.channels.hearings.next.fail(error)
  expect(await now(deaf.outcome)).toBe(error)
  await at.channels.hearings.next.fail(new LockConnectionError('refused, too'))
  expect(at.asking).toEqual([])
})

describe('I2 if a grant was taken away before its reply came,', () => {
  test('the waiter asks again, because the same id may have been granted the lock since', async ({ at }) => {
    const a = await at.start({ id: 'A' })
    at.lost('A', 7)
    await at.kind.attempts.next.answer(at.granted({ token: 7 }))
    expect(a.waits).toBe(true)
    await at.kind.attempts.next.answer(at.granted({ token: 9 }))
    expect(await a.outcome).toMatchObject({ token: 9 })
  })

  test('a single attempt takes it, and then Redis is asked about the lease', async ({ at }) => {
    const a = await at.start({ id: 'A', mode: 'once' })
    at.lost('A', 7)
    await at.kind.attempts.next.answer(at.granted({ token: 7 }))
    expect(await a.outcome).toMatchObject({ token: 7 })
    await at.clock.advance(0)
    expect(at.kind.renewals.count).toBe(1)
  })

  test('the waiter asks only once more, even if the message of the loss was forged', async ({ at }) => {
    const a = await at.start({ id: 'A' })
    at.lost('A', Number.MAX_SAFE_INTEGER)
    for (let i = 0; i < 2; i++) await at.kind.attempts.next.answer(at.granted({ token: 7 }))
    expect(await a.outcome).toMatchObject({ token: 7 })
    await at.clock.advance(0)
    expect(at.kind.renewals.count).toBe(0)
  })
})

/**
 * Tests callers that give up: their calls settle at once, and their requests are taken back in the background (I6, I7).
 */
import { describe, expect } from 'vitest'
import { LockClosedError, LockConnectionError } from '../../src/errors.ts'
import { now, settled } from './promises.ts'
import { HEARTBEAT, KEY, LEASE, NOTHING, test, WAITER_TTL, Waiting } from './waiting.ts'

const unreachable = new LockConnectionError('out of reach')

describe('I6 a caller that gives up gets its answer at once', () => {
  test.for(['once', 'line', 'queue'] as const)('while its first request is unanswered: %s', async (mode, { at }) => {
    const waiter = await at.start({ id: 'A', mode })
    at.requests.end(waiter, undefined)
    expect(await now(waiter.outcome)).toBeUndefined()
    expect(at.left).toEqual(['A'])
  })
})

describe('I7 a request that fails after its caller has given up', () => {
  test.for(['once', 'line', 'queue'] as const)(
    'may have run after it was taken back, so it is taken back again: %s',
    async (mode, { at }) => {
      const waiter = await at.start({ id: 'A', mode })
      at.requests.end(waiter, undefined)
      await at.kind.leaves.next.answer()
      await at.kind.attempts.next.fail(unreachable)
      expect(at.left).toEqual(['A', 'A'])
      await at.kind.leaves.next.answer()
      expect(at.residue).toEqual(NOTHING)
    },
  )
})

describe('I7 taking back', () => {
  test('is repeated until Redis has answered, and not after that', async ({ at }) => {
    at.requests.end(await at.parkedFair({ id: 'A' }), undefined)
    for (let failures = 1; failures <= 3; failures++) {
      expect(at.kind.leaves.count).toBe(failures)
      await at.kind.leaves.next.fail(unreachable)
      await at.clock.advance(1_000)
    }
    await at.kind.leaves.next.answer()
    await at.clock.advance(10_000)
    expect(at.kind.leaves.count).toBe(4)
    expect(at.failures).toEqual([])
    expect(at.residue).toEqual(NOTHING)
  })

  test('stops and is reported as failed when everything has expired on its own', async ({ at }) => {
    at.requests.end(await at.parkedFair({ id: 'A' }), undefined)
    await at.kind.leaves.next.fail(unreachable)
    await at.clock.advance(1_000)
    expect(at.failures).toEqual([])
    at.clock.block(LEASE + WAITER_TTL)
    await at.kind.leaves.next.fail(unreachable)
    await at.clock.advance(10_000)
    expect(at.failures).toEqual([unreachable])
    expect(at.kind.leaves.count).toBe(2)
  })

  // This test fails if `if (error instanceof LockConnectionError) waiter.told = 'failure'` is removed in src/key/key.ts.
  test('is not reported as failed after a call that was rejected for such a failure', async ({ at }) => {
    const waiter = await at.start({ id: 'A' })
    await at.kind.attempts.next.fail(unreachable)
    at.clock.block(LEASE + WAITER_TTL)
    await at.kind.leaves.next.fail(unreachable)
    expect(await now(waiter.outcome)).toBe(unreachable)
    expect(at.failures).toEqual([])
  })

  // This test fails if `waiter.told = 'failure'` is removed in src/key/withdrawals.ts.
  test('that fails twice is reported as failed once', async ({ at }) => {
    const waiter = await at.parkedFair({ id: 'A' })
    await at.clock.advance(HEARTBEAT)
    at.requests.end(waiter, undefined)
    await at.kind.tends.next.answer(at.tended([1]))
    at.clock.block(LEASE + WAITER_TTL)
    expect(at.kind.leaves.open).toHaveLength(2)
    for (const call of at.kind.leaves.open) await call.fail(unreachable)
    expect(at.failures).toEqual([unreachable])
  })

  test('is repeated if the request runs after it and is queued', async ({ at }) => {
    const waiter = await at.start({ id: 'A', mode: 'queue' })
    at.requests.end(waiter, undefined)
    await at.kind.leaves.next.answer()
    await at.kind.attempts.next.answer(at.refused({ position: 1, ticket: '5' }))
    expect(at.left).toEqual(['A', 'A'])
    expect(at.told).toEqual([])
  })

  test('is repeated if a heartbeat runs after it and joins the queue again or finds a grant', async ({ at }) => {
    const waiters = [await at.parkedFair({ id: 'A' }), await at.parkedFair({ id: 'B' })]
    at.requests.look()
    for (const waiter of waiters) at.requests.end(waiter, undefined)
    for (const call of at.kind.leaves.open) await call.answer()
    await at.kind.tends.next.answer(at.tended([1, at.granted({ via: 'handoff' })]))
    expect(at.left).toEqual(['A', 'B', 'A', 'B'])
  })

  test('does not touch a grant that the caller has received: it is a lease by then, and is released', async () => {
    const at = new Waiting()
    const waiter = await at.parkedFair({ id: 'A' })
    at.message('A', 100, 'handoff')
    expect(at.table.hold('A')).toBeDefined()
    at.requests.end(waiter, undefined)
    await settled()
    expect(at.left).toEqual([])
    expect(await now(waiter.outcome)).toMatchObject({ token: 100 })
  })
})

// This test fails if `if (used) this.#withdrawals.release(claim)` becomes `if (!claim) this.#withdrawals.release(claim)`
// in src/key/requests.ts.
test('a hold that has ended is released, and not taken back, if its first request fails: its minHold lasts', async ({
  at,
}) => {
  await at.start({ id: 'A', mode: 'queue', minHold: 60_000 })
  at.message('A', 100, 'handoff')
  at.ended('A')
  await at.kind.attempts.next.fail(unreachable)
  expect(at.kind.releases.all.map(({ args: [hold] }) => hold)).toMatchObject([{ id: 'A', minHold: 60_000 }])
  expect(at.left).toEqual([])
})

/** Starts a waiter that joins the queue while its unfair attempt is unanswered. */
async function twoAttempts() {
  const at = new Waiting()
  const waiter = await at.parkedHead({ id: 'A', fairAfter: 1_000 })
  at.unlocked(KEY)
  await at.clock.advance(1_000)
  const [unfair, fair] = at.kind.attempts.open
  expect([unfair?.args[1], fair?.args[1]]).toEqual([{ reserve: expect.any(Number) }, { join: true }])
  return { at, waiter, unfair: unfair!, fair: fair! }
}

describe('I7 a waiter that goes into the queue while its unfair attempt is still unanswered', () => {
  test('is taken back if it gives up after the refusal of the unfair attempt', async () => {
    const { at, waiter, unfair } = await twoAttempts()
    await unfair.answer(at.refused())
    at.requests.end(waiter, undefined)
    expect(at.left).toEqual(['A'])
  })

  test('keeps its place when the unfair attempt is refused last, and is taken back if it gives up then', async () => {
    const { at, waiter, unfair, fair } = await twoAttempts()
    await fair.answer(at.refused({ position: 3, ticket: '5' }))
    await unfair.answer(at.refused())
    expect(waiter.refusal).toMatchObject({ position: 3 })
    at.requests.end(waiter, undefined)
    expect(at.left).toEqual(['A'])
  })

  test('is granted once when both attempts are granted', async () => {
    const { at, waiter, unfair, fair } = await twoAttempts()
    await unfair.answer(at.granted({ token: 4 }))
    await fair.answer(at.granted({ token: 4 }))
    await at.clock.advance(100)
    expect(await now(waiter.outcome)).toMatchObject({ token: 4 })
    expect(at.left).toEqual([])
  })
})

describe('close', () => {
  test.each([{ mode: 'once' as const }, { owner: 'me', mayReenter: true }])(
    'I7 takes back a first attempt that is under way, and waits for that: %j',
    async ask => {
      const at = new Waiting()
      const waiter = await at.start({ id: 'A', ...ask })
      const closed = at.close()
      expect(await now(waiter.outcome)).toBeInstanceOf(LockClosedError)
      expect(at.left).toEqual(['A'])
      expect(await now(closed)).toBe('pending')
      await at.kind.leaves.next.answer()
      await closed
    },
  )

  test('does not repeat what fails, and reports it', async ({ at }) => {
    await at.parkedFair({ id: 'A' })
    const closed = at.close()
    const error = new LockClosedError(KEY)
    await at.kind.leaves.next.fail(error)
    expect(await now(closed)).toBeUndefined()
    expect(at.failures).toEqual([error])
    expect(at.kind.leaves.count).toBe(1)
  })
})

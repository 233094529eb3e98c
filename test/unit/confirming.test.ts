/** Tests waiters whose grants count only after replicas confirm them, and what happens if no confirmation comes. */
import { expect, test } from 'vitest'
import { surelyUntil } from '../../src/clock.ts'
import { LockClosedError, LockConnectionError } from '../../src/errors.ts'
import { FakeKind } from './fake-kind.ts'
import { now } from './promises.ts'
import { KEY, LEASE, NOTHING, OUTAGE, Waiting } from './waiting.ts'

function replicated() {
  const kind = new FakeKind(true)
  return { at: new Waiting(kind), confirmations: kind.confirmations }
}

test('I1 a confirmed lease counts for no longer than was asked for, even if the server’s clock was set back', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A' })
  await at.kind.attempts.next.answer(at.granted({ deadline: at.clock.now() + LEASE / 2 }))
  const asked = at.clock.now()
  await confirmations.next.answer(asked + LEASE + 60_000)
  expect(await waiter.outcome).toMatchObject({ deadline: asked + LEASE })
})

test('I1 a confirmation that was under way while the clock was in doubt counts for nothing', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A' })
  await at.kind.attempts.next.answer(at.granted())
  const asked = at.clock.now()
  at.clock.fallBehind(LEASE)
  await confirmations.next.answer(surelyUntil(asked, LEASE))
  expect(await now(waiter.outcome)).toBe('pending')
  await at.kind.attempts.next.answer(at.granted())
  await confirmations.next.answer(at.clock.now() + LEASE)
  expect(await now(waiter.outcome)).toMatchObject({ granted: true })
})

test('I6 a single attempt whose grant is gone ends, and what it left in Redis is taken back', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A', mode: 'once' })
  await at.kind.attempts.next.answer(at.granted())
  await confirmations.next.answer('lost')
  await expect(waiter.outcome).rejects.toThrow(LockConnectionError)
  expect(at.left).toEqual(['A'])
  await at.kind.leaves.next.answer()
  expect(at.residue).toEqual(NOTHING)
})

test('I6 a wait ends if its grants expire again and again because the replicas answer more slowly than the leases last', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A' })
  const begin = at.clock.now()
  while (waiter.waits && at.clock.now() < begin + 2 * OUTAGE) {
    await at.kind.attempts.next.answer(at.granted())
    await at.clock.advance(500)
    await confirmations.next.answer('lost')
  }
  await expect(waiter.outcome).rejects.toThrow('the lock was not replicated')
  expect(at.clock.now() - begin).toBeGreaterThanOrEqual(OUTAGE)
  for (const call of at.kind.attempts.open) await call.answer(at.refused())
  await at.kind.leaves.next.answer()
  expect(at.residue).toEqual(NOTHING)
})

// According to performance.now(), a timer of Node may fire up to 1 ms early.
test('I6 a wait ends, and does not ask again, if its confirmation fails 1 ms before its patience is over', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A' })
  await at.kind.attempts.next.answer(at.granted())
  await at.clock.advance(OUTAGE - 1)
  await confirmations.next.fail(new LockConnectionError('no answer'))
  await expect(waiter.outcome).rejects.toThrow('no answer')
  await at.kind.leaves.next.answer()
  expect(at.residue).toEqual(NOTHING)
})

test('I2 a grant does not count if the same waiter was granted the lock again, and Redis is asked about that newer grant', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A', mode: 'queue' })
  await at.kind.attempts.next.answer(at.granted({ token: 100 }))
  expect(confirmations.next.args).toEqual([{ hold: { key: KEY, id: 'A' }, token: 100 }])
  await confirmations.next.answer('replaced')
  await at.kind.attempts.next.answer(at.granted({ token: 102 }))
  await confirmations.next.answer(at.clock.now() + LEASE)
  expect(await waiter.outcome).toMatchObject({ token: 102 })
})

test('I7 a single attempt that is being confirmed when the client closes is taken back', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A', mode: 'once' })
  await at.kind.attempts.next.answer(at.granted())
  const closed = at.io.close()
  expect(await now(waiter.outcome)).toBeInstanceOf(LockClosedError)
  await confirmations.next.answer(at.clock.now() + LEASE)
  expect(at.left).toEqual(['A'])
  expect(at.table.holds.size).toBe(0)
  await at.kind.leaves.next.answer()
  await closed
})

test('I2 a confirmation does not count once a newer grant to the same waiter is known', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.parkedFair({ id: 'A' })
  at.message('A', 100, 'handoff')
  // In this scenario, a forced release ends A's grant with token 100, and A joins the queue again. Another client takes
  // the lock with token 101. The release of that client then grants the lock to A.
  at.io.look()
  await at.kind.tends.next.answer(at.tended([1], { clock: 101 }))
  at.message('A', 102, 'handoff')
  await confirmations.next.answer(at.clock.now() + LEASE)
  expect(await now(waiter.outcome)).toBe('pending')

  at.io.look()
  for (const call of at.kind.tends.open)
    await call.answer(at.tended([at.granted({ token: 102, via: 'handoff' })], { clock: 102 }))
  for (const call of at.kind.attempts.open) await call.answer(at.granted({ token: 102 }))
  await confirmations.next.answer(at.clock.now() + LEASE)
  expect(await waiter.outcome).toMatchObject({ token: 102 })
})

test.each(['line', 'queue'] as const)(
  'I9 after replicas have refused, they are asked again only after a pause: %s',
  async mode => {
    const { at, confirmations } = replicated()
    await at.start({ id: 'A', mode })
    const grant = async () => {
      for (const call of at.kind.attempts.open) await call.answer(at.granted())
      for (const call of at.kind.tends.open) await call.answer(at.tended([at.granted()]))
    }
    await grant()
    await confirmations.next.fail(new LockConnectionError('refused'))
    await at.kind.leaves.next.answer()
    await at.clock.advance(20)
    await grant()
    expect(confirmations.count).toBe(1)
    await at.clock.advance(100)
    await grant()
    expect(confirmations.count).toBe(2)
  },
)

// A new master may have a grant that was taken back at the old one. Its clock may also be behind, so that its next token
// is larger than that of this grant, but smaller than the last one that the waiter has seen.
test.each(['line', 'queue'] as const)(
  'I2 I4 a grant that was taken back, and that a new master has nevertheless, is taken back there, and the next one counts: %s',
  async mode => {
    const { at, confirmations } = replicated()
    const waiter = await at.start({ id: 'A', mode })
    const grant = async (token: number, confirm: () => Promise<void>) => {
      for (const call of at.kind.attempts.open) await call.answer(at.granted({ token }))
      for (const call of at.kind.tends.open) await call.answer(at.tended([at.granted({ token })]))
      expect(confirmations.next.args[0].token).toBe(token)
      await confirm()
    }
    const confirm = () => confirmations.next.answer(at.clock.now() + LEASE)
    const takenBack = async () => {
      await at.kind.leaves.next.answer()
      await at.clock.advance(100)
    }
    for (const token of [100, 200]) {
      await grant(token, () => confirmations.next.fail(new LockConnectionError('too few replicas')))
      await takenBack()
      await grant(100, confirm)
      expect(await now(waiter.outcome)).toBe('pending')
      expect([at.kind.attempts.open, at.kind.tends.open]).toEqual([[], []])
      await takenBack()
    }
    await grant(150, confirm)
    expect(await waiter.outcome).toMatchObject({ token: 150 })
  },
)

test('I9 an unfair waiter that is alone asks once, and subscribes to nothing, while its grant is confirmed', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A' })
  await at.kind.attempts.next.answer(at.granted())
  const cost = () => [at.kind.attempts.count, at.channels.users]
  expect(cost()).toEqual([1, {}])
  await confirmations.next.answer(at.clock.now() + LEASE)
  expect(await waiter.outcome).toMatchObject({ token: 1 })
  expect(cost()).toEqual([1, {}])
  expect(at.residue).toEqual(NOTHING)
})

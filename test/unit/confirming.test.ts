/** Grants that count only once replicas have them: how a wait goes on, or ends, where they do not. */
import { expect, test } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import { FakePrimitive } from './fake-primitive.ts'
import { LEASE, NOTHING, OUTAGE, Waiting } from './waiting.ts'

function replicated() {
  const primitive = new FakePrimitive()
  const { confirmations } = primitive
  const at = new Waiting(Object.assign(primitive, { confirm: confirmations.make.bind(confirmations) }))
  return { at, confirmations }
}

test('I1 a confirmation is believed for no longer than was asked for: the server’s clock may stand back', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A' })
  await at.primitive.attempts.next.answer(at.granted({ deadline: at.clock.now() + LEASE / 2 }))
  const asked = at.clock.now()
  await confirmations.next.answer(asked + LEASE + 60_000)
  expect(await waiter.outcome).toMatchObject({ deadline: asked + LEASE })
})

test('I6 a single attempt whose grant is gone has ended, and takes back what may have become of it', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A', mode: 'once' })
  await at.primitive.attempts.next.answer(at.granted())
  await confirmations.next.answer(undefined)
  await expect(waiter.outcome).rejects.toThrow(LockConnectionError)
  expect(at.left).toEqual(['A'])
  await at.primitive.leaves.next.answer()
  expect(at.residue).toEqual(NOTHING)
})

test('I6 a wait whose grants are gone again and again, because they are shorter than the way to the replicas, ends', async () => {
  const { at, confirmations } = replicated()
  const waiter = await at.start({ id: 'A' })
  const begin = at.clock.now()
  while (waiter.state === 'waiting' && at.clock.now() < begin + 2 * OUTAGE) {
    await at.primitive.attempts.next.answer(at.granted())
    await at.clock.advance(500)
    await confirmations.next.answer(undefined)
  }
  await expect(waiter.outcome).rejects.toThrow('the lock was not replicated')
  expect(at.clock.now() - begin).toBeGreaterThanOrEqual(OUTAGE)
  for (const call of at.primitive.attempts.open) await call.answer(at.refused())
  await at.primitive.leaves.next.answer()
  expect(at.residue).toEqual(NOTHING)
})

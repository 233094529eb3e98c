/** Tests unfair waiters of a lock that several callers may hold: which of them ask, and how many at once (I4, I9). */
import { expect, test } from 'vitest'
import { FakeKind } from './fake-kind.ts'
import { settled } from './promises.ts'
import { KEY, Waiting } from './waiting.ts'

/** Parks `count` unfair waiters of one client. The first one has asked for the lock and was refused. */
async function parked(count: number): Promise<Waiting> {
  const at = new Waiting(new FakeKind({ shared: true }))
  await at.parkedHead({ id: 'w0' })
  for (let i = 1; i < count; i++) await at.start({ id: `w${i}` })
  return at
}

/**
 * Grants the lock to all waiters that ask, in rounds, until no waiter asks. Returns how many waiters asked in each
 * round.
 */
async function rounds(at: Waiting): Promise<number[]> {
  const sizes: number[] = []
  while (at.kind.attempts.open.length > 0) {
    sizes.push(at.kind.attempts.open.length)
    for (const attempt of [...at.kind.attempts.open]) await attempt.answer(at.granted())
  }
  return sizes
}

test('I4 after a wake-up all of them ask, more at once in each round as long as nobody is refused', async () => {
  const at = await parked(20)
  at.unlocked(KEY)
  await settled()
  expect(await rounds(at)).toEqual([1, 1, 2, 4, 8, 4])
  expect(at.table.keys.get(KEY)?.waiting ?? 0).toBe(0)
})

test('I9 the first refusal ends the round, and one waiter asks at the next wake-up', async () => {
  const at = await parked(20)
  at.unlocked(KEY)
  await settled()
  for (let i = 0; i < 2; i++) await at.kind.attempts.next.answer(at.granted())
  const [first, second] = [...at.kind.attempts.open]
  await first!.answer(at.refused())
  expect(at.kind.attempts.open).toEqual([second])
  await second!.answer(at.granted())
  expect(at.kind.attempts.open).toEqual([])
  at.unlocked(KEY)
  await settled()
  expect(at.kind.attempts.open.length).toBe(1)
})

test('I4 an attempt that fails does not end the round of the others', async () => {
  const at = await parked(20)
  at.unlocked(KEY)
  await settled()
  for (let i = 0; i < 2; i++) await at.kind.attempts.next.answer(at.granted())
  const [first, second] = [...at.kind.attempts.open]
  await first!.fail(new Error('refused by the server'))
  expect(at.kind.attempts.open).toEqual([second])
  await second!.answer(at.granted())
  expect(at.kind.attempts.open.length).toBe(1)
  expect(await rounds(at)).toEqual([1, 2, 4, 8, 1])
})

test('a wake-up during a round is used when the round is over', async () => {
  const at = await parked(3)
  at.unlocked(KEY)
  await settled()
  at.unlocked(KEY)
  await settled()
  expect(at.kind.attempts.open.length).toBe(1)
  await at.kind.attempts.next.answer(at.refused())
  expect(at.kind.attempts.open.length).toBe(1)
})

test('I4 I9 if the head wanted more than was free and gives up, the next waiter asks; but not if it wants the same', async () => {
  const at = new Waiting(new FakeKind({ shared: true }))
  const large = await at.parkedHead({ id: 'large', wants: '2/2' })
  const small = await at.start({ id: 'small', wants: '1/2' })
  await at.start({ id: 'another', wants: '1/2' })
  at.requests.end(large, undefined)
  await settled()
  expect(at.asking).toEqual(['small'])
  await at.kind.attempts.next.answer(at.refused())
  at.requests.end(small, undefined)
  await settled()
  expect(at.asking).toEqual([])
})

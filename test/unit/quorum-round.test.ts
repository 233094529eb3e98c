/** Tests when a round of questions to the servers of a quorum is over. */
import { expect, test } from 'vitest'
import type { Member } from '../../src/compose/quorum/member.ts'
import { Round } from '../../src/compose/quorum/round.ts'
import { FakeClock } from './fake-clock.ts'

// This test fails if `if (this.#ended) return` is removed from src/compose/quorum/round.ts: the answer starts a timer
// that lasts three times as long as the round.
test('I7: an answer that arrives after the end of a round starts no timer, even if it makes the result open again', () => {
  const clock = new FakeClock()
  const round = new Round(
    Array.from({ length: 5 }, () => ({}) as Member),
    3,
    clock,
  )
  clock.block(5_000)
  for (const server of [0, 1, 2]) round.answered(server, true)
  round.answered(3, false)
  expect(clock.armed).toBe(0)
})

/** Tests when a round of questions to the servers of a quorum is over. */
import { expect, test } from 'vitest'
import { type Electorate, Round } from '../../src/compose/quorum/round.ts'
import { member } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'

// This test fails if `if (this.#ended) return` is removed from src/compose/quorum/round.ts: the answer starts a timer
// that lasts three times as long as the round.
test('I7: an answer that arrives after the end of a round starts no timer, even if it makes the result open again', () => {
  const clock = new FakeClock()
  const electorate = { members: [0, 1, 2, 3, 4].map(() => member), majority: 3, clock } as unknown as Electorate
  let open = false
  const round = new Round(electorate, { verdict: enough => (enough && !open ? 'over' : 'open') })
  clock.block(5_000)
  for (const server of [0, 1, 2]) round.answered(server)
  open = true
  round.answered(3)
  expect(clock.armed).toBe(0)
})

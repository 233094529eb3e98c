/** Tests the floor for tokens, with a clock that the test moves. */
import { expect, test } from 'vitest'
import { Floor } from '../../src/compose/quorum/eligibility.ts'

// This test fails if `const MEMORY = 600_000` becomes `const MEMORY = 10_000` in src/compose/quorum/eligibility.ts: the first
// grant after a pause takes two round trips.
test('I9: the floor of a call after a pause is ahead of the servers, and follows a clock that was set right', () => {
  let now = 0
  const floor = new Floor(
    () => now,
    3,
    () => {},
  )
  const read = (step = 0) => {
    for (const server of [0, 1, 2]) floor.reading(server, (now + step) * 1_000, now)
  }
  const ahead = () => floor.next / 1_000 - now
  for (const pause of [0, 20_000, 300_000]) {
    read()
    now += pause
    expect(ahead()).toBeCloseTo(5)
  }
  const hour = 3_600_000
  read(hour)
  expect(ahead()).toBeCloseTo(hour + 5)
  read()
  expect(ahead()).toBeCloseTo(5)
})

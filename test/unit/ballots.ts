/** Makes the ballots of a quorum. The servers are made by the test. */
import type { Clock } from '../../src/clock.ts'
import { Ballots } from '../../src/compose/quorum/ballots.ts'
import { Floor } from '../../src/compose/quorum/floor.ts'
import type { Place } from '../../src/compose/quorum/place.ts'

/** Returns the ballots of a client of these servers. The client never learns the time of day of any server. */
export function ballotsOver(places: readonly unknown[], clock: Clock): Ballots {
  const now = () => clock.now()
  const floor = new Floor(now, places.length, () => {})
  return new Ballots(places as readonly Place[], clock, floor, 9_000, { won: () => {}, asks: () => {} })
}

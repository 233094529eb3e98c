/** Makes `Ballots`, which keep a client's claims on a quorum and the servers' votes for these claims. */
import type { Clock } from '../../src/clock.ts'
import { Ballots } from '../../src/compose/quorum/ballots.ts'
import { Floor } from '../../src/compose/quorum/floor.ts'
import type { Place } from '../../src/compose/quorum/member.ts'

/**
 * `places` are fake servers that the test has made. The floor never reads the servers' clocks, so the client knows no
 * server's time of day.
 */
export function ballotsOver(places: readonly unknown[], clock: Clock): Ballots {
  const now = () => clock.now()
  const floor = new Floor(now, places.length, () => {})
  return new Ballots(places as readonly Place[], clock, floor, 9_000, {
    won: () => {},
    refused: () => {},
  })
}

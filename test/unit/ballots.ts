/** Makes `Ballots`, which keep a client's claims on a quorum and the servers' votes for these claims. */
import type { Clock } from '../../src/clock.ts'
import { Ballots } from '../../src/compose/quorum/ballots.ts'
import { Floor } from '../../src/compose/quorum/eligibility.ts'
import { QuorumKind } from '../../src/compose/quorum/kind.ts'
import type { Electorate } from '../../src/compose/quorum/round.ts'
import { Waiters } from '../../src/compose/quorum/waiters.ts'

/** A server that is connected, and whose votes count. */
export const member = {
  up: true,
  counts: true,
  epoch: 0,
  drop: () => false,
  keeps: () => false,
  whenReady: (_: object, _wanted: string, turn: () => void) => turn(),
}

/**
 * `places` are fake servers that the test has made, with the fake mutex on each. The floor never reads the servers' clocks,
 * so the client knows no server's time of day.
 */
export function quorumOver(places: readonly { member: object; kind?: object; vote?: unknown }[], clock: Clock) {
  const now = () => clock.now()
  const floor = new Floor(now, places.length, () => {})
  const members = places.map(({ member, kind, vote }, index) =>
    Object.assign(Object.create(member), { index, kind: { ...kind, vote } }),
  )
  const of: Electorate = { members, majority: Math.floor(places.length / 2) + 1, clock }
  const ballots = new Ballots(of, 9_000, {
    won: () => {},
    denied: () => {},
    waits: ballot => waiters.hope(ballot),
  })
  const waiters = new Waiters(ballots)
  const kind = new QuorumKind(ballots, waiters, floor, { lease: 30_000, outageTimeout: 0 })
  return { ballots, waiters, kind }
}

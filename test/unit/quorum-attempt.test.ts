/** Tests what an attempt on a quorum waits for. */
import { expect, test } from 'vitest'
import type { Claim, Granted, Refused } from '../../src/kind.ts'
import { member, quorumOver } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'
import { now } from './promises.ts'

const claim: Claim = { key: 'k', id: 'id', owner: 'id', label: '', lease: 600, headStart: 0 }

// This test fails if `if (votes.length < this.majority) return` becomes `if (votes.length < ballot.seats.length) return` in
// src/compose/quorum/ballots.ts.
test('I4: the answers of a majority decide, whatever a slow server does', async () => {
  const clock = new FakeClock()
  const places = [0, 1, 2].map(server => ({
    member,
    kind: { leave: async () => {} },
    vote: () => {
      const granted = { granted: true, token: 1_000, deadline: clock.now() + 600, via: 'immediate' }
      return server === 2 ? new Promise(() => {}) : Promise.resolve(granted)
    },
  }))
  const { kind } = quorumOver(places, clock)
  const answer = new Promise<Granted | Refused>((done, failed) =>
    kind.attempt(claim, 'try', 0, false, { done, failed }),
  )
  // No time passes.
  expect(await now(answer)).toMatchObject({ granted: true, token: 1_000 })
})

/** Server 0 has voted, and the others count only when most of the lease of its vote has passed. */
// This test fails if `return waits ? await this.#refreshed(ballot, attempted) : attempted` becomes `return attempted` in
// src/compose/quorum/kind.ts: the caller gets a lease that is nearly over.
test('I8: a grant that had to wait until servers counted is renewed before the caller gets it', async () => {
  const clock = new FakeClock()
  const later: (() => void)[] = []
  const young = {
    ...member,
    counts: false,
    whenReady: (_: object, _wanted: string, turn: () => void) => later.push(turn),
  }
  const places = [member, young, young].map(member => ({
    member,
    kind: { renew: async () => [clock.now() + claim.lease] },
    vote: async () => ({ granted: true, token: 1_000, deadline: clock.now() + claim.lease, via: 'immediate' }),
  }))
  const { kind } = quorumOver(places, clock)
  const answer = new Promise<Granted | Refused>((done, failed) =>
    kind.attempt(claim, 'try', 0, false, { done, failed }),
  )
  await clock.advance(500)
  young.counts = true
  for (const turn of later) turn()
  const { deadline } = (await now(answer)) as Granted
  expect(deadline - clock.now()).toBeGreaterThan(0.9 * claim.lease)
})

/** Server 2 is away at the grant, and comes back empty. */
// This test fails if `this.#join(ballot)` is removed in src/compose/quorum/ballots.ts: the server is asked only when its
// votes count.
test('I8: a hold is written to a server that comes back, although its votes do not count yet', async () => {
  const asked: string[] = []
  const kept = new Set<object>()
  const whenReady = (what: object) => void kept.add(what)
  const away = { ...member, outOfReach: true, counts: false, whenReady, drop: (what: object) => kept.delete(what) }
  const places = [member, member, away].map((member, i) => ({
    member,
    vote: async (_: Claim, mode: string) => {
      asked.push(`${mode} ${i}`)
      return { granted: true, token: 1_000, deadline: 2_000, via: 'immediate' }
    },
  }))
  const { kind, ballots } = quorumOver(places, new FakeClock())
  const answer = new Promise<Granted | Refused>((done, failed) =>
    kind.attempt(claim, 'try', 0, false, { done, failed }),
  )
  expect(await now(answer)).toMatchObject({ granted: true })
  expect(asked).toEqual(['try 0', 'try 1'])
  away.outOfReach = false
  ballots.reconsider()
  expect(asked.at(-1)).toBe('same 2')
})

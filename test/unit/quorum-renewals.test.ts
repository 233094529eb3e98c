/** Tests which answers of the servers decide a renewal on a quorum. */
import { expect, test } from 'vitest'
import { LockConnectionError } from '../../src/errors.ts'
import type { Claim, Granted } from '../../src/kind.ts'
import { member, quorumOver } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'
import { now } from './promises.ts'

const claim: Claim = { key: 'k', id: 'id', owner: 'id', label: '', lease: 600, headStart: 0 }
const hold = { key: claim.key, id: claim.id }

/**
 * Three servers have voted. On servers 0 and 1 the vote has the token of the hold, which is 2,000. On server 2 it has
 * the token 1,000.
 * `answer[server]` answers the first unanswered renewal on that server.
 */
function votedDifferently() {
  const clock = new FakeClock()
  const unanswered: ((until: number | 'replaced') => void)[][] = [[], [], []]
  const votes: ((grant: Granted) => void)[] = []
  const places = unanswered.map(calls => ({
    member,
    kind: { renew: () => new Promise(resolve => calls.push(until => resolve([until]))) },
    vote: () => new Promise<Granted>(resolve => votes.push(resolve)),
  }))
  const answer = unanswered.map(calls => (until: number | 'replaced') => calls.shift()!(until))
  const { ballots, kind } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  const voted = (server: number, token: number) =>
    ballots.voted(ballot.seats[server]!, { granted: true, token, deadline: clock.now() + 600, via: 'immediate' })
  for (const server of [0, 1]) voted(server, 2_000)
  ballots.changed(ballot)
  voted(2, 1_000)
  const renew = () => kind.renew([{ hold, token: 2_000, ms: 20_000 }])
  return { clock, answer, ballots, renew, agreed: (grant: Granted) => votes.shift()!(grant) }
}

/**
 * Servers 0 and 1 are the majority that has the token of the hold. Server 2 has voted with a token of its own, and has
 * not received the token of the majority yet. Server 2 prolongs the hold before server 1 does.
 */
test('a server that does not have the hold’s token is not part of the majority that prolongs it', async () => {
  const { clock, answer, renew } = votedDifferently()
  const renewing = renew()
  for (const server of [2, 0]) answer[server]!(clock.now() + 20_000)
  expect(await now(renewing)).toBe('pending')
  answer[1]!(clock.now() + 20_000)
  expect((await now(renewing)) as number[]).toEqual([clock.now() + 19_800])
})

/**
 * Servers 0 and 1 have lost the hold. If the client gave back the vote of server 2 before it notified the holder,
 * another client could be granted the lock by server 2 and another server, while the holder still relies on its hold.
 */
test('I1 I8: the remaining votes of a lost hold are given back only after the holder was notified', async () => {
  const clock = new FakeClock()
  const events: string[] = []
  const places = [0, 1, 2].map(server => ({
    member,
    kind: {
      renew: async () => [server === 2 ? clock.now() + 600 : undefined],
      leave: async () => void events.push(`leave ${server}`),
    },
    vote: () => new Promise(() => {}),
  }))
  const { ballots, kind } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  for (const server of places.keys()) {
    ballots.voted(ballot.seats[server]!, { granted: true, token: 1_000, deadline: clock.now() + 600, via: 'immediate' })
  }
  ballots.changed(ballot)
  // Let 1 ms pass, so that the answers to the renewal come later than the votes.
  clock.block(1)
  const renewing = kind.renew([{ hold, token: 1_000, ms: 600 }])
  renewing.then(renewed => events.push(`renewed ${renewed[0]}`))
  await now(renewing)
  expect(events).toEqual(['renewed lost'])
  const rest = ballots.rest().then(() => events.push('at rest'))
  await clock.advance(1)
  await rest
  expect(events.slice(1)).toEqual(['leave 0', 'leave 1', 'leave 2', 'at rest'])
})

/**
 * Servers 0 and 1 have voted with the token of the hold. The client has just asked server 2 to take this token, and
 * renews the hold. Server 1 answers nothing for a while.
 */
test('I8: a server that is receiving the token is asked to prolong the hold when it has it', async () => {
  const { clock, answer, ballots, renew, agreed } = votedDifferently()
  ballots.changed(ballots.get(claim.id)!)
  const renewing = renew()
  answer[0]!(clock.now() + 20_000)
  expect(await now(renewing)).toBe('pending')
  agreed({ granted: true, token: 2_000, deadline: clock.now() + 600, via: 'immediate' })
  expect(await now(renewing)).toBe('pending')
  answer[2]!(clock.now() + 20_000)
  expect((await now(renewing)) as number[]).toEqual([clock.now() + 19_800])
})

/**
 * Servers 0 and 1 have voted, and the lock is granted. Server 2 is asked for its vote, too, and has not answered yet
 * when the renewal begins (with `asked` false, it is not asked). Server 1 does not answer the renewal.
 */
function votedByTwo(asked: boolean) {
  const clock = new FakeClock()
  const votes: ((grant: Granted) => void)[] = []
  const renewals: [server: number, token: number][] = []
  const places = [0, 1, 2].map(server => ({
    member,
    kind: {
      renew: async ([{ token }]: [{ token: number }]) => {
        renewals.push([server, token])
        return server === 1 ? new Promise(() => {}) : [clock.now() + 20_000]
      },
    },
    vote: () => new Promise(resolve => votes.push(resolve)),
  }))
  const { ballots, kind } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  const vote = (): Granted => ({ granted: true, token: 1_000, deadline: clock.now() + 600, via: 'immediate' })
  if (asked) ballots.ask(ballot.seats[2]!, 'try', 0)
  for (const server of [0, 1]) ballots.voted(ballot.seats[server]!, vote())
  ballots.changed(ballot)
  const renewing = kind.renew([{ hold, token: 1_000, ms: 20_000 }])
  return { clock, renewing, renewals, votes, vote: () => votes.shift()!(vote()) }
}

// This test fails if `if (at(hold)?.busy || at(hold)?.vote)` becomes `if (at(hold)?.vote)` in
// src/compose/quorum/kind.ts: server 2 is not asked to prolong the hold, and the renewal rejects.
test('I4: a server whose vote arrives during the renewal is asked to prolong the hold, too', async () => {
  const { clock, renewing, renewals, vote } = votedByTwo(true)
  await clock.advance(50)
  expect(await now(renewing)).toBe('pending')
  vote()
  expect((await now(renewing)) as number[]).toEqual([clock.now() - 50 + 19_800])
  expect(renewals).toEqual([
    [0, 1_000],
    [1, 1_000],
    [2, 1_000],
  ])
})

test('I8: a vote that does not arrive does not keep the client from asking again before the lease ends', async () => {
  const { clock, renewing } = votedByTwo(true)
  const outcome = renewing.catch(error => error)
  await clock.advance(200)
  expect(await now(outcome)).toBeInstanceOf(LockConnectionError)
})

test('I4: if a server of the majority does not answer, a server that has no vote is asked to join the hold', async () => {
  const { clock, renewing, votes, vote } = votedByTwo(false)
  await clock.advance(50)
  expect(votes).toHaveLength(0)
  // Let a quarter of the lease pass.
  await clock.advance(100)
  expect(votes).toHaveLength(1)
  vote()
  const [until] = (await now(renewing)) as number[]
  expect(until).toBeGreaterThan(clock.now() + 19_700)
})

/** Servers 0 and 1 have voted. Server 0 has lost the hold, and the vote of server 2 arrives a moment later. */
// This test fails if `const changed = answered ||` becomes `const changed =` in src/compose/quorum/kind.ts.
test('I8: if all servers have answered, and a vote has come meanwhile, they are asked again', async () => {
  const clock = new FakeClock()
  const places = [0, 1, 2].map(server => ({
    member,
    kind: { renew: async () => [server === 0 ? 'lost' : clock.now() + 20_000] },
    vote: () => new Promise(() => {}),
  }))
  const { ballots, kind } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  const votes = (server: number) =>
    ballots.voted(ballot.seats[server]!, { granted: true, token: 1_000, deadline: clock.now() + 600, via: 'immediate' })
  for (const server of [0, 1]) votes(server)
  ballots.changed(ballot)
  clock.block(1)
  const renewing = kind.renew([{ hold, token: 1_000, ms: 20_000 }])
  for (let turns = 0; turns < 20 && ballot.votes().length > 1; turns++) await Promise.resolve()
  votes(2)
  expect((await now(renewing)) as number[]).toEqual([clock.now() + 19_800])
})

/** Servers 0 and 1 have the hold with another token. They have not answered yet that they have received that of the hold. */
// This test fails if `(ballot as Ballot).until || least` becomes `(ballot as Ballot).until` in src/compose/quorum/kind.ts: the
// renewal waits for them for no time at all.
test('I8: a renewal waits for a majority that is receiving the token of the hold', async () => {
  const clock = new FakeClock()
  const votes: ((grant: Granted) => void)[] = []
  let raised = false
  const places = [0, 1, 2].map(server => ({
    member,
    kind: { renew: async () => [server === 2 || raised ? clock.now() + 20_000 : 'replaced'] },
    vote: () => new Promise(resolve => votes.push(resolve)),
  }))
  const { ballots, kind } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  for (const seat of ballot.seats)
    ballots.voted(seat, { granted: true, token: 2_000, deadline: clock.now() + 600, via: 'immediate' })
  ballots.changed(ballot)
  clock.block(1)
  const renewing = kind.renew([{ hold, token: 2_000, ms: 20_000 }])
  await clock.advance(50)
  expect(await now(renewing)).toBe('pending')
  raised = true
  for (const answer of votes) answer({ granted: true, token: 2_000, deadline: clock.now() + 600, via: 'immediate' })
  const [until] = (await now(renewing)) as number[]
  expect(until).toBeGreaterThan(clock.now() + 19_700)
})

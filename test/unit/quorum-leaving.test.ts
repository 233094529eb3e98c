/**
 * Tests that a client sends a claim to a server of a quorum again only after the server has answered the leave of the
 * earlier attempt.
 */
import { expect, test } from 'vitest'
import type { Claim } from '../../src/kind.ts'
import { member, quorumOver } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'

const claim: Claim = { key: 'k', id: 'id', owner: 'id', label: '', lease: 30_000, headStart: 0 }

/**
 * Server 0 refuses a claim, and servers 1 and 2 vote for it. To take the votes back, the client sends a leave to
 * servers 1 and 2. It begins a new attempt for the same claim at once, but must not send it to these servers before
 * they have answered. If a server does not know the script of the leave, the client has to send the leave again, with
 * the script's text. If that leave arrived after the new attempt, it would end the new vote.
 */
test('I5: another attempt waits for the leave, though a server that had refused needs none', async () => {
  const clock = new FakeClock()
  const sent: string[] = []
  const left: (() => void)[] = []
  const places = [0, 1, 2].map(server => ({
    member,
    kind: {
      leave: () => {
        sent.push(`leave ${server}`)
        return new Promise<void>(resolve => left.push(resolve))
      },
    },
    vote: () => {
      sent.push(`vote ${server}`)
      return new Promise(() => {})
    },
  }))
  const { ballots } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  const granted = { granted: true, token: 1_000, deadline: clock.now() + 30_000, via: 'immediate' } as const
  for (const server of [1, 2]) ballots.voted(ballot.seats[server]!, granted)
  const ended = ballots.end(ballot)
  const again = ballots.of(claim)
  for (const server of places.keys()) ballots.ask(again.seats[server]!, 'try', 0)
  expect(sent).toEqual(['leave 1', 'leave 2', 'vote 0'])
  for (const answered of left) answered()
  await ended
  await new Promise(setImmediate)
  expect(sent.slice(3)).toEqual(['vote 1', 'vote 2'])
})

/**
 * A request is under way when the connection is lost. It is sent again on the next one, before the client knows that the
 * server was restarted meanwhile, and the server votes.
 */
// This test fails if `return !ballot.granted && !member.counts` becomes `return ballot.over && !member.counts` in
// src/compose/quorum/ballots.ts.
test('I1, I2: a vote of a server that does not count is given back, and the server is asked again when it does', async () => {
  const clock = new FakeClock()
  const sent: string[] = []
  const server = { ...member, counts: false }
  const granted = { granted: true, token: 1_000, deadline: clock.now() + 30_000, via: 'immediate' } as const
  const places = [server, member, member].map((member, i) => ({
    member,
    kind: { leave: async () => void sent.push(`leave ${i}`) },
    vote: async () => {
      sent.push(`vote ${i}`)
      return granted
    },
  }))
  let later = () => {}
  const { ballots } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  ballots.ask(ballot.seats[0]!, 'try', 0)
  server.whenReady = (_, _wanted, turn) => {
    later = turn
  }
  await new Promise(setImmediate)
  expect([sent, ballot.votes()]).toEqual([['vote 0', 'leave 0'], []])
  server.counts = true
  later()
  await new Promise(setImmediate)
  expect([sent, ballot.votes().length]).toEqual([['vote 0', 'leave 0', 'vote 0'], 1])
})

/** A waiter's heartbeat was sent again after the restart of the server, which has queued it. */
// This test fails if `this.#leaveYoung(ballot)` is removed in src/compose/quorum/ballots.ts: the server may give its vote
// with a token that is too small, and the client may learn of it only when the server counts.
test('I2: a waiter that is queued by a server that does not count leaves it', () => {
  const sent: string[] = []
  const places = [{ ...member, counts: false }, member, member].map((member, i) => ({
    member,
    kind: { leave: async () => void sent.push(`leave ${i}`) },
  }))
  const { ballots } = quorumOver(places, new FakeClock())
  const ballot = ballots.of(claim)
  for (const i of places.keys()) ballots.refused(ballot.seats[i]!, { sent: 0, clock: 0 }, 1)
  ballots.changed(ballot)
  expect(sent).toEqual(['leave 0'])
})

/** The server has been restarted since it queued the waiter, and the client corrects the waiter's ticket there. */
// This test fails if `seat.vote = seat.refused = seat.ticket = undefined` becomes `seat.vote = seat.refused = undefined` in
// src/compose/quorum/ballots.ts: the ticket is written again and again until the server counts.
test('I9: a server that does not count is told no ticket after the waiter has left it', async () => {
  const sent: string[] = []
  const server = { ...member }
  const places = [server, member, member].map((member, i) => ({
    member,
    kind: { leave: async () => void sent.push(`leave ${i}`) },
    vote: async (_: Claim, mode: string) => {
      sent.push(`${mode} ${i}`)
      return { granted: true, token: 1_000, deadline: 30_000, via: 'handoff' }
    },
  }))
  const { ballots } = quorumOver(places, new FakeClock())
  const ballot = ballots.of(claim)
  for (const [i, seat] of ballot.seats.entries()) seat.ticket = i === 0 ? 5 : 9
  ballot.ticket = '9'
  ballots.changed(ballot)
  server.counts = false
  for (let turns = 0; turns < 20; turns++) {
    await new Promise(setImmediate)
    ballots.changed(ballot)
  }
  expect(sent).toEqual(['place 0', 'leave 0'])
})

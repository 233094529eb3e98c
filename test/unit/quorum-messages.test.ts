/**
 * Tests messages and answers of a quorum's servers that do not fit together: messages of grants arrive after newer
 * answers, because messages have their own connection; and requests that cross get different tickets.
 */
import { expect, test } from 'vitest'
import type { Claim, Granted, HeartbeatReply, Refused } from '../../src/kind.ts'
import { member, quorumOver } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'
import { settled } from './promises.ts'

const claim: Claim = { key: 'k', id: 'id', owner: 'id', label: '', lease: 30_000, headStart: 0 }
const [OLD, AGREED] = [1_000, 2_000]

/**
 * Makes three servers whose votes count. Each server has refused the claim once. Later requests to a server are
 * recorded in `asked`, and are answered only by the functions in `answers`, heartbeats by those in `beats`.
 */
function scene() {
  const clock = new FakeClock()
  const asked: string[] = []
  const answers: ((vote: Granted | Refused) => void)[] = []
  const beats: ((tended: HeartbeatReply) => void)[] = []
  const places = [0, 1, 2].map(server => ({
    member,
    kind: {
      tend: () => {
        asked.push(`tend ${server}`)
        return new Promise(resolve => beats.push(resolve))
      },
    },
    vote: (_: Claim, mode: string, floor: number, returned?: number) => {
      asked.push([mode, server, ...(mode === 'place' ? [floor, returned] : [])].join(' '))
      return new Promise(resolve => answers.push(resolve))
    },
  }))
  const { ballots, waiters } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  const granted = (token: number): Granted => ({ granted: true, token, deadline: clock.now() + 30_000, via: 'handoff' })
  const said = { sent: clock.now(), clock: OLD - 1, ttl: 0 }
  const refused: Refused = { ...said, granted: false, position: 1, ticket: '9', holder: undefined }
  for (const server of places.keys()) ballots.refused(ballot.seats[server]!, refused, 1)
  const beat = (waiter: Granted) => beats.shift()!({ ...said, holder: { label: '', since: 0 }, waiters: [waiter] })
  return { clock, ballots, waiters, ballot, granted, refused, asked, answers, beat }
}

/**
 * Server 1 grants a claim with a smaller token than server 0. The client raises the token on server 1, and then holds
 * the lock by the votes of these two servers. Only after that does the message of server 1's grant arrive. If this
 * message replaced the vote, no majority would have the hold's token. The next renewal would then end the hold, and
 * another call of the same owner would get another token.
 */
test('I2, I5: the late message of a grant does not replace a vote that has received a larger token since', () => {
  const { ballots, waiters, ballot, granted, asked } = scene()
  ballots.voted(ballot.seats[0]!, granted(AGREED))
  ballots.voted(ballot.seats[1]!, granted(OLD))
  ballots.changed(ballot)
  expect(asked).toEqual(['raise 1'])
  ballots.voted(ballot.seats[1]!, granted(AGREED))
  ballots.changed(ballot)
  expect(ballot.granted?.token).toBe(AGREED)
  expect(waiters.announced(1, claim.id, OLD, 'handoff')).toBe(true)
  expect(ballot.votes().map(({ token }) => token)).toEqual([AGREED, AGREED])
})

test('I2, I5: nor one whose token was lowered since to that of the majority', () => {
  const { ballots, waiters, ballot, granted } = scene()
  for (const server of [0, 1]) ballots.voted(ballot.seats[server]!, granted(OLD))
  ballots.changed(ballot)
  expect(ballot.granted?.token).toBe(OLD)
  ballots.voted(ballot.seats[2]!, granted(AGREED))
  ballots.voted(ballot.seats[2]!, granted(OLD))
  expect(waiters.announced(2, claim.id, AGREED, 'handoff')).toBe(true)
  expect(ballot.votes()).toHaveLength(3)
})

/**
 * A restart makes server 1 forget its vote and the lock's clock. Then server 1 grants the claim again, with a smaller
 * token.
 */
test('I4: a message with a small token makes the client ask a server whose vote is gone', () => {
  const { ballots, waiters, ballot, granted, asked } = scene()
  ballot.ticket = '1'
  ballots.voted(ballot.seats[1]!, granted(AGREED))
  ballots.taken(1, claim.id, AGREED)
  expect(waiters.announced(1, claim.id, OLD, 'handoff')).toBe(true)
  expect(asked).toEqual(['tend 1'])
})

// The message of a forced release and the answer to the request that got the lock come over two connections.
test('I8: a vote that was taken away before its answer arrived does not count, and a later one does', async () => {
  const { ballots, ballot, granted, answers } = scene()
  ballots.ask(ballot.seats[1]!, 'try', 0)
  ballots.taken(1, claim.id, OLD)
  answers[0]!(granted(OLD))
  await settled()
  expect(ballot.votes()).toEqual([])
  ballots.taken(1, claim.id, AGREED)
  ballots.ask(ballot.seats[1]!, 'try', 0)
  answers[1]!(granted(AGREED))
  await settled()
  expect(ballot.votes()).toHaveLength(1)
})

/**
 * Server 0 votes for a claim. An answer with the same token only confirms this vote, so `via` stays the same. Then the
 * vote lapses. The server grants the lock to another claim of the same owner, and lets the first claim re-enter. This
 * is a new vote, with a new token.
 */
test('I2: the `via` of a vote changes only if the server votes anew', () => {
  const { ballots, ballot, granted } = scene()
  ballots.voted(ballot.seats[0]!, granted(OLD))
  ballots.voted(ballot.seats[0]!, { ...granted(OLD), via: 'reentry' })
  expect(ballot.seats[0]!.vote!.via).toBe('handoff')
  ballots.voted(ballot.seats[0]!, { ...granted(AGREED), via: 'reentry' })
  expect(ballot.seats[0]!.vote!.via).toBe('reentry')
})

/**
 * Two requests cross on their way: server 0 queues this claim before the other one, server 1 after it. If each server
 * voted for its own first waiter, and server 2 were dead, neither claim would get a majority.
 */
test('I3, I4: a waiter with different tickets tells the latest to each server, and gives back a vote by an earlier one', () => {
  const { ballots, ballot, granted, asked } = scene()
  const [early, late] = [5, 9]
  for (const [server, ticket] of [early, late].entries()) ballot.seats[server]!.ticket = ticket
  ballot.ticket = String(late)
  ballots.changed(ballot)
  expect(asked).toEqual([`place 0 ${late} `])
  ballots.voted(ballot.seats[1]!, granted(AGREED))
  ballots.changed(ballot)
  expect(asked).toHaveLength(1)

  const other = scene()
  for (const [server, ticket] of [early, late].entries()) other.ballot.seats[server]!.ticket = ticket
  other.ballot.ticket = String(late)
  other.ballots.voted(other.ballot.seats[0]!, granted(OLD))
  other.ballots.changed(other.ballot)
  expect(other.asked).toEqual([`place 0 ${late} ${OLD}`])
  expect(other.ballot.votes()).toEqual([])
})

/**
 * A heartbeat is under way to server 1. If a later request were sent before its answer, the answers could be handled in
 * the other order: a vote that the later request has changed or given back would count again.
 */
// This test fails if `if (this.busy) this.#waiting.push(turn)` becomes `if (!turn) this.#waiting.push(turn)` in
// src/compose/quorum/seat.ts.
test('I1, I2, I5: a server gets the next request of a claim when it has answered the one before', async () => {
  const { clock, ballots, waiters, ballot, granted, asked, answers, beat } = scene()
  ballot.ticket = '9'
  ballots.voted(ballot.seats[1]!, granted(OLD))
  waiters.lookSoon(ballot.seats[1]!)
  ballots.ask(ballot.seats[1]!, 'raise', AGREED)
  await clock.advance(1)
  expect(asked).toEqual(['tend 1'])
  beat(granted(OLD))
  await settled()
  expect(asked).toEqual(['tend 1', 'raise 1'])
  answers[0]!(granted(AGREED))
  await settled()
  expect(ballot.votes().map(({ token }) => token)).toEqual([AGREED])
})

/**
 * Two calls of one owner ask at once. Servers 0 and 1 vote for the first one with different tokens, so server 0 is asked to
 * write the larger one. Then the first call loses a vote, and both servers vote for the second call.
 */
// This test fails if `this.#raised(ballot)` becomes `ballot.raised` in src/compose/quorum/ballots.ts: the second call is
// granted with a token that server 0 is about to replace for all holds of the owner.
test('I5: a call is not granted with a smaller token than servers are to write for its owner', async () => {
  const clock = new FakeClock()
  const places = [0, 1, 2].map(() => ({
    member,
    kind: {},
    vote: () => new Promise(() => {}),
  }))
  const { ballots } = quorumOver(places, clock)
  const [first, second] = ['a', 'b'].map(id =>
    ballots.of({ key: 'k', id, owner: 'me', label: '', lease: 600, headStart: 0 }),
  )
  const votes = (ballot: typeof first, server: number, token: number) =>
    ballots.voted(ballot!.seats[server]!, { granted: true, token, deadline: clock.now() + 600, via: 'immediate' })
  votes(first, 0, 1_000)
  votes(first, 1, 2_000)
  ballots.changed(first!)
  await clock.advance(100)
  ballots.taken(1, 'a', 2_000)
  ballots.changed(first!)
  for (const server of [0, 1]) votes(second, server, 1_000)
  ballots.changed(second!)
  await clock.advance(100)
  expect(second!.granted).toBeUndefined()
})

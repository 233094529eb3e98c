/** Tests that a claim on a quorum is asked again only after it has been taken back from the server. */
import { expect, test } from 'vitest'
import type { Claim } from '../../src/kind.ts'
import { ballotsOver } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'

const claim: Claim = { key: 'k', id: 'id', owner: 'id', label: '', lease: 30_000, headStart: 0 }

/**
 * Servers 1 and 2 vote for a claim that server 0 has refused. The client sends a leave to each of these two, to take
 * the votes back, and at once begins a new attempt for the same claim. Suppose that it sent the new attempt before they
 * have answered. A server that does not know the script of the leave would receive the text of that script after the
 * new attempt. Then the leave would end the new vote.
 */
test('I5: another attempt waits for the leave, though a server that had refused needs none', async () => {
  const clock = new FakeClock()
  const sent: string[] = []
  const left: (() => void)[] = []
  const places = [0, 1, 2].map(server => ({
    member: { up: true, counts: true, epoch: 0 },
    kind: {
      leave: () => {
        sent.push(`leave ${server}`)
        return new Promise<void>(resolve => left.push(resolve))
      },
    },
    voting: {
      vote: () => {
        sent.push(`vote ${server}`)
        return new Promise(() => {})
      },
    },
  }))
  const ballots = ballotsOver(places, clock)
  const ballot = ballots.of(claim)
  const granted = { granted: true, token: 1_000, deadline: clock.now() + 30_000, via: 'immediate' } as const
  for (const server of [1, 2]) ballots.voted(ballot, server, granted)
  const ended = ballots.end(ballot)
  const again = ballots.of(claim)
  for (const server of places.keys()) ballots.ask(again, server, 'try', 0)
  expect(sent).toEqual(['leave 1', 'leave 2', 'vote 0'])
  for (const answered of left) answered()
  await ended
  await new Promise(setImmediate)
  expect(sent.slice(3)).toEqual(['vote 1', 'vote 2'])
})

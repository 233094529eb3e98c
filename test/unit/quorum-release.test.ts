/** Tests the release of a hold on a quorum while another request about the hold is unanswered. */
import { expect, test } from 'vitest'
import type { Claim, Released } from '../../src/kind.ts'
import type { Outcome } from '../../src/outcome.ts'
import { member, quorumOver } from './ballots.ts'
import { FakeClock } from './fake-clock.ts'
import { now } from './promises.ts'

const claim: Claim = { key: 'k', id: 'id', owner: 'id', label: '', lease: 600, headStart: 0 }
const hold = { key: claim.key, id: claim.id }

/**
 * The replies to a renewal arrive after the client has sent the release. They must not make the client send a leave. If
 * a server did not know the script of the release, the client would send the release again, with the script's text, and
 * this time after the leave. The release would then find no hold, and report it lost.
 */
test('I5: the reply to a renewal does not make the client take back a hold that it is releasing', async () => {
  const clock = new FakeClock()
  const sent: string[] = []
  const renewed: (() => void)[] = []
  const released: (() => void)[] = []
  const places = [0, 1, 2].map(server => ({
    member,
    kind: {
      renew: () => new Promise(resolve => renewed.push(() => resolve([clock.now() + 600]))),
      release: (_hold: unknown, _used: unknown, to: Outcome<Released>) => {
        released.push(() => to.done({ ended: true }))
      },
      leave: async () => void sent.push(`leave ${server}`),
    },
    vote: () => new Promise(() => {}),
  }))
  const { ballots, kind } = quorumOver(places, clock)
  const ballot = ballots.of(claim)
  for (const server of places.keys()) {
    ballots.voted(ballot.seats[server]!, { granted: true, token: 1_000, deadline: clock.now() + 600, via: 'immediate' })
  }
  ballots.changed(ballot)
  kind.renew([{ hold, token: 1_000, ms: 600 }])
  const releasing = new Promise<Released>((done, failed) => kind.release(hold, undefined, { done, failed }))
  for (const reply of renewed) reply()
  await now(releasing)
  expect(sent).toEqual([])
  for (const reply of released) reply()
  expect(await releasing).toEqual({ ended: true })
  await clock.advance(1)
  expect([sent, ballots.get(claim.id)]).toEqual([[], undefined])
})

/**
 * Sends the heartbeat of waiters to all servers of a quorum. The heartbeat queues a waiter again on servers where it is
 * missing, writes the waiter's ticket to all servers, and finds grants whose messages were lost.
 */
import type { Clock } from '../../clock.ts'
import type { Queued, Refused, Tended } from '../../kind.ts'
import type { Ballots } from './ballots.ts'
import { merged } from './poll.ts'
import { Round } from './round.ts'

export async function tendAll(ballots: Ballots, waiters: readonly Queued[], clock: Clock): Promise<Tended> {
  const { places, members, majority } = ballots
  const answers: (Tended | undefined)[] = places.map(() => undefined)
  // The callers of these waiters still wait. If a ballot says that its claim was granted or taken back, `waits`
  // corrects the ballot.
  for (const waiter of waiters) ballots.waits(waiter)
  const round = new Round(members, majority, clock)
  // While a waiter has votes but no majority, the round waits for the other servers, because their answers may be
  // votes.
  const settled = ({ claim }: Queued) => {
    const ballot = ballots.get(claim.id)
    return !ballot || ballot.granted !== undefined || ballots.election.votes(ballot).length === 0
  }
  for (const i of places.keys()) {
    ballots.looks.tend(i, waiters).then(
      answer => {
        answers[i] = answer
        round.answered(i, waiters.every(settled))
      },
      error => round.failed(i, error),
    )
  }
  await round.over
  const said = answers.filter(answer => answer !== undefined)
  const refusals = said.map(answer => ({ ...answer, granted: false, position: 0, ticket: '0' }) satisfies Refused)
  const { sent, ttl, holder, owner } = merged(refusals, places.length - majority, clock.now())
  return {
    sent,
    ttl,
    holder: holder ?? { label: '', since: sent },
    owner,
    clock: 0,
    waiters: waiters.map(({ claim }) => {
      const ballot = ballots.get(claim.id)
      if (ballot?.granted && !ballot.reported) {
        ballot.reported = true
        return ballot.granted
      }
      const found = (ballot?.seats ?? []).flatMap(({ position }) => position || []).sort((a, b) => a - b)
      return found[found.length >> 1] ?? 1
    }),
  }
}

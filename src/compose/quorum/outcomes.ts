/**
 * What has become of each question to all servers, for whoever wants to know how often votes are split: published on
 * `node:diagnostics_channel` as `redis-baton:poll`. Nothing is made of it where nobody listens.
 */
import { channel } from 'node:diagnostics_channel'
import type { Claim } from '../../kind.ts'

/**
 * `granted`: a majority has voted, and `secondRound` says whether it had to agree on a token first. `refused`: somebody else has a
 * majority. `split`: nobody may have one. `failed`: no majority has answered.
 */
type Outcome = 'granted' | 'refused' | 'split' | 'failed'

const polls = channel('redis-baton:poll')

export function tellOutcome({ key, label }: Claim, outcome: Outcome, secondRound = false): void {
  if (polls.hasSubscribers) polls.publish({ key, label, outcome, secondRound })
}

/**
 * Publishes the outcome of each poll of all servers on `node:diagnostics_channel` as `redis-baton:poll`. A subscriber
 * sees, for instance, how often votes are split. Without a subscriber, nothing is published.
 */
import { channel } from 'node:diagnostics_channel'
import type { Claim } from '../../kind.ts'

/**
 * `granted`: a majority has voted; `secondRound` tells whether its servers had to agree on a token first. `refused`: no
 * server has voted for this claim. `split`: only a minority has voted for it, so perhaps no claim has a majority.
 * `failed`: no majority has answered.
 */
type Outcome = 'granted' | 'refused' | 'split' | 'failed'

const polls = channel('redis-baton:poll')

export function tellOutcome({ key, label }: Claim, outcome: Outcome, secondRound = false): void {
  if (polls.hasSubscribers) polls.publish({ key, label, outcome, secondRound })
}

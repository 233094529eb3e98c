/**
 * A claim is a caller's request for the lock. A vote is the grant of one server to a claim. The ballot of a claim
 * records, for each server, the server's vote and the requests that the server has not answered yet.
 *
 *      asked ──▶ voted ──▶ held          at each server
 *        │         │
 *        └─────────┴──▶ cleared          the server has no vote and no queue entry of the claim any more
 *
 * After this client has asked a server to clear a claim, it sends no other request of that claim to the server until
 * the server has answered. Otherwise an answer from before the clearing could be mistaken for an answer from after the
 * clearing.
 */
import { channel } from 'node:diagnostics_channel'
import type { Clock, Timer } from '../../clock.ts'
import type { Claim, Granted, Queued, Refused, Via, VoteMode } from '../../kind.ts'
import { DRIFT, type Member, type Place } from './member.ts'

/**
 * A server's refusal of a claim. A later message may report that the server has granted the claim. If the token of this
 * grant is larger than `clock`, the server granted the claim after `sent`.
 */
export interface Sight {
  /** When the refused request was sent, in monotonic ms. */
  readonly sent: number
  /** The server's counter of tokens at the refusal. Every later grant has a larger token. */
  readonly clock: number
}

/** What the server said when it refused a claim. */
export type Refusal = Pick<Refused, 'sent' | 'clock'>

/** One server's vote and queue entry for a claim, as far as this client knows. */
export class Seat {
  vote: Granted | undefined
  /** The largest token of the server's votes so far. The server's later grants have larger tokens. */
  latest = 0
  /** When the vote arrived or was last confirmed, in monotonic ms. */
  votedAt = 0
  /**
   * Whether the vote is valid. Before the claim is granted, a vote is valid if the server voted at a time when its
   * votes counted (`Standing`). After the grant, a vote is valid if it has the token of the hold.
   */
  counted = false
  /** `Member.epoch` when the server voted. Identifies the connection on which the vote came. */
  epoch = 0
  seen: Sight | undefined
  /** Position in this server's queue, from 1; 0: not queued. */
  position = 0
  /**
   * The claim's place in this server's order: its ticket in the queue, or the token of the vote that the server gave at
   * once. Undefined: the server has not answered, or the order does not matter to the claim, as for a re-entry.
   */
  ticket: number | undefined
  /** Whether the server is being told the ticket that the claim has on all servers (`Looks.order`). */
  ordering = false
  /** The token of the vote that this client is giving back. Older answers may still name it. 0: none. */
  returned = 0
  /** According to messages, votes up to this token are lost, and answers under way may still name them. 0: none. */
  lost = 0
  /** How many requests of the claim this server has not answered. */
  asked = 0
  /** When the newest request of the claim that the server has answered was sent, without heartbeats, in monotonic ms. */
  heard = Number.NEGATIVE_INFINITY
  /** When the server reported that it no longer has the hold, in monotonic ms. */
  goneAt = Number.NEGATIVE_INFINITY
  /**
   * Whether a renewal has shown that the server granted the claim once more, with a token that this client does not
   * know.
   */
  anew = false
  /** Whether a request is under way that gives the vote another token. */
  agreeing = false
  /** Whether the server may have voted for the claim, or have the claim in its queue. */
  touched = false
  /** Whether the server has refused each request of the claim, so that it has nothing of it. */
  refusing = false
  /** Whether a message has reported a grant, and the server has to be asked for how long the lease still runs. */
  announced = false
  /** Whether the hold is being released on the server. */
  releasing = false
  /**
   * Settles when the claim has been taken back from this server, or when this client stops trying. Undefined while the
   * claim is not being taken back.
   */
  clearing: Promise<void> | undefined
  /** The latest attempt to take the claim back. Unlike `clearing`, this promise also settles if the attempt fails. */
  trying: Promise<void> | undefined
  /** Whether the latest attempt to take the claim back has failed, so that another one follows. */
  failed = false
  /** Called once the server has answered all requests of the claim. */
  idle: (() => void) | undefined
  /** Drop the requests of the claim that are kept back (`Member.keep`). */
  readonly drops: (() => void)[] = []

  drop(): void {
    for (const drop of this.drops.splice(0)) drop()
  }
}

export class Ballot {
  readonly claim: Claim
  readonly seats: readonly Seat[]
  readonly #members: readonly Member[]
  readonly #majority: number
  readonly #clock: Clock
  /** The grant that the caller receives; undefined while the claim is not granted. */
  granted: Granted | undefined
  /** How many calls wait for the outcome of the claim (poll.ts). */
  polls = 0
  /** The token that this client is writing to servers, so that a majority has the same token; otherwise undefined. */
  token: number | undefined
  /** The largest token that this client has asked servers to write; 0: none. */
  raised = 0
  /**
   * Since when this client has waited for missing votes although a majority has voted, in monotonic ms
   * (`Ballots.#awaits`).
   */
  awaitsSince: number | undefined
  /** Ends that wait. */
  awaiting: Timer | undefined
  /** Whether the caller has received the grant. */
  reported = false
  /** Whether no caller wants the claim any more. */
  over = false
  /** The claim's ticket in the servers' queues; undefined: the claim is not queued. */
  ticket: string | undefined
  /** How often this client has given the claim's votes back, because they were too few. */
  putBack = 0
  /** How often this client has asked all servers for more votes since it last gave votes back. */
  looks = 0

  constructor(claim: Claim, { members, majority }: Pick<BallotBox, 'members' | 'majority'>, clock: Clock) {
    this.claim = claim
    this.seats = members.map(() => new Seat())
    this.#members = members
    this.#majority = majority
    this.#clock = clock
  }

  /** How many servers have voted for the claim, whether or not their votes count. */
  get voted(): number {
    let voted = 0
    for (const { vote } of this.seats) if (vote) voted += 1
    return voted
  }

  /** Returns whether new votes of the server count for the claim. */
  counts(server: number): boolean {
    return (this.#members[server] as Member).counts
  }

  /**
   * The time until which a majority has granted the claim, as far as this client knows; 0: no majority has granted it.
   */
  get until(): number {
    const ends = this.votes().map(({ deadline }) => deadline)
    return untilMajority(ends, this.#majority)
  }

  /** The valid votes for the claim whose leases have not ended. */
  get live(): Granted[] {
    return this.votes(this.#clock.now())
  }

  /** Returns the valid votes for the claim (`Seat.counted`) whose leases end after `from`. */
  votes(from = Number.NEGATIVE_INFINITY): Granted[] {
    const votes: Granted[] = []
    for (const [i, { vote, counted }] of this.seats.entries()) {
      if (vote && counted && vote.deadline > from && !this.#members[i]?.repeats) votes.push(vote)
    }
    return votes
  }
}

/**
 * Returns the time until which a majority of the servers has a hold; 0 if no majority has it. `ends` are the times at
 * which the hold ends on the servers that have it.
 */
export function untilMajority(ends: readonly number[], majority: number): number {
  return ends.length < majority ? 0 : [...ends].sort((a, b) => b - a)[majority - 1]!
}

/**
 * Returns the token for a grant with these votes. Once a majority of the servers has this token, every later grant by any majority
 * has a larger one. If a majority of the servers has already voted with the same token, returns that token. Otherwise
 * returns the largest token of all votes.
 */
export function commonToken(votes: readonly Granted[], majority: number): number {
  const tokens = votes.map(({ token }) => token)
  const most = tokens.find(token => tokens.filter(same => same === token).length >= majority)
  return most ?? Math.max(...tokens)
}

/**
 * Returns the new deadline of a vote that the server has confirmed: the end of the lease as the server reports it
 * (`ends`), minus a margin for the drift of the clocks. But the deadline is never later than the end of the longest
 * lease that this client has asked for. For the present request, that end is `asked`. If an earlier renewal asked for
 * more, that end is the present deadline of the vote.
 */
export function confirmedDeadline(vote: Granted, ends: number, asked: number, now: number): number {
  return Math.min(ends - (ends - now) * DRIFT, Math.max(asked, vote.deadline))
}

export function viaOf(votes: readonly Granted[]): Via {
  for (const via of ['reentry', 'expiry', 'handoff'] as const) if (votes.some(vote => vote.via === via)) return via
  return 'immediate'
}

/** Returns the latest place that a server has given the claim in its order. */
export function latestTicket({ seats }: Ballot): string {
  return String(Math.max(0, ...seats.flatMap(({ ticket }) => ticket ?? [])))
}

export type Answer = Granted | Refused | undefined | Error

/** The part of `Ballots` that looks.ts uses. */
export interface BallotBox {
  readonly places: readonly Place[]
  readonly members: readonly Member[]
  readonly majority: number
  get(id: string): Ballot | undefined
  /** Returns the token by which another call of the claim's owner has the lock; undefined if there is none. */
  sharedToken(ballot: Ballot): number | undefined
  /** Sends a request of the claim to the server. Calls `answered` with the answer, or with the error. */
  ask(ballot: Ballot, server: number, mode: VoteMode, floor: number, answered?: (answer: Answer) => void): void
  /** Records that the caller of the claim still waits. */
  waits(waiter: Queued): void
  /** Records that the server has granted the claim. */
  voted(ballot: Ballot, server: number, grant: Granted): void
  /** Records that the server has refused the claim, or queued it at `position`. */
  refused(ballot: Ballot, server: number, refusal: Refusal, position?: number): void
  /** Checks again whether the claim can be granted. Called after its votes or its state have changed. */
  changed(ballot: Ballot): void
}

/**
 * `granted`: a majority has voted; `secondRound` tells whether its servers had to agree on a token first. `refused`: no
 * server has voted for this claim. `split`: only a minority has voted for it, so perhaps no claim has a majority.
 * `failed`: no majority has answered.
 */
type Outcome = 'granted' | 'refused' | 'split' | 'failed'

const polls = channel('redis-baton:poll')

/**
 * Publishes the outcome of each poll of all servers on `node:diagnostics_channel` as `redis-baton:poll`. A subscriber
 * sees, for instance, how often votes are split. Without a subscriber, nothing is published.
 */
export function tellOutcome({ key, label }: Claim, outcome: Outcome, secondRound = false): void {
  if (polls.hasSubscribers) polls.publish({ key, label, outcome, secondRound })
}

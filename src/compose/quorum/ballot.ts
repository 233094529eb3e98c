/**
 * One claim, and what each server has made of it: its vote, and the requests that it has not answered yet.
 *
 *      asked ──▶ voted ──▶ held          at each server
 *        │         │
 *        └─────────┴──▶ cleared          the server has nothing of the claim any more
 *
 * A vote is the grant of one server. A server that is asked to clear a claim is asked for that claim again only after
 * it has answered. Otherwise an answer from before the clearing could be taken for one from after it.
 */
import type { Claim, Granted, Refused, VoteMode } from '../../kind.ts'
import type { Member } from './member.ts'
import type { Place } from './place.ts'

/**
 * A refusal by one server. It bounds the time of a later grant that a message reports: that grant was made after
 * `sent`.
 */
export interface Sight {
  /** When the refused request was sent, ms. */
  readonly sent: number
  /** The lock's clock at the refusal: every later grant has a larger token. */
  readonly clock: number
}

/** What one server has of a claim, as far as this client knows. */
export class Seat {
  vote: Granted | undefined
  /** The largest token of the server's votes so far: its later grants have larger ones. */
  latest = 0
  /** When the vote arrived or was last confirmed, ms. */
  votedAt = 0
  /**
   * Whether the vote counts. Before the grant: the server counted when it voted. After it: the vote has the hold's
   * token.
   */
  counted = false
  /** `Member.epoch` when the server voted: it identifies the connection. */
  epoch = 0
  seen: Sight | undefined
  /** Position in this server's queue, from 1; 0: not queued. */
  position = 0
  /** How many requests are unanswered. */
  asked = 0
  /** When the server reported that it no longer has the hold, ms. */
  goneAt = Number.NEGATIVE_INFINITY
  /** The server has granted the claim again, with a token that this client does not know yet. */
  anew = false
  /** A request that replaces the token of the vote is under way. */
  agreeing = false
  /** The server may have a vote for the claim, or have it in its queue. */
  touched = false
  /** A message reported a grant, but did not prove for how long its lease still runs. */
  told = false
  /** Pending while the claim is being taken back from this server. */
  clearing: Promise<void> | undefined
  /** The latest attempt to take it back. */
  trying: Promise<void> | undefined
  /** The latest attempt has failed, and another one follows. */
  failed = false
  /** A request was answered while the claim was being taken back: the server may have run it after that. */
  late = false
  /** Called when the last unanswered request is answered. */
  idle: (() => void) | undefined
}

export class Ballot {
  readonly claim: Claim
  readonly seats: readonly Seat[]
  /** The grant that the caller receives. From then on, the votes are those of a hold. */
  granted: Granted | undefined
  /** How many calls wait for the outcome (poll.ts). */
  polls = 0
  /** The token that the voters are being made to agree on; undefined: no majority has voted. */
  token: number | undefined
  /** Until when the votes of the remaining servers are waited for, ms (`Election.#mayShare`). */
  sharesUntil: number | undefined
  /** The caller has received the grant. */
  reported = false
  /** No caller wants the claim any more. */
  over = false
  /** Its ticket in the servers' queues; undefined: it is not queued. */
  ticket: string | undefined
  /** How often it has put back votes because they were too few. */
  putBack = 0
  /** How often it has looked since then, with too few votes. */
  looks = 0

  constructor(claim: Claim, servers: number) {
    this.claim = claim
    this.seats = Array.from({ length: servers }, () => new Seat())
  }
}

/** Until when a majority of the servers has a lock, given its end on each server that has it; 0: no majority has it. */
export function untilMajority(ends: readonly number[], majority: number): number {
  return ends.length < majority ? 0 : [...ends].sort((a, b) => b - a)[majority - 1]!
}

export type Answer = Granted | Refused | undefined | Error

/** All ballots of a client, as far as election.ts and looks.ts need them. */
export interface BallotBox {
  readonly places: readonly Place[]
  readonly members: readonly Member[]
  readonly majority: number
  readonly all: Iterable<Ballot>
  get(id: string): Ballot | undefined
  /** Whether the votes of the server count now. */
  counts(server: number): boolean
  /** Asks one server. `answered` is called after the answer has taken effect on the ballot. */
  ask(ballot: Ballot, server: number, mode: VoteMode, floor: number, answered?: (answer: Answer) => void): void
  /** The server has granted the claim. */
  voted(ballot: Ballot, server: number, grant: Granted): void
  /** The server has refused the claim, or queued it at `position`. */
  refused(ballot: Ballot, server: number, seen: Sight, position?: number): void
  /** Judges the claim again after a change. */
  changed(ballot: Ballot): void
}

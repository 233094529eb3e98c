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
import type { Claim, Granted, Refused, VoteMode } from '../../kind.ts'
import type { Member } from './member.ts'
import type { Place } from './place.ts'

/**
 * A refusal by one server. If a message later reports a grant with a token larger than `clock`, that grant was made
 * after `sent`.
 */
export interface Sight {
  /** When the refused request was sent, in monotonic ms. */
  readonly sent: number
  /** The server's counter of tokens at the refusal. Every later grant has a larger token. */
  readonly clock: number
}

/** One server's vote and queue entry for a claim, as far as this client knows. */
export class Seat {
  vote: Granted | undefined
  /** The largest token of the server's votes so far. The server's later grants have larger tokens. */
  latest = 0
  /** When the vote arrived or was last confirmed, in monotonic ms. */
  votedAt = 0
  /**
   * Whether the vote is valid. Before the claim is granted, a vote is valid if the server's votes counted when it voted
   * (standing.ts). After the grant, a vote is valid if it has the token of the hold.
   */
  counted = false
  /** `Member.epoch` when the server voted. Identifies the connection on which the vote came. */
  epoch = 0
  seen: Sight | undefined
  /** Position in this server's queue, from 1; 0: not queued. */
  position = 0
  /** How many requests of the claim this server has not answered. */
  asked = 0
  /** When the server reported that it no longer has the hold, in monotonic ms. */
  goneAt = Number.NEGATIVE_INFINITY
  /** Whether the server has granted the claim again, with a token that this client does not know yet. */
  anew = false
  /** Whether a request that replaces the token of the vote is under way. */
  agreeing = false
  /** Whether the server may have voted for the claim, or have the claim in its queue. */
  touched = false
  /** Whether a message reported a grant, but did not prove for how long the lease still runs. */
  told = false
  /** Whether the hold is being released on the server. */
  releasing = false
  /** Pending while the claim is being taken back from this server. */
  clearing: Promise<void> | undefined
  /** The latest attempt to take the claim back from this server. */
  trying: Promise<void> | undefined
  /** Whether the latest attempt to take the claim back has failed, so that another one follows. */
  failed = false
  /**
   * Whether a request was answered while the claim was being taken back. The server may have run that request after it
   * had removed the claim.
   */
  late = false
  /** Called once the server has answered all requests of the claim. */
  idle: (() => void) | undefined
}

export class Ballot {
  readonly claim: Claim
  readonly seats: readonly Seat[]
  /** The grant that the caller receives. Once the grant is set, the votes are those of a hold. */
  granted: Granted | undefined
  /** How many calls wait for the outcome of the claim (poll.ts). */
  polls = 0
  /**
   * The token on which the servers that have voted are about to agree; undefined: they agree already, or no majority
   * has voted.
   */
  token: number | undefined
  /** Until when the claim waits for the votes of the remaining servers, in monotonic ms (`Election.#mayShare`). */
  sharesUntil: number | undefined
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

  constructor(claim: Claim, servers: number) {
    this.claim = claim
    this.seats = Array.from({ length: servers }, () => new Seat())
  }
}

/**
 * Returns the time until which a majority of the servers has a hold; 0 if no majority has it. `ends`: the hold's end on
 * each server that has it.
 */
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
  /** Returns whether the votes of the server count now (standing.ts). */
  counts(server: number): boolean
  /** Asks one server for its vote. Calls `answered` after the answer has taken effect on the ballot. */
  ask(ballot: Ballot, server: number, mode: VoteMode, floor: number, answered?: (answer: Answer) => void): void
  /** Records that the server has granted the claim. */
  voted(ballot: Ballot, server: number, grant: Granted): void
  /** Records that the server has refused the claim, or queued it at `position`. */
  refused(ballot: Ballot, server: number, seen: Sight, position?: number): void
  /** Checks again whether the claim can be granted. Called after its votes or its state have changed. */
  changed(ballot: Ballot): void
}

/**
 * One claim and what each server has made of it: its votes, and what was asked and is not answered yet.
 *
 *      asked ──▶ voted ──▶ held                    at each server
 *        │         │
 *        └─────────┴──▶ cleared                    everything of the claim is taken back there
 *
 * A vote is one server's grant. What is cleared is asked for again only when the server has answered to that: an answer of before must
 * not be taken for one of after.
 */
import type { Claim, Granted, Refused, VoteMode } from '../../kind.ts'
import type { Member } from './member.ts'
import type { Place } from './place.ts'

/** The latest time that is proven to be before a grant by this server of which a message tells. */
export interface Sight {
  /** When that request was sent, ms. */
  readonly sent: number
  /** Grants from then on have larger tokens. */
  readonly clock: number
}

/** What one server has of a claim. */
export class Seat {
  vote: Granted | undefined
  /** When it came, ms. */
  votedAt = 0
  /** The server counted when it voted; of a hold: it has the token of the hold. */
  counted = false
  /** The connection over which it voted (member.ts). */
  epoch = 0
  seen: Sight | undefined
  /** Its place in the queue there, from 1; 0: none. */
  position = 0
  /** Requests that are not answered. */
  asked = 0
  /** When it said that it has the hold no more, ms. */
  goneAt = Number.NEGATIVE_INFINITY
  /** It has been granted the claim with another token than was known here. */
  anew = false
  /** Another token than that of its vote is being written. */
  agreeing = false
  /** Something may be left of it. */
  touched = false
  /** A grant was told of that could not be proven. */
  told = false
  /** Until everything of it is taken back. */
  clearing: Promise<void> | undefined
  /** The latest attempt at that. */
  trying: Promise<void> | undefined
  /** It has failed, and another one follows. */
  failed = false
  /** Something was answered while it was being taken back, and may have come about behind that. */
  late = false
  /** Called when nothing is unanswered any more. */
  idle: (() => void) | undefined
}

export class Ballot {
  readonly claim: Claim
  readonly seats: readonly Seat[]
  /** What the caller was told: from then on its votes are of a hold. */
  granted: Granted | undefined
  /** Calls that wait for the outcome. */
  polls = 0
  /** Which token is being agreed on; undefined: no majority has voted. */
  token: number | undefined
  /** Until when the votes of other servers are waited for, ms. */
  sharesUntil: number | undefined
  /** Whoever waits for it has been told. */
  reported = false
  /** Nobody wants it any more. */
  over = false
  /** It is in the queue of the servers, with this ticket. */
  ticket: string | undefined
  /** How often it has put votes back that were too few. */
  putBack = 0
  /** How often it has looked since, with too few votes. */
  looks = 0

  constructor(claim: Claim, servers: number) {
    this.claim = claim
    this.seats = Array.from({ length: servers }, () => new Seat())
  }
}

/** Until when a majority has it, if these are the ends on the servers that do; 0: no majority has. */
export function untilMajority(ends: readonly number[], majority: number): number {
  return ends.length < majority ? 0 : [...ends].sort((a, b) => b - a)[majority - 1]!
}

export type Answer = Granted | Refused | undefined | Error

/** All ballots of a client, as far as those need them that look at votes, or at servers. */
export interface BallotBox {
  readonly places: readonly Place[]
  readonly members: readonly Member[]
  readonly majority: number
  readonly all: Iterable<Ballot>
  get(id: string): Ballot | undefined
  /** Whether the votes of the server count now. */
  counts(server: number): boolean
  /** Asks one server; `answered` is called behind everything that its answer does. */
  ask(ballot: Ballot, server: number, mode: VoteMode, floor: number, answered?: (answer: Answer) => void): void
  /** The server has granted the claim. */
  voted(ballot: Ballot, server: number, grant: Granted): void
  /** The server does not have the claim, or has it in its queue. */
  refused(ballot: Ballot, server: number, seen: Sight, position?: number): void
  /** Something has come for the claim. */
  changed(ballot: Ballot): void
}

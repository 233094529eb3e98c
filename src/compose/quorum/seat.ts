/**
 * A claim at one server: what the server may have of it, as far as this client knows. A claim is a caller's request for
 * the lock; a quorum has it once at each server. A _vote_ is the grant of one server.
 *
 *      nothing ──▶ asked ──▶ queued ──▶ granted ──▶ leaving ──▶ nothing
 *
 * The server gets the requests of a claim one after the other: the next one is sent when the one before is answered or
 * has failed. So no answer is older than one that was handled before, and no withdrawal can end what a later request was
 * granted. Only messages come on a connection of their own, and may be older or newer than an answer:
 *
 *   A `leave` and the next attempt are under way together. The server does not know the script of the `leave`, so it is
 *   sent again, behind the attempt, and ends the vote that the attempt got. The holder relies on a majority that it no
 *   longer has (I1).
 */
import type { Claim, Granted, Via } from '../../kind.ts'
import type { Member } from './member.ts'
import { type Electorate, untilMajority } from './round.ts'

/**
 * `nothing`: nothing was sent that has not been undone. `asked`: the first request is under way. `denied`: the server has
 * refused to run any request of the claim. `queued`: the claim is in the server's queue, or a failed request may have
 * left something there. `leaving`: it is being released or taken back, so whatever the server grants ends, too.
 */
export type SeatState = 'nothing' | 'asked' | 'denied' | 'queued' | 'granted' | 'leaving'

/** `refuses`: the server has refused a request that leaves nothing behind. `denies`: it has refused to run the request. */
export type SeatEvent = 'asks' | 'queues' | 'grants' | 'loses' | 'refuses' | 'denies' | 'fails' | 'leaves' | 'left'

/** The next state. An event that a state does not name changes nothing. */
const next: { readonly [S in SeatState]: { readonly [E in SeatEvent]?: SeatState } } = {
  nothing: { asks: 'asked', queues: 'queued', grants: 'granted' },
  asked: {
    queues: 'queued',
    grants: 'granted',
    refuses: 'nothing',
    denies: 'denied',
    fails: 'queued',
    leaves: 'leaving',
  },
  denied: { queues: 'queued', grants: 'granted', refuses: 'queued', fails: 'queued', leaves: 'leaving' },
  queued: { grants: 'granted', leaves: 'leaving' },
  granted: { queues: 'queued', loses: 'queued', leaves: 'leaving' },
  leaving: { left: 'nothing' },
}

export interface SeatVote {
  readonly token: number
  readonly via: Via
  /** Until when this client can rely on the vote, in monotonic ms. */
  readonly deadline: number
  /** When the vote arrived or was last confirmed, in monotonic ms. */
  readonly at: number
}

/** Called when the request may be sent; or with the reason why it cannot. */
type Turn = (error?: Error) => void

export class Seat {
  readonly ballot: Ballot
  readonly member: Member
  state: SeatState = 'nothing'
  vote: SeatVote | undefined
  /** The largest token of the server's votes so far. The server's later grants have larger tokens. */
  latest = 0
  /**
   * The last refusal: when the request was sent, and the server's counter of tokens. If a message reports a grant with a
   * larger token, the server made it after that time. Undefined: nothing proves when.
   */
  refused: { readonly sent: number; readonly clock: number } | undefined
  /** Position in this server's queue, from 1; 0: not queued. */
  position = 0
  /**
   * The claim's place in this server's order: its ticket in the queue, or the token of the vote that the server gave at
   * once. Undefined: the server has not answered, or the order does not matter to the claim, as for a re-entry.
   */
  ticket: number | undefined
  /** Messages have reported that votes up to this token are lost; the answer under way may still name them. 0: none. */
  lost = 0
  /** When the server reported that it no longer has the hold, in monotonic ms. */
  goneAt = Number.NEGATIVE_INFINITY
  /** Whether a request is under way, or is kept back until the server can be reached. */
  busy = false
  /** Settles with the present attempt to take the claim back or to release it; undefined: there is none. */
  leaving: Promise<void> | undefined
  readonly #waiting: Turn[] = []

  constructor(ballot: Ballot, member: Member) {
    this.ballot = ballot
    this.member = member
  }

  happens(event: SeatEvent): void {
    this.state = next[this.state][event] ?? this.state
  }

  /** Records that the server no longer has the vote. */
  lose(): void {
    this.vote = undefined
    this.happens('loses')
  }

  /** Calls `turn` when the server has answered all earlier requests of the claim. */
  whenFree(turn: Turn): void {
    if (this.busy) this.#waiting.push(turn)
    else turn()
  }

  /** The same, before all that wait already. */
  nextWhenFree(turn: Turn): void {
    if (this.busy) this.#waiting.unshift(turn)
    else turn()
  }

  /**
   * Called when the server has answered, or nothing was sent. With `error`, the request has failed. Then all that wait for
   * the server get this error, because each of them would have to wait as long again.
   */
  free(error?: Error): void {
    this.busy = false
    this.lost = 0
    if (error) this.refuse(error)
    while (!this.busy && this.#waiting.length > 0) this.#waiting.shift()!()
  }

  /** Ends the wait of all that wait for this server. */
  refuse(error: Error): void {
    for (const turn of this.#waiting.splice(0)) turn(error)
  }
}

/** A claim, with its seat at each server. */
export class Ballot {
  readonly claim: Claim
  readonly seats: readonly Seat[]
  readonly #of: Electorate
  /** The attempts that wait for the outcome (kind.ts). Each is called after every change. */
  readonly attempts = new Set<() => void>()
  /** The grant that the caller receives; undefined while the claim is not granted. */
  granted: Granted | undefined
  /** Whether the caller has received the grant. */
  reported = false
  /** Whether no caller wants the claim any more. */
  over = false
  /** The token that this client is writing to servers, so that a majority has the same token; otherwise undefined. */
  token: number | undefined
  /** The largest token that this client has asked servers to write; 0: none. */
  raised = 0
  /** The claim's ticket in the servers' queues; undefined: the claim is not queued. */
  ticket: string | undefined
  /** How often this client has asked all servers for more votes (waiters.ts). */
  looks = 0

  constructor(claim: Claim, of: Electorate) {
    this.claim = claim
    this.seats = of.members.map(member => new Seat(this, member))
    this.#of = of
  }

  /**
   * The time until which a majority has granted the claim, as far as this client knows; 0: no majority has granted it.
   */
  get until(): number {
    const ends = this.votes().map(({ deadline }) => deadline)
    return untilMajority(ends, this.#of.majority)
  }

  /** The valid votes for the claim whose leases have not ended. */
  get live(): SeatVote[] {
    return this.votes(this.#of.clock.now())
  }

  /** Returns the valid votes for the claim whose leases end after `from`. */
  votes(from = Number.NEGATIVE_INFINITY): SeatVote[] {
    const counted = this.seats.filter(({ member }) => !member.repeats).flatMap(({ vote }) => vote ?? [])
    return counted.filter(vote => this.isValid(vote) && vote.deadline > from)
  }

  /** Whether the vote counts: once the claim is granted, only if it has the token of the hold. */
  isValid({ token }: SeatVote): boolean {
    return !this.granted || token === this.granted.token
  }
}

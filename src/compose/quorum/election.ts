/**
 * Who is granted the lock: a claim for which a majority has voted, and agrees on a token, while a majority of its leases lasts. And what
 * is done where a majority has voted with different tokens: ballots.ts tells the story.
 */
import type { Clock } from '../../clock.ts'
import type { Granted, Via } from '../../kind.ts'
import { type Ballot, type BallotBox, untilMajority } from './ballot.ts'
import type { Floor } from './floor.ts'
import type { Member } from './member.ts'
import { tellOutcome } from './outcomes.ts'
import type { Place } from './place.ts'

/** How long votes of an owner with a name wait for those of the other servers, in ms. */
const SHARING = 20

export class Election {
  readonly #ballots: BallotBox
  readonly #clock: Clock
  readonly #floor: Floor

  constructor(ballots: BallotBox, clock: Clock, floor: Floor) {
    this.#ballots = ballots
    this.#clock = clock
    this.#floor = floor
  }

  /** Something has come for the claim. */
  changed(ballot: Ballot): void {
    this.#askYoung(ballot)
    this.#elect(ballot)
    // A server that has voted late has the hold with a token of its own.
    if (ballot.granted) this.#agree(ballot, ballot.granted.token, true)
  }

  /** Until when a majority has it, as far as is known; 0: none has. */
  until(ballot: Ballot): number {
    const votes = this.votes(ballot)
    return untilMajority(
      votes.map(({ deadline }) => deadline),
      this.#ballots.majority,
    )
  }

  /** The votes that count. */
  votes({ seats }: Ballot): Granted[] {
    return seats.flatMap(({ vote, counted }) => (vote && counted ? [vote] : []))
  }

  /** Those whose leases have not ended. */
  live(ballot: Ballot): Granted[] {
    const now = this.#clock.now()
    return this.votes(ballot).filter(({ deadline }) => deadline > now)
  }

  /** Grants the claim if a majority agrees, and makes it agree if it does not. */
  #elect(ballot: Ballot): void {
    if (ballot.over || ballot.granted) return
    // Where a vote has lapsed, somebody else may have been granted the lock since.
    const votes = this.live(ballot)
    const { token: before } = ballot
    ballot.token = undefined
    if (votes.length < this.#ballots.majority) return
    const shared = this.#sharedToken(ballot)
    const token = shared ?? this.#largest(votes)
    const agreed = votes.filter(vote => vote.token === token)
    if (agreed.length >= this.#ballots.majority) {
      const deadline = untilMajority(
        agreed.map(vote => vote.deadline),
        this.#ballots.majority,
      )
      ballot.granted = { granted: true, token, deadline, via: viaOf(votes) }
      ballot.putBack = ballot.looks = 0
      tellOutcome(ballot.claim, 'granted', before !== undefined)
      for (const seat of ballot.seats) seat.counted = seat.vote?.token === token
    } else if (shared !== undefined || !this.#mayShare(ballot)) {
      ballot.token = token
      this.#agree(ballot, token, shared !== undefined)
    }
  }

  /** Grants a claim whose leases have ended already: its caller learns of that from the deadline. */
  grantLapsed(ballot: Ballot): void {
    const votes = this.votes(ballot)
    ballot.granted = { granted: true, token: this.#largest(votes), deadline: this.until(ballot), via: viaOf(votes) }
  }

  /**
   * Writes the token to the servers that have the claim with less; with more, only if a majority has it with this one already. Before that,
   * those that have more may be the only ones that know of the latest grant.
   */
  #agree(ballot: Ballot, token: number, lower: boolean): void {
    for (const [i, seat] of ballot.seats.entries()) {
      const { vote } = seat
      if (!vote || vote.token === token || seat.agreeing || (vote.token > token && !lower)) continue
      seat.agreeing = true
      this.#ballots.ask(ballot, i, vote.token < token ? 'raise' : 'same', token, () => {
        seat.agreeing = false
      })
    }
  }

  /** The one above which every later grant of any majority is: that of a majority if it has one, else the largest. */
  #largest(votes: readonly Granted[]): number {
    const tokens = votes.map(({ token }) => token)
    const most = tokens.find(token => tokens.filter(same => same === token).length >= this.#ballots.majority)
    return most ?? Math.max(...tokens)
  }

  /** That of the other holds of the claim's owner, while a majority has one. Undefined: it has no other. */
  #sharedToken(ballot: Ballot): number | undefined {
    const { id, key, owner } = ballot.claim
    if (owner === id) return undefined
    for (const other of this.#ballots.all) {
      const token = other.granted?.token ?? other.token
      if (other === ballot || other.over || token === undefined) continue
      if (other.claim.key === key && other.claim.owner === owner && this.until(other) > this.#clock.now()) return token
    }
    return undefined
  }

  /**
   * Another client may be granted the lock for the same owner in this moment, and has to come to the same token. What both see is what the
   * servers have, if they look at all of them: so those that are missing are waited for, a little.
   */
  #mayShare(ballot: Ballot): boolean {
    const { claim, seats } = ballot
    if (claim.owner === claim.id || seats.every(({ vote }, i) => vote || !this.#ballots.members[i]?.up)) return false
    const now = this.#clock.now()
    if (ballot.sharesUntil === undefined) {
      ballot.sharesUntil = now + SHARING
      this.#clock.after(SHARING, () => this.#ballots.changed(ballot))
    }
    return now < ballot.sharesUntil
  }

  /**
   * A server that counts by now may have voted before it did, with a token that is smaller than one that it has forgotten: it votes once
   * more, with the present floor (I2). Most of the lease is over by then, and it is given all of it again.
   */
  #askYoung(ballot: Ballot): void {
    if (ballot.over || ballot.granted) return
    for (const [i, seat] of ballot.seats.entries()) {
      if (!seat.vote || seat.counted || seat.agreeing || !this.#ballots.counts(i)) continue
      const { epoch, standing } = this.#ballots.members[i] as Member
      if (seat.epoch === epoch && standing.countedAt(seat.votedAt)) {
        seat.counted = true
        continue
      }
      const floor = this.#floor.next
      // As soon as the clocks have been read.
      if (floor === 0) return
      seat.agreeing = true
      const raise = () => {
        this.#ballots.ask(ballot, i, 'raise', floor, () => {
          seat.agreeing = false
        })
      }
      const hold = { key: ballot.claim.key, id: ballot.claim.id }
      const { kind } = this.#ballots.places[i] as Place
      kind.renew([{ hold, token: seat.vote.token, ms: ballot.claim.lease }]).then(raise, raise)
    }
  }
}

function viaOf(votes: readonly Granted[]): Via {
  for (const via of ['reentry', 'expiry', 'handoff'] as const) if (votes.some(vote => vote.via === via)) return via
  return 'immediate'
}

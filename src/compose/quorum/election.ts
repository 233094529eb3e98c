/**
 * Grants the lock to a claim when a majority has voted for the claim with the same token, and the leases of that
 * majority still run. If a majority has voted with different tokens, makes its servers agree on one token. ballots.ts
 * gives the reason.
 */
import type { Clock } from '../../clock.ts'
import type { Granted, Via } from '../../kind.ts'
import { type Ballot, type BallotBox, untilMajority } from './ballot.ts'
import type { Floor } from './floor.ts'
import type { Member } from './member.ts'
import { tellOutcome } from './outcomes.ts'
import type { Place } from './place.ts'

/** How long this client waits for missing votes before it grants a claim, in ms (`#mayShare`). */
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

  /** Checks again whether the claim can be granted. Called after its votes or its state have changed. */
  changed(ballot: Ballot): void {
    this.#askYoung(ballot)
    this.#elect(ballot)
    // A vote that arrives after the grant may have another token. `#agree` replaces that token.
    if (ballot.granted) this.#agree(ballot, ballot.granted.token, true)
  }

  /**
   * Returns the time until which a majority has granted the claim, as far as this client knows; 0: no majority has
   * granted it.
   */
  until(ballot: Ballot): number {
    const votes = this.votes(ballot)
    return untilMajority(
      votes.map(({ deadline }) => deadline),
      this.#ballots.majority,
    )
  }

  /** Returns the valid votes for the claim (`Seat.counted`). */
  votes({ seats }: Ballot): Granted[] {
    return seats.flatMap(({ vote, counted }) => (vote && counted ? [vote] : []))
  }

  /** Returns the valid votes for the claim whose leases have not ended. */
  live(ballot: Ballot): Granted[] {
    const now = this.#clock.now()
    return this.votes(ballot).filter(({ deadline }) => deadline > now)
  }

  /** Grants the claim if a majority has voted with the same token. If their tokens differ, makes the servers agree. */
  #elect(ballot: Ballot): void {
    if (ballot.over || ballot.granted) return
    // A server whose vote has lapsed may have granted the lock to another claim since, so only live votes count.
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

  /**
   * Grants a claim although the leases of some of its votes have ended. The deadline of the grant shows whether the
   * leases of a majority still run.
   */
  grantLapsed(ballot: Ballot): void {
    const votes = this.votes(ballot)
    ballot.granted = { granted: true, token: this.#largest(votes), deadline: this.until(ballot), via: viaOf(votes) }
  }

  /**
   * Writes the token to the servers that have voted with a smaller one. If `lower` is set, also replaces larger tokens.
   * A caller may set `lower` only when a majority has the token already. Before that, the servers with larger tokens
   * may be the only ones that know of the latest grant.
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

  /**
   * Returns the token for the grant. Once a majority of the servers has this token, every later grant by any majority
   * has a larger one. If a majority of the servers has already voted with the same token, returns that token. Otherwise
   * returns the largest token of all votes.
   */
  #largest(votes: readonly Granted[]): number {
    const tokens = votes.map(({ token }) => token)
    const most = tokens.find(token => tokens.filter(same => same === token).length >= this.#ballots.majority)
    return most ?? Math.max(...tokens)
  }

  /**
   * Looks for another claim of the same owner for which a majority has voted. Returns its token, or undefined if there
   * is no such claim.
   */
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
   * Returns whether this client waits for missing votes before it grants the claim, for at most SHARING ms. At the same
   * moment, another client may get the lock for the same owner. All holds of an owner have the same token, so both
   * clients have to choose the same one. They do so if both know the votes of all servers.
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
   * Makes early votes valid once the votes of their servers count. A vote is early if the server gave it while its
   * votes did not count (standing.ts). This method first renews the vote, because most of its lease may have passed.
   * Then it raises the token of the vote to the floor. This is necessary because the server may have lost its data: the
   * token of the vote may be smaller than a token that the server had issued before (I2).
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
      // The floor is unknown, because no server's clock has been read yet. Once a clock has been read, `changed` calls
      // this method again.
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

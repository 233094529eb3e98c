/**
 * All claims of this client on a quorum, and the servers' votes for them. Everything that a server sends arrives here:
 * answers, messages, and what a release reports. The same rules apply to all of it:
 *
 *   1. A vote for a claim that is still wanted is recorded. Any other vote is taken back.
 *   2. When a majority has voted, its servers are made to agree on one token. This is the largest token of the votes.
 *      It is written to the servers that have voted with a smaller token (I2).
 *   3. When a majority agrees, the claim is granted if the leases of a majority still run. The grant goes to the call
 *      that waits for it; if no call waits, the listener receives the grant.
 *
 * An example shows why rule 2 is needed. Of three servers, server 1 grants the lock to A with token 5, and server 2
 * grants it to A with token 9. Suppose that A used token 9 at once, without writing it to another server. After A's
 * release, servers 1 and 3 might grant the lock to B. These two servers know only of token 5, so B might get token 6,
 * which is smaller than 9. So A holds the lock only once a majority has token 9.
 *
 * clearing.ts takes claims back, looks.ts asks the servers about waiters, and poll.ts has the calls that wait for a
 * grant.
 */
import type { Clock } from '../../clock.ts'
import type { Claim, Granted, HoldName, Queued, VoteMode } from '../../kind.ts'
import { isFinal } from '../../redis/refusals.ts'
import {
  type Answer,
  Ballot,
  type BallotBox,
  commonToken,
  confirmedDeadline,
  type Refusal,
  type Seat,
  tellOutcome,
  untilMajority,
  viaOf,
} from './ballot.ts'
import { Clearing } from './clearing.ts'
import type { Floor } from './floor.ts'
import { Looks } from './looks.ts'
import { DRIFT, type Member, type Place } from './member.ts'
import { mostOf } from './round.ts'

/**
 * How long this client waits for missing votes before it grants a claim for which other clients may call too, in ms
 * (`#awaits`).
 */
const SHARING = 20

export interface BallotsListener {
  /** Called when a claim has been granted while no call waited for it. */
  won(claim: Claim, grant: Granted): void
  /** Called when a server has refused a request of a claim. */
  refused(server: number, error: Error): void
}

export class Ballots implements BallotBox {
  readonly places: readonly Place[]
  readonly members: readonly Member[]
  readonly majority: number
  readonly clearing: Clearing
  readonly looks: Looks
  readonly #clock: Clock
  readonly #floor: Floor
  readonly #listener: BallotsListener
  readonly #all = new Map<string, Ballot>()
  /** The claims by owner and lock. */
  readonly #sharing = new Map<string, Set<Ballot>>()
  readonly #watchers = new Map<Ballot, Set<() => void>>()

  constructor(places: readonly Place[], clock: Clock, floor: Floor, waiterTtl: number, listener: BallotsListener) {
    this.places = places
    this.members = places.map(({ member }) => member)
    this.majority = Math.floor(places.length / 2) + 1
    this.#clock = clock
    this.#floor = floor
    this.clearing = new Clearing(places, clock, waiterTtl, ballot => this.#forget(ballot))
    this.looks = new Looks(this, clock, this.clearing)
    this.#listener = listener
  }

  get all(): Iterable<Ballot> {
    return this.#all.values()
  }

  get(id: string): Ballot | undefined {
    return this.#all.get(id)
  }

  of(claim: Claim): Ballot {
    let ballot = this.#all.get(claim.id)
    if (!ballot) {
      ballot = new Ballot(claim, this, this.#clock)
      this.#all.set(claim.id, ballot)
      const same = sharedBy(claim)
      this.#sharing.set(same, (this.#sharing.get(same) ?? new Set()).add(ballot))
    }
    ballot.over = false
    return ballot
  }

  /** Calls `changed` after every change of the ballot, until the returned function is called. */
  watch(ballot: Ballot, changed: () => void): () => void {
    const watchers = this.#watchers.get(ballot) ?? new Set()
    this.#watchers.set(ballot, watchers.add(changed))
    return () => {
      if (watchers.delete(changed) && watchers.size === 0) this.#watchers.delete(ballot)
    }
  }

  /**
   * Checks again which claims can be granted. Called when a server was connected or lost, when its clock was read, and
   * when its votes begin to count.
   */
  reconsider(): void {
    for (const ballot of [...this.#all.values()]) this.changed(ballot)
  }

  /**
   * Sends a request of the claim to the server. If the server cannot be reached, a request of a new call is kept back
   * until it can, and dropped as soon as no caller wants the claim any more.
   */
  ask(ballot: Ballot, server: number, mode: VoteMode, floor: number, answered?: (answer: Answer) => void): void {
    const seat = ballot.seats[server] as Seat
    const failed = (error: Error) => {
      answered?.(error)
      this.changed(ballot)
    }
    if (seat.clearing) {
      const cleared = () => {
        // The caller has given up, and may have closed the client. If the server were asked now and granted the lock,
        // nothing would take that grant back (I7).
        if (ballot.over) failed(new Error('the caller no longer waits for the lock, so the server is not asked'))
        else this.ask(ballot, server, mode, floor, answered)
      }
      const { trying, clearing } = seat
      Promise.all([trying, clearing]).then(cleared, failed)
      return
    }
    const member = this.members[server] as Member
    const kept = (mode === 'try' || mode === 'queue') && member.outOfReach
    const send = () => this.#send(ballot, server, mode, floor, answered)
    if (kept) seat.drops.push(member.keep(send, failed))
    else send()
  }

  #send(ballot: Ballot, server: number, mode: VoteMode, floor: number, answered?: (answer: Answer) => void): void {
    const seat = ballot.seats[server] as Seat
    const { touched } = seat
    seat.asked += 1
    const { member, vote } = this.places[server] as Place
    // A connection that rejects requests at once sends none.
    seat.touched ||= !member.rejects
    const sent = this.#clock.now()
    const settled = (answer: Answer) => {
      seat.asked -= 1
      seat.heard = sent
      // A server that refuses a 'try' keeps neither a vote nor a queue entry for the claim. So nothing has to be taken
      // back from it, and a client that is refused sends each server only one request (I9).
      const refused = mode === 'try' && answer && 'granted' in answer && !answer.granted
      if (refused && !touched && !seat.vote && !seat.clearing && seat.asked === 0) seat.touched = false
      const denied = answer instanceof Error && isFinal(answer.cause)
      seat.refusing = denied && (seat.refusing || !touched)
      if (denied) this.#listener.refused(server, answer)
      else if (!(answer instanceof Error)) member.refusal = undefined
      this.#answered(ballot, server, answer, mode, sent)
      answered?.(answer)
      this.changed(ballot)
      if (seat.asked > 0) return
      seat.lost = 0
      seat.idle?.()
    }
    const returned = mode === 'place' ? seat.vote?.token : undefined
    if (returned !== undefined) {
      seat.vote = undefined
      seat.returned = returned
    }
    vote(ballot.claim, mode, floor, returned).then(settled, settled)
  }

  /** Records that the server has granted the claim, or confirmed the grant, with a lease of `lease` ms. */
  voted(ballot: Ballot, server: number, grant: Granted, lease = ballot.claim.lease): void {
    const seat = ballot.seats[server] as Seat
    // The claim is already being taken back or released, and that also ends this grant. A separate `leave` for this
    // grant could make the release report that there was no hold (I5): if the server does not know the script of the
    // release yet, the release is sent again, and the `leave` may run first.
    if (seat.clearing || seat.releasing) return
    if (grant.token <= seat.returned) return
    seat.touched = true
    if (ballot.over) {
      this.clearing.clear(ballot, server)
      return
    }
    const { vote } = seat
    const { epoch } = (this.places[server] as Place).member
    const confirms = vote !== undefined && seat.counted && seat.epoch === epoch
    seat.counted = ballot.granted ? grant.token === ballot.granted.token : confirms || ballot.counts(server)
    seat.epoch = epoch
    // An answer that only confirms the vote, or only changes its token, is not a new grant. So the vote keeps its
    // `via`.
    const via = vote && (vote.token === grant.token || seat.agreeing) ? vote.via : grant.via
    const now = this.#clock.now()
    const asked = grant.deadline - lease * DRIFT
    const deadline = vote && grant.ends !== undefined ? confirmedDeadline(vote, grant.ends, asked, now) : asked
    seat.vote = { granted: true, token: grant.token, via, deadline }
    seat.latest = Math.max(seat.latest, grant.token)
    seat.votedAt = now
  }

  refused(ballot: Ballot, server: number, { sent, clock }: Refusal, position = 0): void {
    const seat = ballot.seats[server] as Seat
    if (seat.clearing) return
    seat.seen = { sent, clock }
    seat.position = position
    // A vote that arrived after the request was sent may be newer than this refusal. It may have come in a message
    // while the request was under way. Only an older vote is removed.
    if (seat.vote && seat.votedAt < sent) seat.vote = undefined
  }

  /**
   * Records that the caller of the claim still waits. If the claim is granted all the same, the caller has not received
   * the grant. Then the grant is reported to the caller once more. But if its lease has ended, the grant is forgotten.
   */
  waits({ claim, ticket }: Queued): void {
    const ballot = this.of(claim)
    ballot.ticket ??= ticket
    if (!ballot.granted) return
    ballot.reported = false
    if (ballot.until <= this.#clock.now()) ballot.granted = undefined
  }

  /**
   * Called when a message of the server has reported that the hold is lost. An answer that is under way may be older than
   * this message.
   */
  taken(server: number, id: string, token: number): void {
    const seat = this.#all.get(id)?.seats[server]
    if (!seat) return
    if (seat.asked > 0) seat.lost = Math.max(seat.lost, token)
    if (!seat.vote || seat.vote.token > token) return
    seat.vote = undefined
    seat.goneAt = this.#clock.now()
  }

  /** Takes the claim back from every server. Resolves once a majority has neither a vote nor a queue entry for it. */
  end(ballot: Ballot): Promise<void> {
    ballot.over = true
    ballot.granted = ballot.token = ballot.ticket = ballot.awaitsSince = undefined
    ballot.awaiting?.cancel()
    ballot.reported = false
    this.changed(ballot)
    const clears = ballot.seats.map((_, i) => this.clearing.clear(ballot, i))
    // `#forget` comes after the calls of `clear`, so that it keeps the ballot while the claim is being taken back. A
    // new attempt with the same claim finds this ballot, and waits until the claim has been taken back.
    this.#forget(ballot)
    return mostOf(clears, this.majority)
  }

  /**
   * Takes a lost hold back from every server, in the next turn of the event loop. By then the holder has been notified.
   * If the votes were given back earlier, another client could get the lock with them while the holder still works (I1,
   * I8).
   */
  endLost(ballot: Ballot): void {
    const ended = new Promise<void>(resolve => {
      this.#clock.after(0, () => {
        this.end(ballot).catch(() => {})
        resolve()
      })
    })
    for (const i of this.places.keys()) this.clearing.releasing(i, ended.then())
  }

  /** Records that the hold has been released on this server. */
  released(ballot: Ballot, server: number): void {
    const seat = ballot.seats[server] as Seat
    seat.drop()
    seat.vote = undefined
    // If a request is still unanswered, the server may run it after the release.
    if (seat.asked > 0) this.clearing.clear(ballot, server)
    else seat.touched = false
    this.#forget(ballot)
  }

  /** Records that a release by this client has made one of its own waiters the holder on this server. */
  succeeded(server: number, { key, id }: HoldName, grant: Granted): void {
    const ballot = this.#all.get(id)
    if (!ballot) {
      const { kind } = this.places[server] as Place
      kind.giveBack({ key, id }).catch(() => {})
      return
    }
    this.voted(ballot, server, grant)
    this.changed(ballot)
  }

  #answered(ballot: Ballot, server: number, answer: Answer, mode: VoteMode, sent: number): void {
    const seat = ballot.seats[server] as Seat
    // Answers come in the order of their requests, so no older answer can follow. (`Looks` ignores those of heartbeats.)
    if (mode === 'place') seat.returned = 0
    if (answer instanceof Error) {
      // It is unknown whether the server has run the request. If the request replaces the vote's token, the token is
      // unknown, too.
      if (mode !== 'try' && mode !== 'queue') seat.vote = undefined
      if (ballot.over) this.clearing.clear(ballot, server)
    } else if (answer?.granted) {
      if (mode === 'queue' && answer.via !== 'reentry') seat.ticket ??= answer.token
      if (answer.token > seat.lost) this.voted(ballot, server, answer)
    } else if (answer) {
      if (mode === 'queue') seat.ticket = Number(answer.ticket)
      if ((mode === 'queue' || mode === 'place') && ballot.over && !seat.clearing) this.clearing.clear(ballot, server)
      else this.refused(ballot, server, answer, answer.position)
    } else if (seat.vote && seat.votedAt < sent) seat.vote = undefined
  }

  changed(ballot: Ballot): void {
    this.#askYoung(ballot)
    this.#elect(ballot)
    // A vote that arrives after the grant may have another token. `#agree` replaces that token.
    if (ballot.granted) this.#agree(ballot, ballot.granted.token, true)
    else this.looks.order(ballot)
    const watchers = this.#watchers.get(ballot)
    if (watchers) for (const changed of [...watchers]) changed()
    else if (ballot.granted && !ballot.reported) {
      ballot.reported = true
      this.#listener.won(ballot.claim, ballot.granted)
    } else if (ballot.ticket !== undefined && !ballot.granted && !ballot.over) this.looks.hope(ballot)
  }

  /** Grants the claim if a majority has voted with the same token. If their tokens differ, makes the servers agree. */
  #elect(ballot: Ballot): void {
    if (ballot.over || ballot.granted) return
    const { token: before, claim } = ballot
    ballot.token = undefined
    if (ballot.voted < this.majority) return
    // A server whose vote has lapsed may have granted the lock to another claim since, so only live votes count.
    const votes = ballot.live
    if (votes.length < this.majority) return
    const shared = this.sharedToken(ballot)
    const token = shared ?? Math.max(this.#raised(ballot), commonToken(votes, this.majority))
    const agreed = votes.filter(vote => vote.token === token)
    if (agreed.length >= this.majority) {
      const deadline = untilMajority(
        agreed.map(vote => vote.deadline),
        this.majority,
      )
      ballot.granted = { granted: true, token, deadline, via: viaOf(votes) }
      ballot.putBack = ballot.looks = 0
      ballot.awaiting?.cancel()
      tellOutcome(ballot.claim, 'granted', before !== undefined)
      for (const seat of ballot.seats) seat.counted = seat.vote?.token === token
    } else if (shared !== undefined || claim.owner === claim.id || !this.#awaits(ballot)) {
      ballot.token = token
      // Servers that are asked to raise their token may have it before they answer. So from now on, a smaller token is
      // no longer granted, although a majority may vote with it: soon no majority would have it.
      ballot.raised = Math.max(ballot.raised, token)
      this.#agree(ballot, token, shared !== undefined)
    }
  }

  /**
   * Grants a claim although the leases of some of its votes have ended. The deadline of the grant shows whether the
   * leases of a majority still run.
   */
  grantLapsed(ballot: Ballot): void {
    const votes = ballot.votes()
    ballot.granted = {
      granted: true,
      token: commonToken(votes, this.majority),
      deadline: ballot.until,
      via: viaOf(votes),
    }
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
      this.ask(ballot, i, vote.token < token ? 'raise' : 'same', token, () => {
        seat.agreeing = false
      })
    }
  }

  /**
   * Returns the token of another claim of the same owner for which a majority has voted, or undefined if there is no such
   * claim.
   */
  sharedToken(ballot: Ballot): number | undefined {
    for (const other of this.#others(ballot)) {
      const token = other.granted?.token ?? other.token
      if (!other.over && token !== undefined && other.until > this.#clock.now()) return token
    }
    return undefined
  }

  /** Returns the largest token that servers were asked to write for a hold of the owner. */
  #raised(ballot: Ballot): number {
    return Math.max(ballot.raised, ...this.#others(ballot).map(({ raised }) => raised))
  }

  /** Returns the other claims of the same owner for the lock. A server writes a token for all holds of the owner. */
  #others(ballot: Ballot): Ballot[] {
    const { claim } = ballot
    if (claim.owner === claim.id) return []
    return [...(this.#sharing.get(sharedBy(claim)) ?? [])].filter(other => other !== ballot)
  }

  /**
   * Returns whether this client waits for missing votes before it makes the servers agree, for at most SHARING ms. At the
   * same moment, another client may get the lock for the same owner. All holds of an owner have the same token, so both
   * clients have to choose the same one. They do so if both know the votes of all servers.
   */
  #awaits(ballot: Ballot): boolean {
    // A connection that is being made for the first time will probably be up soon.
    const awaited = ({ up, problem, away }: Member) => (up ? !problem : !away)
    if (!ballot.seats.some(({ vote }, i) => !vote && awaited(this.members[i] as Member))) return false
    ballot.awaitsSince ??= this.#clock.now()
    const left = ballot.awaitsSince + SHARING - this.#clock.now()
    ballot.awaiting?.cancel()
    if (left > 0) ballot.awaiting = this.#clock.after(left, () => this.changed(ballot))
    return left > 0
  }

  /**
   * Makes early votes valid once the votes of their servers count. A vote is early if the server gave it while its
   * votes did not count (`Standing`). This method first renews the vote, because most of its lease may have passed.
   * Then it raises the token of the vote to the floor. This is necessary because the server may have lost its data: the
   * token of the vote may be smaller than a token that the server had issued before (I2). Meanwhile a heartbeat may make
   * the vote valid, too. But from now on, the claim is granted with no smaller token than the floor: the server would
   * soon replace it, and a nested call would find no majority with the hold's token.
   */
  #askYoung(ballot: Ballot): void {
    if (ballot.over || ballot.granted) return
    for (const [i, seat] of ballot.seats.entries()) {
      if (!seat.vote || seat.counted || seat.agreeing || !ballot.counts(i)) continue
      const { epoch, standing } = this.members[i] as Member
      if (seat.epoch === epoch && standing.countedAt(seat.votedAt)) {
        seat.counted = true
        continue
      }
      const floor = this.#floor.next
      // The floor is unknown, because no server's clock has been read yet. Once a clock has been read, `changed` calls
      // this method again.
      if (floor === 0) return
      seat.agreeing = true
      ballot.raised = Math.max(ballot.raised, floor)
      const raise = () => {
        this.ask(ballot, i, 'raise', floor, () => {
          seat.agreeing = false
        })
      }
      const hold = { key: ballot.claim.key, id: ballot.claim.id }
      const { kind } = this.places[i] as Place
      kind.renew([{ hold, token: seat.vote.token, ms: ballot.claim.lease }]).then(raise, raise)
    }
  }

  #forget(ballot: Ballot): void {
    const { claim, over, polls, seats } = ballot
    if (!over || polls > 0) return
    for (const { clearing, asked } of seats) if (clearing || asked > 0) return
    if (this.#all.get(claim.id) === ballot) this.#all.delete(claim.id)
    const same = this.#sharing.get(sharedBy(claim))
    if (same?.delete(ballot) && same.size === 0) this.#sharing.delete(sharedBy(claim))
  }
}

function sharedBy({ key, owner }: Claim): string {
  return `${owner} ${key}`
}

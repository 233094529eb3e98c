/**
 * The claims of this client, each with its seats (seat.ts). Everything that a server sends arrives here: answers,
 * messages, and what a release reports. The same rules apply to all of it:
 *
 *   1. A vote for a claim that is still wanted is recorded. Any other vote is taken back.
 *   2. When a majority has voted, its servers are made to agree on one token. This is the largest token of the votes.
 *      It is written to the servers that have voted with a smaller token (I2).
 *   3. When a majority agrees, the claim is granted if the leases of a majority still run. The grant goes to the attempt
 *      that waits for it; if there is none, the listener receives the grant.
 *
 * An example shows why rule 2 is needed. Of three servers, server 1 grants the lock to A with token 5, and server 2
 * grants it to A with token 9. Suppose that A used token 9 at once, without writing it to another server. After A's
 * release, servers 1 and 3 might grant the lock to B. These two servers know only of token 5, so B might get token 6,
 * which is smaller than 9. So A holds the lock only once a majority has token 9.
 */
import { channel } from 'node:diagnostics_channel'
import type { Clock } from '../../clock.ts'
import { LockClosedError } from '../../errors.ts'
import type { Claim, Granted, HeartbeatEntry, HoldName, Refused, Vote, VoteMode } from '../../kind.ts'
import { isFinal } from '../../redis/refusals.ts'
import { DRIFT } from './eligibility.ts'
import type { Member } from './member.ts'
import { type Electorate, majorityOf, untilMajority } from './round.ts'
import { Ballot, type Seat, type SeatVote } from './seat.ts'

/**
 * The pause between two attempts to take a claim back, in ms. It also passes before a server is asked again after its
 * connection was lost during the `leave`: the `leave` of the old connection may arrive late, and end a new vote.
 */
const PAUSE = 1_000

export type VoteAnswer = Vote | Error

export interface BallotsListener {
  /** Called when a claim has been granted while no attempt waited for it. */
  won(claim: Claim, grant: Granted): void
  /** Called when a server has refused to run a request of a claim. */
  denied(member: Member, error: Error): void
  /** Called when a claim in the queue has changed and is not granted (waiters.ts). */
  waits(ballot: Ballot): void
}

export class Ballots implements Electorate {
  readonly members: readonly Member[]
  readonly majority: number
  readonly clock: Clock
  readonly #waiterTtl: number
  readonly #listener: BallotsListener
  readonly #all = new Map<string, Ballot>()
  /** The claims by owner and lock. */
  readonly #sharing = new Map<string, Set<Ballot>>()
  /** The releases and withdrawals under way, each with its server. */
  readonly #leaving = new Map<Promise<void>, Member>()

  constructor({ members, majority, clock }: Electorate, waiterTtl: number, listener: BallotsListener) {
    this.members = members
    this.majority = majority
    this.clock = clock
    this.#waiterTtl = waiterTtl
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
      ballot = new Ballot(claim, this)
      this.#all.set(claim.id, ballot)
      const same = sharedBy(claim)
      this.#sharing.set(same, (this.#sharing.get(same) ?? new Set()).add(ballot))
    }
    ballot.over = false
    return ballot
  }

  /**
   * Checks again which claims can be granted. Called when a server was connected or lost, when its clock was read, and
   * when its votes begin to count.
   */
  reconsider(): void {
    for (const ballot of [...this.#all.values()]) this.changed(ballot)
  }

  // The requests of a claim.

  /**
   * Sends a request of the claim to the server, after all earlier ones. An attempt is kept back while the server cannot
   * be asked for a vote (`Member.whenReady`), and dropped as soon as no caller wants the claim any more. `answered`
   * receives the answer, or the error.
   */
  ask(seat: Seat, mode: VoteMode, floor: number, answered?: (answer: VoteAnswer) => void): void {
    const { ballot, member } = seat
    const failed = (error: Error) => {
      answered?.(error)
      this.changed(ballot)
    }
    seat.whenFree(error => {
      if (error) return failed(error)
      // The caller has given up, and may have closed the client. If the server were asked now and granted the lock,
      // nothing would take that grant back (I7).
      if (ballot.over) return failed(new Error('the caller no longer waits for the lock, so the server is not asked'))
      seat.busy = true
      if (mode !== 'try' && mode !== 'queue') return this.#send(seat, mode, floor, answered)
      member.whenReady(seat, 'vote', error => {
        if (!error) return this.#send(seat, mode, floor, answered)
        seat.free(error)
        failed(error)
      })
    })
  }

  #send(seat: Seat, mode: VoteMode, floor: number, answered?: (answer: VoteAnswer) => void): void {
    const { ballot, member } = seat
    // A connection that rejects requests at once sends none.
    if (!member.rejects) seat.happens('asks')
    const sent = this.clock.now()
    const settled = (answer: VoteAnswer) => {
      const given = !(answer instanceof Error) && answer?.granted && (mode === 'try' || mode === 'queue')
      const again = given && !ballot.over && this.#isYoung(seat)
      this.#answered(seat, answer, mode, sent)
      if (again) this.ask(seat, mode, floor, answered)
      else answered?.(answer)
      seat.free(answer instanceof Error ? answer : undefined)
      this.changed(ballot)
      this.#forget(ballot)
    }
    const returned = mode === 'place' ? seat.vote?.token : undefined
    if (returned !== undefined) seat.lose()
    member.kind.vote!(ballot.claim, mode, floor, returned).then(settled, settled)
  }

  #answered(seat: Seat, answer: VoteAnswer, mode: VoteMode, sent: number): void {
    const { ballot, member } = seat
    const attempt = mode === 'try' || mode === 'queue'
    if (answer instanceof Error) {
      const denied = isFinal(answer.cause)
      if (denied) this.#listener.denied(member, answer)
      seat.happens(denied ? 'denies' : 'fails')
      // It is unknown whether the server has run the request. If the request replaces the vote's token, the token is
      // unknown, too.
      if (!attempt) seat.lose()
      return
    }
    member.refusal = undefined
    if (answer?.granted) {
      if (mode === 'queue' && answer.via !== 'reentry' && !this.#isYoung(seat)) seat.ticket ??= answer.token
      if (answer.token > seat.lost) this.voted(seat, answer, { confirms: !attempt })
    } else if (answer) {
      if (mode === 'queue') seat.ticket = Number(answer.ticket)
      this.refused(seat, answer, answer.position)
    } else if (seat.vote && seat.vote.at < sent) seat.lose()
    if (ballot.over) this.leave(seat).catch(() => {})
  }

  /**
   * Records that the server has granted the claim, or confirmed the grant, with a lease of `lease` ms. `confirms`: the
   * answer at most changes the token of the vote.
   */
  voted(
    seat: Seat,
    grant: Granted,
    { lease = seat.ballot.claim.lease, confirms = false }: { lease?: number; confirms?: boolean } = {},
  ): void {
    seat.happens('grants')
    // What ends the claim here already also ends this grant. A separate `leave` could make the release report that there
    // was no hold (I5): if the server does not know the script of the release yet, it is sent again, behind the `leave`.
    if (seat.leaving || seat.ballot.over || this.#isYoung(seat)) return void this.leave(seat).catch(() => {})
    const { vote } = seat
    const now = this.clock.now()
    const asked = grant.deadline - lease * DRIFT
    const { token } = grant
    seat.latest = Math.max(seat.latest, token)
    seat.vote = {
      token,
      // An answer that only confirms the vote, or only changes its token, is no new grant.
      via: vote && (vote.token === token || confirms) ? vote.via : grant.via,
      deadline: vote && grant.ends !== undefined ? confirmedDeadline(vote, grant.ends, asked, now) : asked,
      at: now,
    }
  }

  /**
   * Whether a vote of the server for the claim would not count. A server that was restarted after it had been asked may have
   * forgotten a holder, or a larger token (I1, I2). But any server may have a hold that is granted.
   */
  #isYoung({ ballot, member }: Seat): boolean {
    return !ballot.granted && !member.counts
  }

  /** Takes a claim that waits back from servers that do not count, so that nothing of it is left there when they do. */
  #leaveYoung(ballot: Ballot): void {
    if (ballot.granted || ballot.over) return
    for (const seat of ballot.seats) {
      const young = seat.member.counts === false
      if (young && !seat.busy && seat.state !== 'nothing') this.leave(seat).catch(() => {})
    }
  }

  /** Records that the server has refused the claim, or queued it at `position`. */
  refused(seat: Seat, { sent, clock }: Pick<Refused, 'sent' | 'clock'>, position = 0): void {
    if (seat.state === 'leaving') return
    seat.refused = { sent, clock }
    seat.position = position
    // A vote that has come in a message while the request was under way may be newer than this refusal.
    if (seat.vote && seat.vote.at < sent) seat.lose()
    if (!seat.vote) seat.happens(position > 0 ? 'queues' : 'refuses')
  }

  /**
   * Records that the caller of the claim still waits. If the claim is granted all the same, the caller has not received
   * the grant. Then the grant is reported to the caller once more. But if its lease has ended, the grant is forgotten.
   */
  waits({ claim, ticket }: HeartbeatEntry): void {
    const ballot = this.of(claim)
    ballot.ticket ??= ticket
    if (!ballot.granted) return
    ballot.reported = false
    if (ballot.until <= this.clock.now()) ballot.granted = undefined
  }

  /** Called when a message of the server has reported that the hold is lost. The answer under way may be older. */
  taken(server: number, id: string, token: number): void {
    const seat = this.#all.get(id)?.seats[server]
    if (!seat) return
    if (seat.busy) seat.lost = Math.max(seat.lost, token)
    if (!seat.vote || seat.vote.token > token) return
    seat.lose()
    seat.goneAt = this.clock.now()
  }

  /** Records that a release by this client has made one of its own waiters the holder on this server. */
  succeeded(server: number, { key, id }: HoldName, grant: Granted): void {
    const seat = this.#all.get(id)?.seats[server]
    if (!seat) return void this.members[server]?.kind.giveBack({ key, id }).catch(() => {})
    this.voted(seat, grant)
    this.changed(seat.ballot)
  }

  // The election.

  changed(ballot: Ballot): void {
    this.#leaveYoung(ballot)
    this.#elect(ballot)
    // A vote that arrives after the grant may have another token, which is replaced.
    if (ballot.granted) this.#agree(ballot, ballot.granted.token, true)
    else this.#order(ballot)
    this.#join(ballot)
    if (ballot.attempts.size > 0) for (const judge of [...ballot.attempts]) judge()
    else if (ballot.granted && !ballot.reported) {
      ballot.reported = true
      this.#listener.won(ballot.claim, ballot.granted)
    } else if (ballot.ticket !== undefined && !ballot.granted && !ballot.over) this.#listener.waits(ballot)
  }

  /** Grants the claim if a majority has voted with the same token. If their tokens differ, makes the servers agree. */
  #elect(ballot: Ballot): void {
    if (ballot.over || ballot.granted) return
    const { token: before, claim } = ballot
    ballot.token = undefined
    // A server whose vote has lapsed may have granted the lock to another claim since, so only live votes count.
    const votes = ballot.live
    if (votes.length < this.majority) return
    const shared = this.sharedToken(ballot)
    const token = shared ?? Math.max(this.#raised(ballot), commonToken(votes, this.majority))
    const agreed = votes.filter(vote => vote.token === token)
    if (agreed.length >= this.majority) {
      const ends = agreed.map(({ deadline }) => deadline)
      this.#grant(ballot, token, untilMajority(ends, this.majority), votes)
      tellOutcome(claim, 'granted', before !== undefined)
    } else {
      ballot.token = token
      // Servers that are asked to raise their token may have it before they answer. So from now on, a smaller token is
      // no longer granted, although a majority may vote with it: soon no majority would have it.
      ballot.raised = Math.max(ballot.raised, token)
      this.#agree(ballot, token, shared !== undefined)
    }
  }

  #grant(ballot: Ballot, token: number, deadline: number, votes: readonly SeatVote[]): void {
    const via = (['reentry', 'expiry', 'handoff'] as const).find(each => votes.some(vote => vote.via === each))
    ballot.granted = { granted: true, token, deadline, via: via ?? 'immediate' }
    ballot.looks = 0
  }

  /** Writes the hold to servers that were to be asked for a vote when they count: they may have a hold before. */
  #join({ seats, granted }: Ballot): void {
    for (const seat of seats) {
      if (!granted || seat.member.outOfReach || !seat.member.drop(seat)) continue
      seat.free()
      this.ask(seat, 'same', granted.token)
    }
  }

  /**
   * Writes the token to the servers that have voted with a smaller one. If `lower` is set, also replaces larger tokens.
   * A caller may set `lower` only when a majority has the token already. Before that, the servers with larger tokens
   * may be the only ones that know of the latest grant.
   */
  #agree(ballot: Ballot, token: number, lower: boolean): void {
    for (const seat of ballot.seats) {
      const { vote, busy } = seat
      if (!vote || busy || vote.token === token || (vote.token > token && !lower)) continue
      this.ask(seat, vote.token < token ? 'raise' : 'same', token)
    }
  }

  /**
   * Makes the servers agree on the order of waiters (I3). Two requests that cross on their way get different tickets on
   * each server: server 1 queues A before B, server 2 queues B before A. When the lock becomes free, each of the two
   * servers votes for its own first waiter. If only these two servers are alive, neither waiter gets a majority.
   *
   * So as soon as the join is answered, every server is told the latest of the claim's tickets. All servers then have
   * the same ticket for each claim, and so the same order. A vote that a server gave by an earlier ticket may belong to
   * a claim that is before this one by now. So such a vote is given back, and the claim queues again with its ticket.
   */
  #order(ballot: Ballot): void {
    const { ticket, over, attempts, token, seats } = ballot
    if (ticket === undefined || over || attempts.size > 0 || token !== undefined) return
    for (const seat of seats) if (seat.ticket !== undefined && seat.ticket !== Number(ticket)) this.place(seat)
  }

  /** Gives back a vote of the server, if there is one, and queues the claim there with its ticket. */
  place(seat: Seat): void {
    if (seat.busy) return
    const ticket = Number(seat.ballot.ticket)
    const { vote } = seat
    this.ask(seat, 'place', ticket, answer => {
      // If the server does not answer, the next heartbeat sends the ticket. If the server has voted in the meantime by
      // the earlier ticket, `#order` gives this vote back, too.
      if (answer instanceof Error) seat.ticket = undefined
      else if (vote || !answer?.granted) seat.ticket = ticket
    })
  }

  /**
   * Returns the token of another claim of the same owner for which a majority has voted, or undefined if there is no such
   * claim.
   */
  sharedToken(ballot: Ballot): number | undefined {
    for (const other of this.#others(ballot)) {
      const token = other.granted?.token ?? other.token
      if (!other.over && token !== undefined && other.until > this.clock.now()) return token
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

  // The end of a claim.

  /** Takes the claim back from every server. Resolves once a majority has neither a vote nor a queue entry for it. */
  end(ballot: Ballot): Promise<void> {
    this.finish(ballot)
    this.changed(ballot)
    const left = ballot.seats.map(seat => this.leave(seat))
    this.#forget(ballot)
    return majorityOf(this, left)
  }

  /** Records that no caller wants the claim any more. */
  finish(ballot: Ballot): void {
    ballot.over = true
    ballot.granted = ballot.token = ballot.ticket = undefined
    ballot.reported = false
  }

  /**
   * Takes a lost hold back from every server, in the next turn of the event loop. By then the holder has been notified.
   * If the votes were given back earlier, another client could get the lock with them while the holder still works (I1,
   * I8).
   */
  endLost(ballot: Ballot): void {
    this.clock.after(0, () => this.end(ballot).catch(() => {}))
  }

  /**
   * Takes the claim back from one server: its vote and its place in the queue. With `release`, a vote is released. If an
   * attempt fails, it is repeated in the background until the claim has lapsed. But the returned promise settles with the
   * current attempt, so that a caller does not wait long for a server that fails again and again.
   */
  leave(seat: Seat, release?: () => Promise<void>): Promise<void> {
    if (seat.member.drop(seat)) seat.free()
    if (seat.leaving) return seat.leaving
    seat.vote = seat.refused = seat.ticket = undefined
    if (seat.state === 'nothing' && !seat.busy) return Promise.resolve()
    const pointless = this.clock.now() + seat.ballot.claim.lease + this.#waiterTtl
    seat.leaving = new Promise((resolve, reject) => {
      seat.nextWhenFree(error => {
        this.#leave(seat, pointless, resolve, reject, release)
        if (error) reject(error)
      })
    })
    this.#follow(seat.leaving, seat.member)
    return seat.leaving
  }

  #leave(
    seat: Seat,
    pointless: number,
    resolve: () => void,
    reject: (error: Error) => void,
    release?: () => Promise<void>,
  ): void {
    const { ballot, member } = seat
    const { epoch } = member
    const hopeless = seat.state === 'denied'
    const left = () => {
      seat.happens('left')
      seat.leaving = undefined
      resolve()
      seat.free()
      this.#forget(ballot)
    }
    // The server has refused the request that was under way.
    if (seat.state === 'nothing') return left()
    seat.happens('leaves')
    seat.busy = true
    seat.vote = undefined
    const again = () => {
      seat.leaving = new Promise((resolve, reject) => this.#leave(seat, pointless, resolve, reject))
      this.#follow(seat.leaving, member)
    }
    const failed = (error: Error) => {
      reject(error)
      if (release) return again()
      const final = hopeless && isFinal(error.cause)
      if (final || error instanceof LockClosedError || this.clock.now() >= pointless) return left()
      seat.refuse(error)
      this.clock.after(PAUSE, again)
    }
    const answered = () => {
      if (release || member.epoch === epoch) left()
      else this.clock.after(PAUSE, left)
    }
    const asked = release ? release() : member.kind.leave(ballot.claim)
    asked.then(answered, failed)
  }

  /**
   * Resolves once all claims are taken back and all releases are answered. Does not wait for servers that are not
   * connected, or that have refused the latest attempt to take a claim back.
   */
  async rest(): Promise<void> {
    // By then, `endLost` has begun to take lost holds back.
    await new Promise<void>(resolve => this.clock.after(0, resolve))
    for (;;) {
      const under = [...this.#leaving].filter(([, member]) => member.up)
      if (under.length === 0) return
      await Promise.allSettled(under.map(([leaving]) => leaving))
    }
  }

  /** Makes `rest` wait for what leaves a server. Its caller waits only for a majority of the servers. */
  #follow(leaving: Promise<void>, member: Member): void {
    const over = () => void this.#leaving.delete(leaving)
    this.#leaving.set(leaving, member)
    leaving.then(over, over)
  }

  #forget(ballot: Ballot): void {
    const { claim, over, attempts, seats } = ballot
    if (!over || attempts.size > 0) return
    for (const { leaving, busy } of seats) if (leaving || busy) return
    if (this.#all.get(claim.id) === ballot) this.#all.delete(claim.id)
    const same = this.#sharing.get(sharedBy(claim))
    if (same?.delete(ballot) && same.size === 0) this.#sharing.delete(sharedBy(claim))
  }
}

function sharedBy({ key, owner }: Claim): string {
  return `${owner} ${key}`
}

/**
 * Returns the token for a grant with these votes: the one with which a majority has voted, or the largest of them. Once a
 * majority of the servers has this token, every later grant by any majority has a larger one.
 */
function commonToken(votes: readonly SeatVote[], majority: number): number {
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
function confirmedDeadline(vote: SeatVote, ends: number, asked: number, now: number): number {
  return Math.min(ends - (ends - now) * DRIFT, Math.max(asked, vote.deadline))
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

/**
 * All claims of this client on a quorum, and what the servers have made of them. Whatever comes of a server comes here: answers, messages,
 * and what releases say. There is one rule for all of it:
 *
 *   1. a vote that is wanted is recorded; one that nobody wants any more is taken back
 *   2. a majority of votes is made to agree on one token: the largest of them, which is written to those that have less (I2)
 *   3. then, and while a majority of the leases lasts, the claim is granted: by the call that waits for it, or by news
 *
 * The story of 2: A is granted the lock with 5 by server 1 and with 9 by server 2. If its token were 9, and server 1 and 3 granted it to
 * B later, which know of 5, B might get 6. So A has the lock when a majority has 9.
 *
 * A waiter that has too few votes looks at all servers within a moment, and puts back what cannot become a majority; it waits a random
 * time before, that grows: of two that have one vote each, the first to put it back gives it to the other.
 */
import { type Clock, surelyUntil } from '../../clock.ts'
import { LockClosedError } from '../../errors.ts'
import type { Claim, Granted, HoldName, Queued, Refused, Tended, Via, VoteMode } from '../../kind.ts'
import { Ballot, type Seat, untilMajority } from './ballot.ts'
import type { Floor } from './floor.ts'
import type { Member } from './member.ts'
import { tellOutcome } from './outcomes.ts'
import type { Place } from './place.ts'
import { Round } from './round.ts'

/** What a majority of servers may be ahead or behind in the course of a lease: a share of it. */
const DRIFT = 0.01
/** Between attempts to take something back, in ms. */
const PAUSE = 1_000
/** How long a waiter with too few votes waits for more, in ms: the first time on average, and at most. */
const PATIENCE = { first: 10, longest: 250 }

/** How long votes of an owner with a name wait for those of the other servers, in ms. */
const SHARING = 20

export type Answer = Granted | Refused | undefined | Error

export interface BallotsListener {
  /** A claim that no call waits for has been granted. */
  won(claim: Claim, grant: Granted): void
  /** A claim wants a lease of so many ms. */
  asks(lease: number): void
}

export class Ballots {
  readonly places: readonly Place[]
  readonly members: readonly Member[]
  readonly majority: number
  readonly #clock: Clock
  readonly #floor: Floor
  readonly #waiterTtl: number
  readonly #listener: BallotsListener
  readonly #all = new Map<string, Ballot>()
  readonly #watchers = new Map<Ballot, Set<() => void>>()
  /** Where something is taken back, and from which server. */
  readonly #clearing = new Map<Seat, number>()
  /** Releases under way, and on which server. */
  readonly #releases = new Map<Promise<unknown>, number>()
  /** Waiters with too few votes, which look again soon. */
  readonly #hoping = new Set<Ballot>()

  constructor(places: readonly Place[], clock: Clock, floor: Floor, waiterTtl: number, listener: BallotsListener) {
    this.places = places
    this.members = places.map(({ member }) => member)
    this.majority = Math.floor(places.length / 2) + 1
    this.#clock = clock
    this.#floor = floor
    this.#waiterTtl = waiterTtl
    this.#listener = listener
  }

  get(id: string): Ballot | undefined {
    return this.#all.get(id)
  }

  of(claim: Claim): Ballot {
    let ballot = this.#all.get(claim.id)
    this.#listener.asks(claim.lease)
    if (!ballot) {
      ballot = new Ballot(claim, this.places.length)
      this.#all.set(claim.id, ballot)
    }
    ballot.over = false
    return ballot
  }

  /** Calls `changed` whenever something has come for the claim, until the returned function is called. */
  watch(ballot: Ballot, changed: () => void): () => void {
    const watchers = this.#watchers.get(ballot) ?? new Set()
    this.#watchers.set(ballot, watchers.add(changed))
    return () => {
      if (watchers.delete(changed) && watchers.size === 0) this.#watchers.delete(ballot)
    }
  }

  /** Servers have come, gone, or begun to count. */
  reconsider(): void {
    for (const ballot of [...this.#all.values()]) this.#changed(ballot)
  }

  counts(server: number): boolean {
    return (this.places[server] as Place).member.counts
  }

  /** Asks one server; `answered` is called behind everything that its answer does. */
  ask(ballot: Ballot, server: number, mode: VoteMode, floor: number, answered?: (answer: Answer) => void): void {
    const seat = ballot.seats[server] as Seat
    if (seat.clearing) {
      const failed = (error: Error) => {
        answered?.(error)
        this.#changed(ballot)
      }
      const cleared = () => {
        // Its caller has given up meanwhile, and has its client closed perhaps: what is granted now nobody would take back (I7).
        if (ballot.over) failed(new Error('nobody waits for it any more'))
        else this.ask(ballot, server, mode, floor, answered)
      }
      const { trying, clearing } = seat
      Promise.all([trying, clearing]).then(cleared, failed)
      return
    }
    const { touched } = seat
    seat.asked += 1
    seat.touched = true
    const sent = this.#clock.now()
    const settled = (answer: Answer) => {
      seat.asked -= 1
      // An attempt that is refused leaves nothing to take back: whoever loses asks each server once.
      const refused = mode === 'try' && answer && 'granted' in answer && !answer.granted
      if (refused && !touched && !seat.vote && !seat.clearing && seat.asked === 0) seat.touched = false
      this.#answered(ballot, server, answer, mode, sent)
      answered?.(answer)
      this.#changed(ballot)
      if (seat.asked === 0) seat.idle?.()
    }
    ;(this.places[server] as Place).voting.vote(ballot.claim, mode, floor).then(settled, settled)
  }

  /** The server has granted the claim. `sent`: when that was asked for or looked at; undefined: a message says so. */
  voted(ballot: Ballot, server: number, grant: Granted, lease = ballot.claim.lease): void {
    const seat = ballot.seats[server] as Seat
    if (seat.clearing) return
    seat.touched = true
    if (ballot.over) {
      this.clear(ballot, server)
      return
    }
    // What confirms a vote says nothing of how it came about.
    const { vote } = seat
    const { epoch } = (this.places[server] as Place).member
    const confirms = vote !== undefined && seat.counted && seat.epoch === epoch
    seat.counted = ballot.granted ? grant.token === ballot.granted.token : confirms || this.counts(server)
    seat.epoch = epoch
    seat.vote = { ...grant, via: vote?.via ?? grant.via, deadline: grant.deadline - lease * DRIFT }
    seat.votedAt = this.#clock.now()
  }

  /** The server does not have the claim, or has it in its queue. */
  refused(ballot: Ballot, server: number, { sent, clock }: Pick<Refused, 'sent' | 'clock'>, position = 0): void {
    const seat = ballot.seats[server] as Seat
    if (seat.clearing) return
    seat.seen = { sent, clock }
    seat.position = position
    // A message may have been faster than this answer, and is newer.
    if (seat.vote && seat.votedAt < sent) seat.vote = undefined
  }

  /** A message of the server tells of a grant. False: nobody knows the claim. */
  told(server: number, id: string, token: number, via: Via): boolean {
    const ballot = this.#all.get(id)
    if (!ballot) return false
    const seat = ballot.seats[server] as Seat
    const { lease } = ballot.claim
    if (seat.vote?.token === token) return true
    const now = this.#clock.now()
    const deadline = seat.seen && surelyUntil(seat.seen.sent, lease)
    if (ballot.over || seat.clearing) this.voted(ballot, server, { granted: true, token, deadline: 0, via })
    else if (deadline && token > (seat.seen?.clock ?? 0) && deadline - now >= lease / 2) {
      this.voted(ballot, server, { granted: true, token, deadline, via })
      this.#changed(ballot)
    } else {
      seat.told = true
      this.#lookSoon(ballot, server)
    }
    return true
  }

  /** The claim has a ticket now. A message may have come before it had one to look with. */
  queued(ballot: Ballot): void {
    for (const [i, { told }] of ballot.seats.entries()) if (told) this.#lookSoon(ballot, i)
    this.#changed(ballot)
  }

  /** The claim waits in the queues, whatever has become of it: a grant of which that has been told came too late to be used. */
  waits({ claim, ticket }: Queued): void {
    const ballot = this.of(claim)
    ballot.ticket ??= ticket
    if (!ballot.granted) return
    ballot.reported = false
    if (this.until(ballot) <= this.#clock.now()) ballot.granted = undefined
  }

  /** A message says that the server has taken the hold away. */
  taken(server: number, id: string, token: number): void {
    const seat = this.#all.get(id)?.seats[server]
    if (seat?.vote && seat.vote.token <= token) seat.vote = undefined
  }

  /** Takes everything of the claim back, on every server. Resolves when a majority has nothing of it any more. */
  end(ballot: Ballot): Promise<void> {
    ballot.over = true
    ballot.granted = ballot.token = ballot.ticket = ballot.sharesUntil = undefined
    ballot.reported = false
    this.#changed(ballot)
    return this.most(ballot.seats.map((_, i) => this.clear(ballot, i)))
  }

  /**
   * Takes it back on one server, repeatedly until that is done or it has lapsed. Rejects as soon as an attempt fails: whatever waits for
   * this would wait for the whole lease where the server refuses.
   */
  clear(ballot: Ballot, server: number): Promise<void> {
    const seat = ballot.seats[server] as Seat
    if (seat.clearing) return seat.trying as Promise<void>
    seat.vote = seat.seen = undefined
    seat.told = false
    if (!seat.touched) {
      this.#forget(ballot)
      return Promise.resolve()
    }
    const clearing = this.#leave(ballot, server).finally(() => {
      seat.clearing = seat.trying = undefined
      seat.touched = seat.asked > 0
      this.#clearing.delete(seat)
      this.#forget(ballot)
    })
    clearing.catch(() => {})
    this.#clearing.set(seat, server)
    seat.clearing = clearing
    return seat.trying as Promise<void>
  }

  /** Resolves when all is taken back that can be: from the servers that are there, and do not refuse. */
  async rest(): Promise<void> {
    for (;;) {
      const under = [...this.#clearing].filter(([{ failed }, server]) => !failed && this.places[server]?.member.up)
      const releases = [...this.#releases].flatMap(([release, server]) => (this.members[server]?.up ? [release] : []))
      if (under.length + releases.length === 0) return
      const clears = under.map(([{ trying, clearing }]) => Promise.all([trying, clearing]))
      await Promise.allSettled([...clears, ...releases])
    }
  }

  /** Resolves as soon as a majority of these have, and rejects as soon as none can any more. */
  most(parts: readonly Promise<unknown>[]): Promise<void> {
    return new Promise((resolve, reject) => {
      let [done, failed] = [0, 0]
      for (const part of parts) {
        part.then(
          () => ++done === this.majority && resolve(),
          error => ++failed > parts.length - this.majority && reject(error),
        )
      }
    })
  }

  /** A release that its caller does not wait for, where a majority has answered. */
  releasing(server: number, release: Promise<unknown>): void {
    const over = () => void this.#releases.delete(release)
    this.#releases.set(release, server)
    release.then(over, over)
  }

  /** The hold has been released on this server. */
  released(ballot: Ballot, server: number): void {
    const seat = ballot.seats[server] as Seat
    seat.vote = undefined
    // What is still unanswered may come behind the release.
    if (seat.asked > 0) this.clear(ballot, server)
    else seat.touched = false
    this.#forget(ballot)
  }

  /** A release of this client has made its own waiter the holder on this server. */
  succeeded(server: number, { key, id }: HoldName, grant: Granted): void {
    const ballot = this.#all.get(id)
    if (!ballot) {
      const { kind } = this.places[server] as Place
      kind.giveBack({ key, id }).catch(() => {})
      return
    }
    this.voted(ballot, server, grant)
    this.#changed(ballot)
  }

  /** Until when a majority has it, as far as is known; 0: none has. */
  until(ballot: Ballot): number {
    const votes = this.votes(ballot)
    return untilMajority(
      votes.map(({ deadline }) => deadline),
      this.majority,
    )
  }

  /** The votes that count. */
  votes({ seats }: Ballot): Granted[] {
    return seats.flatMap(({ vote, counted }) => (vote && counted ? [vote] : []))
  }

  /** Those whose leases have not ended. */
  #live(ballot: Ballot): Granted[] {
    const now = this.#clock.now()
    return this.votes(ballot).filter(({ deadline }) => deadline > now)
  }

  /** Grants the claim if a majority agrees, and makes it agree if it does not. */
  elect(ballot: Ballot): void {
    if (ballot.over || ballot.granted) return
    // Where a vote has lapsed, somebody else may have been granted the lock since.
    const votes = this.#live(ballot)
    ballot.token = undefined
    if (votes.length < this.majority) return
    const shared = this.#sharedToken(ballot)
    const token = shared ?? this.#largest(votes)
    const agreed = votes.filter(vote => vote.token === token)
    if (agreed.length >= this.majority) {
      const deadline = untilMajority(
        agreed.map(vote => vote.deadline),
        this.majority,
      )
      ballot.granted = { granted: true, token, deadline, via: viaOf(votes) }
      ballot.putBack = ballot.looks = 0
      tellOutcome(ballot.claim, 'granted', ballot.token !== undefined)
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
      this.ask(ballot, i, vote.token < token ? 'raise' : 'same', token, () => {
        seat.agreeing = false
      })
    }
  }

  /** The one above which every later grant of any majority is: that of a majority if it has one, else the largest. */
  #largest(votes: readonly Granted[]): number {
    const tokens = votes.map(({ token }) => token)
    const most = tokens.find(token => tokens.filter(same => same === token).length >= this.majority)
    return most ?? Math.max(...tokens)
  }

  /** That of the other holds of the claim's owner, while a majority has one. Undefined: it has no other. */
  #sharedToken(ballot: Ballot): number | undefined {
    const { id, key, owner } = ballot.claim
    if (owner === id) return undefined
    for (const other of this.#all.values()) {
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
    if (claim.owner === claim.id || seats.every(({ vote }, i) => vote || !this.members[i]?.up)) return false
    const now = this.#clock.now()
    if (ballot.sharesUntil === undefined) {
      ballot.sharesUntil = now + SHARING
      this.#clock.after(SHARING, () => this.#changed(ballot))
    }
    return now < ballot.sharesUntil
  }

  #answered(ballot: Ballot, server: number, answer: Answer, mode: VoteMode, sent: number): void {
    const seat = ballot.seats[server] as Seat
    if (answer instanceof Error) {
      // What has become of it is not known; nor of a vote whose token was to be another.
      if (mode === 'raise' || mode === 'same') seat.vote = undefined
      if (ballot.over) this.clear(ballot, server)
    } else if (answer?.granted) {
      this.voted(ballot, server, answer)
    } else if (answer) {
      if (mode === 'queue' && ballot.over && !seat.clearing) this.clear(ballot, server)
      else this.refused(ballot, server, answer, answer.position)
    } else if (seat.vote && seat.votedAt < sent) seat.vote = undefined
  }

  #changed(ballot: Ballot): void {
    this.#askYoung(ballot)
    this.elect(ballot)
    // A server that has voted late has the hold with a token of its own.
    if (ballot.granted) this.#agree(ballot, ballot.granted.token, true)
    const watchers = this.#watchers.get(ballot)
    if (watchers) for (const changed of [...watchers]) changed()
    else if (ballot.granted && !ballot.reported) {
      ballot.reported = true
      this.#listener.won(ballot.claim, ballot.granted)
    } else if (ballot.ticket !== undefined && !ballot.granted && !ballot.over) this.#hope(ballot)
  }

  /**
   * A server that counts by now may have voted before it did, with a token that is smaller than one that it has forgotten: it votes once
   * more, with the present floor (I2). Most of the lease is over by then, and it is given all of it again.
   */
  #askYoung(ballot: Ballot): void {
    if (ballot.over || ballot.granted) return
    for (const [i, seat] of ballot.seats.entries()) {
      if (!seat.vote || seat.counted || seat.agreeing || !this.counts(i)) continue
      const floor = this.#floor.next
      // As soon as the clocks have been read.
      if (floor === 0) return
      seat.agreeing = true
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

  /** It has too few votes, and may get more. */
  #hope(ballot: Ballot): void {
    if (this.#hoping.has(ballot) || !ballot.seats.some(({ vote }) => vote)) return
    this.#hoping.add(ballot)
    const looks = Math.max(ballot.putBack, ballot.looks)
    const pause = Math.min(PATIENCE.longest, PATIENCE.first * 2 ** looks) * (0.5 + Math.random())
    const waits = () => !ballot.over && !ballot.granted && ballot.polls === 0
    const few = () => waits() && this.#live(ballot).length < this.majority
    this.#clock.after(pause, async () => {
      if (few()) {
        ballot.looks += 1
        const round = new Round(this.members, this.majority, this.#clock)
        for (const i of ballot.seats.keys()) {
          this.#look(ballot, i).then(
            () => round.answered(i, !few()),
            error => round.failed(i, error),
          )
        }
        // Where no majority answers, nobody else can have one.
        const looked = await round.over.catch(() => undefined)
        if (looked && few()) {
          ballot.putBack += 1
          ballot.looks = 0
          for (const [i, seat] of ballot.seats.entries()) if (seat.vote) this.clear(ballot, i)
        }
      }
      this.#hoping.delete(ballot)
      this.#changed(ballot)
    })
  }

  /** What is not answered is asked for again by the next heartbeat. */
  #lookSoon(ballot: Ballot, server: number): void {
    this.#look(ballot, server).catch(() => {})
  }

  /** Looks at what one server has of a waiter. */
  async #look(ballot: Ballot, server: number): Promise<void> {
    const { ticket, claim } = ballot
    if (ticket === undefined) return
    ;(ballot.seats[server] as Seat).told = false
    await this.tend(server, [{ claim, ticket }])
  }

  /** Heartbeat of waiters of one lock on one server. Undefined: none of them is there to be tended. */
  async tend(server: number, waiters: readonly Queued[]): Promise<Tended | undefined> {
    const { queue } = (this.places[server] as Place).kind
    const some = waiters.flatMap(waiter => {
      const ballot = this.#all.get(waiter.claim.id)
      const seat = ballot?.seats[server]
      return ballot && seat && !ballot.over && !seat.clearing ? [{ ...waiter, ballot, seat }] : []
    })
    if (!queue || some.length === 0) return undefined
    for (const { seat } of some) {
      seat.asked += 1
      seat.touched = true
    }
    try {
      const tended = await queue.tend(some[0]!.claim.key, some)
      for (const [i, { ballot }] of some.entries()) {
        const found = tended.waiters[i]
        if (typeof found === 'object') this.voted(ballot, server, found)
        else if (ballot.over) this.clear(ballot, server)
        else this.refused(ballot, server, tended, found)
      }
      return tended
    } finally {
      for (const { seat } of some) {
        seat.asked -= 1
        if (seat.asked === 0) seat.idle?.()
      }
      for (const { ballot } of some) this.#changed(ballot)
    }
  }

  async #leave(ballot: Ballot, server: number): Promise<void> {
    const seat = ballot.seats[server] as Seat
    const pointless = this.#clock.now() + ballot.claim.lease + this.#waiterTtl
    for (;;) {
      seat.failed = false
      seat.trying = this.#leaveOnce(ballot, server)
      try {
        return await seat.trying
      } catch (error) {
        seat.failed = true
        if (error instanceof LockClosedError || this.#clock.now() >= pointless) throw error
        await this.#pause()
      }
    }
  }

  async #leaveOnce({ claim, seats }: Ballot, server: number): Promise<void> {
    const seat = seats[server] as Seat
    const { member, kind } = this.places[server] as Place
    const { epoch } = member
    for (;;) {
      await kind.leave(claim)
      if (seat.asked === 0) break
      // What is not answered by then may have been sent again, and come behind: it may have joined the queue, or been granted.
      await new Promise<void>(resolve => (seat.idle = resolve))
    }
    // What was sent over a connection that has gone may come late, and would take away what is granted after this.
    if (member.epoch !== epoch) await this.#pause()
  }

  #pause(): Promise<void> {
    return new Promise(resolve => this.#clock.after(PAUSE, resolve))
  }

  #forget(ballot: Ballot): void {
    const { claim, over, polls, seats } = ballot
    if (!over || polls > 0 || seats.some(({ clearing, asked }) => clearing || asked > 0)) return
    if (this.#all.get(claim.id) === ballot) this.#all.delete(claim.id)
  }
}

function viaOf(votes: readonly Granted[]): Via {
  for (const via of ['reentry', 'handoff', 'expiry'] as const) if (votes.some(vote => vote.via === via)) return via
  return 'immediate'
}

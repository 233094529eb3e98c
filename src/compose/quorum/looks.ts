/**
 * Asks the servers whether they have granted or queued this client's waiters. This happens with each heartbeat, when a
 * message reports a grant but does not prove that its lease still runs, and when a waiter has votes but no majority. A
 * waiter without a majority pauses for a random time, asks all servers, and gives its votes back if they are still too
 * few. The pauses grow with each attempt. If a majority may have another holder, the waiter leaves the queues of these
 * servers until its next request, so that the holder can have them. Otherwise it keeps its place there, and the server
 * votes for its first waiter again (`#place`).
 */
import { type Clock, surelyUntil } from '../../clock.ts'
import type { Queued, Refused, Tended, Via } from '../../kind.ts'
import type { Ballot, BallotBox, Seat } from './ballot.ts'
import type { Clearing } from './clearing.ts'
import { noMajority, type Place, reasonOf } from './member.ts'
import { merged, Round } from './round.ts'

/**
 * A waiter that has votes but no majority asks the servers again after a random pause, and the pauses grow. `first`:
 * the average length of the first pause, in ms. `longest`: the largest average length of a pause, in ms.
 */
const PATIENCE = { first: 10, longest: 250 }
/** After this many ms it is looked whether a vote counts by now that did not when it was given. */
const USELESS = 500

/** The position of a waiter whose owner has the lock (`Tended`). */
const REENTERS = -1

export class Looks {
  readonly #ballots: BallotBox
  readonly #clock: Clock
  readonly #clearing: Clearing
  /** Waiters with votes but no majority, about which the servers will be asked again soon. */
  readonly #hoping = new Set<Ballot>()

  constructor(ballots: BallotBox, clock: Clock, clearing: Clearing) {
    this.#ballots = ballots
    this.#clock = clock
    this.#clearing = clearing
  }

  /** Plans to ask the servers again about a waiter that has votes but no majority. */
  hope(ballot: Ballot): void {
    if (this.#hoping.has(ballot) || !ballot.seats.some(({ vote }) => vote)) return
    this.#hoping.add(ballot)
    const looks = Math.max(ballot.putBack, ballot.looks)
    const pause = Math.min(PATIENCE.longest, PATIENCE.first * 2 ** looks) * (0.5 + Math.random())
    const waits = () => !ballot.over && !ballot.granted && ballot.polls === 0
    const few = () => waits() && ballot.live.length < this.#ballots.majority && !this.#isUseless(ballot)
    this.#clock.after(this.#isUseless(ballot) ? USELESS : pause, async () => {
      if (few() && this.#enter(ballot)) ballot.looks += 1
      else if (few()) {
        ballot.looks += 1
        const round = new Round(this.#ballots.members, this.#ballots.majority, this.#clock)
        for (const i of ballot.seats.keys())
          round.ask(
            i,
            () => this.look(ballot, i),
            () => !few(),
          )
        // If no majority of the servers has answered, no waiter can get a majority of votes now. Then this waiter keeps
        // its votes.
        const looked = await round.over.catch(() => undefined)
        if (looked && few()) {
          ballot.putBack += 1
          ballot.looks = 0
          const { members, majority } = this.#ballots
          const refusals = ballot.seats.filter(({ vote }, i) => !vote && (round.has(i) || !members[i]?.problem)).length
          const { id, owner } = ballot.claim
          for (const [i, { vote }] of ballot.seats.entries()) {
            // If a majority may have another holder, the holder needs this server too (renewals.ts), and cannot get it
            // from a waiter that queues there again at once. Nor can another waiter get it from an owner whose other
            // calls hold it on this server: the waiter would enter again.
            if (vote && (refusals >= majority || owner !== id)) this.#clearing.clear(ballot, i)
            else if (vote) this.#place(ballot, i)
          }
        }
      }
      this.#hoping.delete(ballot)
      this.#ballots.changed(ballot)
    })
  }

  /**
   * If the owner of the waiter has the lock by another call, asks the servers that have not voted for the waiter to let it
   * re-enter. Otherwise such a waiter could give its votes back, and stand in the queue behind its own owner. Returns
   * whether the owner has the lock.
   */
  #enter(ballot: Ballot): boolean {
    if (this.#ballots.sharedToken(ballot) === undefined) return false
    for (const [i, { vote, asked }] of ballot.seats.entries())
      if (!vote && asked === 0) this.#ballots.ask(ballot, i, 'queue', 0)
    return true
  }

  /** Returns whether servers have voted for the waiter whose votes do not count yet, and too few others are left. */
  #isUseless({ seats }: Ballot): boolean {
    const { members, majority } = this.#ballots
    return seats.filter(({ vote, counted }) => vote && !counted).length > members.length - majority
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
  order(ballot: Ballot): void {
    const { ticket, over, polls, token } = ballot
    if (ticket === undefined || over || polls > 0 || token !== undefined) return
    for (const [i, seat] of ballot.seats.entries()) {
      if (seat.ticket === undefined || seat.ticket === Number(ticket)) continue
      this.#place(ballot, i)
    }
  }

  #place(ballot: Ballot, server: number): void {
    const seat = ballot.seats[server] as Seat
    if (seat.ordering) return
    const ticket = Number(ballot.ticket)
    const { vote } = seat
    seat.ordering = true
    this.#ballots.ask(ballot, server, 'place', ticket, answer => {
      seat.ordering = false
      // If the server does not answer, the next heartbeat sends the ticket. If the server has voted in the meantime by
      // the earlier ticket, `order` gives this vote back, too.
      if (answer instanceof Error) seat.ticket = undefined
      else if (vote || !answer?.granted) seat.ticket = ticket
    })
  }

  /** Handles a message from the server that reports a grant. Returns false if this client does not know the claim. */
  announced(server: number, id: string, token: number, via: Via): boolean {
    const ballot = this.#ballots.get(id)
    if (!ballot) return false
    const seat = ballot.seats[server] as Seat
    const { lease } = ballot.claim
    // This client already knows of the reported grant, or of a later one.
    if (token <= seat.latest) {
      // If this client no longer has the vote, the server may have lost its data, and may have granted the claim again
      // with a smaller token. So the server is asked.
      if (!seat.vote && !ballot.granted && !ballot.over) this.lookSoon(ballot, server)
      return true
    }
    const now = this.#clock.now()
    const deadline = seat.seen && surelyUntil(seat.seen.sent, lease)
    if (ballot.over || seat.clearing) this.#ballots.voted(ballot, server, { granted: true, token, deadline: 0, via })
    else if (deadline && token > (seat.seen?.clock ?? 0) && deadline - now >= lease / 2) {
      this.#ballots.voted(ballot, server, { granted: true, token, deadline, via })
      this.#ballots.changed(ballot)
    } else {
      seat.announced = true
      this.lookSoon(ballot, server)
    }
    return true
  }

  /**
   * Called when the claim has received its ticket. Before that, messages may have reported grants without proving their
   * leases. The servers of these messages are asked only now, because such a request contains the ticket.
   */
  queued(ballot: Ballot): void {
    for (const [i, { announced }] of ballot.seats.entries()) if (announced) this.lookSoon(ballot, i)
    this.#ballots.changed(ballot)
  }

  /** Asks one server about a waiter now. If the server does not answer, the next heartbeat asks it again. */
  lookSoon(ballot: Ballot, server: number): void {
    this.look(ballot, server).catch(() => {})
  }

  /** Asks one server whether it has granted or queued a waiter. Does nothing if the waiter has no ticket. */
  async look(ballot: Ballot, server: number): Promise<void> {
    const { ticket, claim } = ballot
    if (ticket === undefined) return
    ;(ballot.seats[server] as Seat).announced = false
    await this.#tend(server, [{ claim, ticket }])
  }

  /**
   * Sends the heartbeat of waiters of one lock to one server. Leaves out waiters whose claims are being taken back from
   * this server. If all of the claims are being taken back, waits until this is done for one of them. Resolves to
   * undefined if no caller wants any of the claims any more.
   */
  async #tend(server: number, waiters: readonly Queued[]): Promise<Tended | undefined> {
    const { kind } = this.#ballots.places[server] as Place
    const waiting = waiters.flatMap(waiter => {
      const ballot = this.#ballots.get(waiter.claim.id)
      const seat = ballot?.seats[server]
      return ballot && seat && !ballot.over ? [{ ...waiter, ballot, seat }] : []
    })
    if (!kind.tend || waiting.length === 0) return undefined
    const some = waiting.filter(({ seat }) => !seat.clearing)
    if (some.length === 0) {
      await Promise.race(waiting.map(({ seat: { trying, clearing } }) => Promise.all([trying, clearing])))
      return this.#tend(server, waiters)
    }
    for (const { seat } of some) {
      seat.asked += 1
      seat.touched = true
      seat.refusing = false
    }
    try {
      const sent = this.#clock.now()
      const tended = await kind.tend(some[0]!.claim.key, some)
      for (const [i, { ballot, seat, ticket }] of some.entries()) {
        // If the answers to a heartbeat and to a later request arrive together, the later one is handled first, because
        // it takes fewer turns of the promises. It may have changed the vote, or given it back (I1, I2).
        if (seat.heard > sent) continue
        const found = tended.waiters[i]
        if (typeof found === 'object') this.#ballots.voted(ballot, server, found)
        else if (ballot.over) this.#clearing.clear(ballot, server)
        else {
          this.#ballots.refused(ballot, server, tended, found)
          seat.ticket = Number(ticket)
        }
      }
      return tended
    } finally {
      for (const { seat } of some) {
        seat.asked -= 1
        if (seat.asked === 0) seat.idle?.()
      }
      for (const { ballot } of some) this.#ballots.changed(ballot)
    }
  }

  /**
   * Sends the heartbeat of waiters to all servers of a quorum. The heartbeat queues a waiter again on servers where it is
   * missing, writes the waiter's ticket to all servers, and finds grants whose messages were lost.
   */
  async tendAll(waiters: readonly Queued[]): Promise<Tended> {
    const ballots = this.#ballots
    const { places, members, majority } = ballots
    const answers: (Tended | undefined)[] = places.map(() => undefined)
    // The callers of these waiters still wait. If a ballot says that its claim was granted or taken back, `waits`
    // corrects the ballot.
    for (const waiter of waiters) ballots.waits(waiter)
    const round = new Round(members, majority, this.#clock)
    // While a waiter has votes but no majority, the round waits for the other servers, because their answers may be
    // votes.
    const settled = ({ claim }: Queued) => {
      const ballot = ballots.get(claim.id)
      return !ballot || ballot.granted !== undefined || ballot.votes().length === 0
    }
    for (const i of places.keys()) {
      const tend = async () => {
        answers[i] = await this.#tend(i, waiters)
      }
      round.ask(i, tend, () => waiters.every(settled))
    }
    await round.over
    // A call that has just been made would be rejected for the same reason, too (poll.ts).
    for (const { claim } of waiters) {
      const ballot = ballots.get(claim.id)
      if (!ballot || ballot.granted || !this.#isUseless(ballot)) continue
      throw noMajority(members.map((member, i) => (ballot.seats[i]?.counted ? undefined : reasonOf(member))))
    }
    const said = answers.filter(answer => answer !== undefined)
    const refusals = said.map(
      ({ expected: _, ...answer }) => ({ ...answer, granted: false, position: 0, ticket: '0' }) satisfies Refused,
    )
    const { sent, ttl, holder, owner } = merged(refusals, places.length - majority, this.#clock.now())
    return {
      sent,
      ttl,
      holder: holder ?? { label: '', since: sent },
      owner,
      clock: 0,
      waiters: waiters.map(({ claim }) => {
        const ballot = ballots.get(claim.id)
        if (ballot?.granted && !ballot.reported) {
          ballot.reported = true
          return ballot.granted
        }
        if (ballot && ballots.sharedToken(ballot) !== undefined) return REENTERS
        const found = (ballot?.seats ?? []).flatMap(({ position }) => position || []).sort((a, b) => a - b)
        return found[found.length >> 1] ?? 1
      }),
    }
  }
}

/**
 * The claims in the servers' queues: their heartbeats, the messages of grants, and what happens to a waiter that has votes
 * but no majority. Such a waiter pauses for a random time, asks all servers, and gives its votes back if they are still
 * too few. The pauses grow with each attempt. If a majority may have another holder, the waiter leaves the queues of these
 * servers until its next heartbeat, so that the holder can have them. Otherwise it keeps its place there, and the server
 * votes for its first waiter again (`Ballots.place`). So waiters with votes on different servers do not block each other
 * (I4).
 */
import { type Clock, surelyUntil } from '../../clock.ts'
import type { HeartbeatEntry, HeartbeatReply, Refused, Via } from '../../kind.ts'
import type { Ballots } from './ballots.ts'
import type { Member } from './member.ts'
import { merged, Round } from './round.ts'
import type { Ballot, Seat } from './seat.ts'

/**
 * A waiter that has votes but no majority asks the servers again after a random pause, and the pauses grow. `first`:
 * the average length of the first pause, in ms. `longest`: the largest average length of a pause, in ms.
 */
const PATIENCE = { first: 10, longest: 250 }

/** The position of a waiter whose owner has the lock (`HeartbeatReply`). */
const REENTERS = -1

export class Waiters {
  readonly #ballots: Ballots
  readonly #clock: Clock
  /** Waiters with votes but no majority, about which the servers will be asked again soon. */
  readonly #hoping = new Set<Ballot>()

  constructor(ballots: Ballots) {
    this.#ballots = ballots
    this.#clock = ballots.clock
  }

  /** Plans to ask the servers again about a waiter that has votes but no majority. */
  hope(ballot: Ballot): void {
    if (this.#hoping.has(ballot) || !ballot.seats.some(({ vote }) => vote)) return
    this.#hoping.add(ballot)
    const pause = Math.min(PATIENCE.longest, PATIENCE.first * 2 ** ballot.looks) * (0.5 + Math.random())
    this.#clock.after(pause, async () => {
      if (this.#lacks(ballot)) await this.#ask(ballot)
      this.#hoping.delete(ballot)
      this.#ballots.changed(ballot)
    })
  }

  /** Whether the claim still waits, and has too few votes. */
  #lacks(ballot: Ballot): boolean {
    const waits = !ballot.over && !ballot.granted && ballot.attempts.size === 0
    return waits && ballot.live.length < this.#ballots.majority
  }

  async #ask(ballot: Ballot): Promise<void> {
    ballot.looks += 1
    if (this.#enter(ballot)) return
    const { majority } = this.#ballots
    const round = new Round(this.#ballots, {
      verdict: enough => (enough && !this.#lacks(ballot) ? 'over' : 'open'),
    })
    for (const [i, seat] of ballot.seats.entries()) round.ask(i, 'vote', () => this.#look(seat))
    // If no majority of the servers has answered, no waiter can get a majority of votes now, and this one keeps its votes.
    if (!(await round.over) || !this.#lacks(ballot)) return
    const { id, owner } = ballot.claim
    const refusals = ballot.seats.filter(({ vote, member }, i) => !vote && (round.has(i) || !member.problem)).length
    for (const seat of ballot.seats) {
      if (!seat.vote || seat.busy) continue
      // If a majority may have another holder, the holder needs this server too (`QuorumKind.renew`), and cannot get it
      // from a waiter that queues there again at once. Nor can another waiter get it from an owner whose other calls hold
      // it on this server: the waiter would enter again.
      if (refusals >= majority || owner !== id) this.#ballots.leave(seat)
      else this.#ballots.place(seat)
    }
  }

  /**
   * If the owner of the waiter has the lock by another call, asks the servers that have not voted for the waiter to let it
   * re-enter. Otherwise such a waiter could give its votes back, and stand in the queue behind its own owner. Returns
   * whether the owner has the lock.
   */
  #enter(ballot: Ballot): boolean {
    if (this.#ballots.sharedToken(ballot) === undefined) return false
    for (const seat of ballot.seats) if (!seat.vote && !seat.busy) this.#ballots.ask(seat, 'queue', 0)
    return true
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
      if (!seat.vote && !ballot.granted && !ballot.over) this.lookSoon(seat)
      return true
    }
    const { refused } = seat
    const deadline = refused && token > refused.clock ? surelyUntil(refused.sent, lease) : 0
    if (ballot.over || seat.state === 'leaving' || deadline - this.#clock.now() >= lease / 2) {
      this.#ballots.voted(seat, { granted: true, token, deadline, via })
      this.#ballots.changed(ballot)
    } else if (seat.busy) {
      // The answer that is under way may prove the grant, or be the grant.
      seat.whenFree(error => {
        if (!error) this.announced(server, id, token, via)
      })
    } else this.lookSoon(seat)
    return true
  }

  /** Asks one server about a waiter now. If the server does not answer, the next heartbeat asks it again. */
  lookSoon(seat: Seat): void {
    this.#look(seat).catch(() => {})
  }

  /** Asks one server whether it has granted or queued a waiter. Does nothing if the waiter has no ticket. */
  async #look({ ballot, member, ticket }: Seat): Promise<void> {
    const place = ballot.ticket ?? ticket
    if (place !== undefined) await this.#tend(member, [{ claim: ballot.claim, ticket: String(place) }])
  }

  /**
   * Sends the heartbeat of waiters of one lock to one server. Leaves out waiters of which the server has another request;
   * if all of them have one, waits for the first of these. Resolves to undefined if no caller wants any of the claims any
   * more.
   */
  async #tend({ index, kind }: Member, waiters: readonly HeartbeatEntry[]): Promise<HeartbeatReply | undefined> {
    const waiting = waiters.flatMap(waiter => {
      const seat = this.#ballots.get(waiter.claim.id)?.seats[index]
      return seat && !seat.ballot.over ? [{ ...waiter, seat }] : []
    })
    if (waiting.length === 0) return undefined
    const some = waiting.filter(({ seat }) => !seat.busy)
    if (some.length === 0) {
      const { seat } = waiting[0]!
      return new Promise((resolve, reject) => {
        seat.whenFree(error => (error ? reject(error) : resolve(this.#tend(seat.member, waiters))))
      })
    }
    for (const { seat } of some) {
      seat.busy = true
      seat.happens('asks')
    }
    let failure: Error | undefined
    try {
      const tended = await kind.tend(some[0]!.claim.key, some)
      for (const [i, { seat, ticket }] of some.entries()) {
        const found = tended.waiters[i]
        if (typeof found === 'object') this.#ballots.voted(seat, found)
        else {
          this.#ballots.refused(seat, tended, found)
          seat.ticket = Number(ticket)
        }
        if (seat.ballot.over) this.#ballots.leave(seat)
      }
      return tended
    } catch (error) {
      failure = error as Error
      for (const { seat } of some) seat.happens('fails')
      throw error
    } finally {
      for (const { seat } of some) seat.free(failure)
      for (const { seat } of some) this.#ballots.changed(seat.ballot)
    }
  }

  /**
   * Sends the heartbeat of waiters to all servers of a quorum. The heartbeat queues a waiter again on servers where it is
   * missing, writes the waiter's ticket to all servers, and finds grants whose messages were lost.
   */
  async tend(waiters: readonly HeartbeatEntry[]): Promise<HeartbeatReply> {
    const ballots = this.#ballots
    const { members, majority } = ballots
    const answers: (HeartbeatReply | undefined)[] = members.map(() => undefined)
    // The callers of these waiters still wait. If a ballot says that its claim was granted or taken back, `waits`
    // corrects the ballot.
    for (const waiter of waiters) ballots.waits(waiter)
    // While a waiter has votes but no majority, the round waits for the other servers, because their answers may be
    // votes.
    const decided = ({ claim }: HeartbeatEntry) => {
      const ballot = ballots.get(claim.id)
      return !ballot || ballot.granted !== undefined || ballot.votes().length === 0
    }
    const round = new Round(ballots, { verdict: enough => (enough && waiters.every(decided) ? 'over' : 'open') })
    for (const [i, member] of members.entries()) {
      round.ask(i, 'vote', async () => {
        answers[i] = await this.#tend(member, waiters)
      })
    }
    await round.settled()
    const said = answers.filter(answer => answer !== undefined)
    const refusals = said.map(
      ({ expected: _, ...answer }) => ({ ...answer, granted: false, position: 0, ticket: '0' }) satisfies Refused,
    )
    const { sent, ttl, holder, owner } = merged(refusals, members.length - majority, this.#clock.now())
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

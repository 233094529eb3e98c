/**
 * Renews holds on a quorum. A hold is prolonged if a majority prolongs it, and gone if no majority has it any more. If
 * a server does not answer, nothing changes: the hold on that server counts until the last deadline that the server has
 * given.
 *
 * A server that does not have the hold is asked to grant it too, with the token that the other servers have. Such a
 * server was away when the lock was granted, or had voted for a claim that has since been taken back. Without these
 * requests, the hold could disappear from one server after the other. It would end although a majority of the servers
 * was up at any time (I8).
 */
import type { Clock } from '../../clock.ts'
import type { Prolonging, Renewed, VoteMode } from '../../kind.ts'
import type { Ballot, Seat } from './ballot.ts'
import type { Ballots } from './ballots.ts'
import { noMajority } from './member.ts'
import { Round } from './round.ts'

interface Question extends Prolonging {
  readonly ballot: Ballot | undefined
  /** How many servers have prolonged the hold in this round. */
  prolonged: number
  /** If a majority has prolonged the hold, it lasts until this time at least, in monotonic ms. */
  readonly least: number
  /** Whether a server's vote was renewed or replaced after this question was sent, so that its answer is outdated. */
  outdated: boolean
}

/**
 * How often a renewal asks the servers, at most. It asks again if a token was corrected, if an answer was outdated, or
 * if further servers were asked to join the hold.
 */
const MOST_ROUNDS = 3

/**
 * How long a round waits for servers whose answers decide whether a hold is prolonged: this fraction of the time that
 * the hold has left, and at most `most` ms.
 */
const PATIENCE = { fraction: 1 / 4, most: 1_000 }

/** A server that prolongs a hold by some time prolongs it by this fraction of the time at least, less all margins. */
const LEAST = 0.85

/** How long a forced release may take to reach all servers, in ms. */
const TAKING = 500

export class Renewals {
  readonly #ballots: Ballots
  readonly #clock: Clock

  constructor(ballots: Ballots, clock: Clock) {
    this.#ballots = ballots
    this.#clock = clock
  }

  /**
   * Renews the holds on all servers. Rejects if the outcome is unknown for every hold, because too few servers have
   * answered. `rounds`: how often the servers are asked, at most.
   */
  async renew(asked: readonly Prolonging[], rounds = MOST_ROUNDS): Promise<Renewed[]> {
    const { places, members, majority } = this.#ballots
    const questions: Question[] = asked.map(each => ({
      ...each,
      ballot: this.#ballots.get(each.hold.id),
      prolonged: 0,
      least: this.#clock.now() + each.ms * LEAST,
      outdated: false,
    }))
    // A server may lose the hold after it has prolonged it, as by a forced release. So `prolonged` alone decides nothing.
    const decided = ({ ballot, prolonged, least }: Question) =>
      !ballot?.granted || (prolonged >= majority && ballot.until >= least) || ballot.votes().length < majority
    const unanswered = new Set(places.keys())
    const open = (question: Question) => !decided(question) && question.prolonged + unanswered.size >= majority
    const round = new Round(members, majority, this.#clock, () => this.#patience(questions.filter(open)))
    for (const i of places.keys()) {
      const answered = () => round.answered(i, questions.every(decided))
      const seatOf = ({ ballot }: Question) => (ballot?.granted ? ballot.seats[i] : undefined)
      const prolonged = this.#prolong(
        i,
        questions.filter(question => seatOf(question)?.vote),
      )
      const coming = questions.filter(question => isComing(seatOf(question)))
      // A vote that is on its way may never arrive. So the time limit of the round begins without it.
      if (coming.length > 0) prolonged.then(answered, () => {})
      const asking = Promise.all([prolonged, ...coming.map(question => this.#prolongLate(i, question))])
      asking.finally(() => unanswered.delete(i)).then(answered, error => round.failed(i, error))
    }
    await round.over
    const settled = await Promise.all(questions.map(({ ballot }) => ballot && this.#settle(ballot)))
    const undecided = questions.filter(question => !decided(question))
    // If a server does not answer, another server may join the hold and prolong it instead.
    const joining = undecided.map(question => this.#join(question.ballot as Ballot))
    // Correcting a token does not prolong the lease, and neither does joining. So the servers are asked again.
    // If all servers have answered, a vote has come since the round has ended.
    const answered = round.missing.every(reason => reason === undefined)
    const changed = answered || [...settled, ...joining].some(Boolean) || questions.some(({ outdated }) => outdated)
    if (undecided.length > 0 && rounds > 1 && changed) return this.renew(asked, rounds - 1)
    const renewed = questions.map((question): Renewed => {
      const { ballot } = question
      if (!ballot?.granted) return 'lost'
      const until = decided(question) ? ballot.until : 'unknown'
      if (until === 0) {
        this.#ballots.endLost(ballot)
        return 'lost'
      }
      this.#join(ballot)
      return until
    })
    if (renewed.every(each => each === 'unknown')) throw noMajority(round.missing)
    return renewed
  }

  /**
   * Returns the minimum of a round's time limit, in ms. `open` are the questions that the servers without an answer can
   * still decide. If there is none, returns undefined.
   */
  #patience(open: readonly Question[]): number | undefined {
    if (open.length === 0) return undefined
    const ends = open.map(({ ballot }) => (ballot as Ballot).until)
    const left = Math.max(0, Math.min(...ends) - this.#clock.now())
    return Math.min(PATIENCE.most, left * PATIENCE.fraction)
  }

  /** Waits for the server's vote, which is on its way, and then asks the server to prolong the hold. */
  async #prolongLate(server: number, question: Question): Promise<void> {
    const ballot = question.ballot as Ballot
    const seat = ballot.seats[server] as Seat
    await new Promise<void>(resolve => {
      const unwatch = this.#ballots.watch(ballot, () => {
        if (!seat.vote && seat.asked > 0) return
        unwatch()
        resolve()
      })
    })
    if (ballot.granted && seat.vote) await this.#prolong(server, [question])
  }

  /** Asks the server to prolong these holds, for which it has voted. */
  async #prolong(server: number, some: readonly Question[]): Promise<void> {
    if (some.length === 0) return
    const { kind } = this.#ballots.places[server]!
    const tokens = some.map(({ ballot }) => ballot?.seats[server]?.vote?.token ?? 0)
    const sent = this.#clock.now()
    const renewed = await kind.renew(some.map(({ hold, ms }, i) => ({ hold, ms, token: tokens[i]! })))
    for (const [i, question] of some.entries()) {
      const { ballot, ms } = question
      const seat = ballot?.seats[server]
      if (!ballot || !seat?.vote) continue
      const until = renewed[i]
      if (typeof until === 'number') {
        this.#ballots.voted(ballot, server, { ...seat.vote, deadline: until }, Math.max(ms, until - this.#clock.now()))
        if (seat.counted) question.prolonged += 1
      } else if (seat.votedAt < sent) {
        seat.anew = until === 'replaced'
        seat.vote = undefined
        if (until === 'lost') seat.goneAt = this.#clock.now()
      } else question.outdated = true
    }
  }

  /**
   * Writes the token of the hold to the servers that have the hold with another token, because a vote with another
   * token does not count. Waits for the answers. Resolves to true if there was such a server. A server has another
   * token for one of two reasons. Either it has granted the hold again, with a token that this client does not know. Or
   * it had voted with that token before the majority agreed on the token of the hold.
   */
  async #settle(ballot: Ballot): Promise<boolean> {
    const token = ballot.granted?.token
    if (token === undefined) return false
    const anew = ballot.seats.flatMap((seat, i) => (seat.anew ? [i] : []))
    for (const i of anew) (ballot.seats[i] as Seat).anew = false
    await this.#askUntilHeld(ballot, anew, 'raise', token)
    const other = ballot.seats.flatMap(({ vote }, i) => (vote && vote.token !== token ? [i] : []))
    await this.#askUntilHeld(ballot, other, 'same', token)
    return anew.length + other.length > 0
  }

  /** Writes the token to these servers. Resolves when all have answered, or as soon as a majority has the hold. */
  #askUntilHeld(ballot: Ballot, servers: readonly number[], mode: VoteMode, token: number): Promise<void> {
    return new Promise(resolve => {
      let unanswered = servers.length
      const judge = () => {
        if (unanswered === 0 || ballot.until > 0) resolve()
      }
      for (const i of servers) {
        this.#ballots.ask(ballot, i, mode, token, () => {
          unanswered -= 1
          judge()
        })
      }
      judge()
    })
  }

  /**
   * Asks the servers that do not have the hold to grant it, too, except servers that have lost it within the last
   * TAKING ms. A forced release takes the hold from one server after the other, and would never finish if servers
   * granted the hold again at once. Returns whether a server was asked.
   */
  #join(ballot: Ballot): boolean {
    const token = ballot.granted?.token
    const before = this.#clock.now() - TAKING
    let joins = false
    for (const [i, { member }] of this.#ballots.places.entries()) {
      const seat = ballot.seats[i] as Seat
      if (token === undefined || seat.vote || seat.asked > 0 || seat.clearing || !member.up) continue
      if (seat.goneAt > before) continue
      this.#ballots.ask(ballot, i, 'same', token)
      joins = true
    }
    return joins
  }
}

/** Returns whether the server may still vote for the claim, because it has not answered all requests of the claim. */
function isComing(seat: Seat | undefined): boolean {
  return seat !== undefined && !seat.vote && seat.asked > 0 && !seat.clearing
}

/**
 * Renewal of holds on a quorum: prolonged where a majority prolongs; gone where no majority has it any more. A server that does not answer
 * changes nothing: what it has granted it has until the end that it was asked for.
 *
 * A server that misses the hold is asked to join it, with the token that the others have: it was away when the lock was granted, or somebody
 * had it there who has put it back since. Without that, the loss of one server after the other would end a hold of which nobody heard (I8).
 */
import type { Clock } from '../../clock.ts'
import type { Prolonging, Renewed } from '../../kind.ts'
import type { Ballot, Seat } from './ballot.ts'
import type { Ballots } from './ballots.ts'
import { noMajority } from './member.ts'
import { Round } from './round.ts'

interface Question extends Prolonging {
  readonly ballot: Ballot | undefined
  /** How many servers have prolonged it in this round. */
  prolonged: number
}

export class Renewals {
  readonly #ballots: Ballots
  readonly #clock: Clock

  constructor(ballots: Ballots, clock: Clock) {
    this.#ballots = ballots
    this.#clock = clock
  }

  /** Rejects where too few servers answer to say what has become of each. */
  async renew(asked: readonly Prolonging[]): Promise<Renewed[]> {
    const { places, members, majority } = this.#ballots
    const questions: Question[] = asked.map(each => ({
      ...each,
      ballot: this.#ballots.get(each.hold.id),
      prolonged: 0,
    }))
    const decided = ({ ballot, prolonged }: Question) =>
      !ballot?.granted || prolonged >= majority || this.#ballots.votes(ballot).length < majority
    const round = new Round(members, majority, this.#clock)
    for (const i of places.keys()) {
      this.#ask(i, questions).then(
        () => round.answered(i, questions.every(decided)),
        error => round.failed(i, error),
      )
    }
    const errors = await round.over
    await Promise.all(questions.map(({ ballot }) => ballot && this.#settle(ballot)))
    if (!questions.every(decided)) throw noMajority(errors)
    return questions.map(({ ballot }) => {
      if (!ballot?.granted) return undefined
      const until = this.#ballots.until(ballot)
      if (until === 0) {
        this.#ballots.end(ballot).catch(() => {})
        return undefined
      }
      this.#join(ballot)
      return until
    })
  }

  async #ask(server: number, questions: readonly Question[]): Promise<void> {
    const some = questions.filter(({ ballot }) => ballot?.granted && ballot.seats[server]?.vote)
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
        question.prolonged += 1
        this.#ballots.voted(ballot, server, { ...seat.vote, deadline: until }, Math.max(ms, until - this.#clock.now()))
      } else if (seat.votedAt < sent) {
        seat.anew = until === 'anew'
        seat.vote = undefined
      }
    }
  }

  /** Servers that have the claim with another token than is known here have it all the same, and are told the right one. */
  async #settle(ballot: Ballot): Promise<void> {
    const anew = ballot.seats.flatMap((seat, i) => (seat.anew ? [i] : []))
    const token = ballot.granted?.token
    if (token === undefined || anew.length === 0) return
    await Promise.all(
      anew.map(i => {
        ;(ballot.seats[i] as Seat).anew = false
        return new Promise<void>(resolve => this.#ballots.ask(ballot, i, 'raise', token, () => resolve()))
      }),
    )
  }

  /** Asks the servers that miss the hold to join it. */
  #join(ballot: Ballot): void {
    const token = ballot.granted?.token
    for (const [i, { member }] of this.#ballots.places.entries()) {
      const seat = ballot.seats[i] as Seat
      if (token === undefined || seat.vote || seat.asked > 0 || seat.clearing || !member.up) continue
      this.#ballots.ask(ballot, i, 'same', token)
    }
  }
}

/**
 * A poll: one call that asks all servers to vote for a claim. It ends as soon as the answers decide the outcome, so a
 * dead or slow server does not delay it.
 *
 *   granted    a majority has voted, and agrees on a token (ballots.ts)
 *   refused    no majority can vote for the claim any more, and a majority has answered
 *   an error   so many servers have failed that no majority can answer
 *
 * The poll waits while the missing answers could still complete a majority of votes. But once a majority of the servers
 * has answered, the other servers have a limited time to answer: a few times the time that the majority took. Without
 * this limit, two callers could block each other: if one of three servers is dead and each caller has one vote, both
 * would wait for the vote of the dead server.
 *
 * A vote that does not count yet (`Standing`) is neither an answer nor a failure. The poll waits for it only until a
 * majority of other servers has answered. If one of these has refused, the lock is taken.
 */
import type { Clock, Timer } from '../../clock.ts'
import type { Granted, Refused, VoteMode } from '../../kind.ts'
import { type Answer, type Ballot, latestTicket, tellOutcome } from './ballot.ts'
import type { Ballots } from './ballots.ts'
import { type Member, noMajority, reasonOf } from './member.ts'
import { graceAfter, merged } from './round.ts'

export interface Outcome {
  readonly answer: Granted | Refused
  /** Whether the claim was refused although some servers voted for it. Then perhaps no claim has a majority. */
  readonly split: boolean
}

export class Poll {
  readonly #ballots: Ballots
  readonly #ballot: Ballot
  readonly #mode: VoteMode
  readonly #clock: Clock
  readonly #begun: number
  readonly #answers: Answer[]
  readonly #answered: boolean[]
  readonly #unwatch: () => void
  readonly #resolve: (outcome: Outcome) => void
  readonly #reject: (error: Error) => void
  #timer: Timer | undefined
  /** Whether servers have been asked again because their votes had lapsed before the claim was granted. */
  #askedAgain = false
  /** Whether the poll no longer waits for servers that have not answered. */
  #late = false
  /**
   * For how long the poll waits for servers whose votes do not count yet, in ms from the start of the poll
   * (`Standing`).
   */
  #patience = 0
  #counting: Timer | undefined
  #done = false

  /**
   * Starts a poll. `patience`: for how long the poll waits for servers whose votes do not count yet, in ms
   * (`Standing`).
   */
  static ask(
    ballots: Ballots,
    ballot: Ballot,
    mode: VoteMode,
    floor: number,
    clock: Clock,
    patience: number,
  ): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      new Poll(ballots, ballot, mode, clock, resolve, reject).#start(floor, patience)
    })
  }

  private constructor(
    ballots: Ballots,
    ballot: Ballot,
    mode: VoteMode,
    clock: Clock,
    resolve: (outcome: Outcome) => void,
    reject: (error: Error) => void,
  ) {
    this.#ballots = ballots
    this.#ballot = ballot
    this.#mode = mode
    this.#clock = clock
    this.#begun = clock.now()
    this.#resolve = resolve
    this.#reject = reject
    this.#answers = new Array(ballot.seats.length).fill(undefined)
    this.#answered = new Array(ballot.seats.length).fill(false)
    this.#unwatch = ballots.watch(ballot, () => this.#judge())
    ballot.polls += 1
  }

  #start(floor: number, patience: number): void {
    this.#patience = patience
    for (const i of this.#ballots.places.keys()) this.#ask(i, floor)
  }

  #ask(server: number, floor: number): void {
    this.#answered[server] = false
    this.#ballots.ask(this.#ballot, server, this.#mode, floor, answer => {
      this.#answered[server] = true
      this.#answers[server] = answer
    })
  }

  #judge(): void {
    const { majority, places } = this.#ballots
    const ballot = this.#ballot
    if (this.#done) return
    // The caller has given up. Other callers of this client rely on a refusal, so there is none without a majority.
    if (ballot.over && this.#refusals.length < majority) return this.#fail()
    if (ballot.over) return this.#end(() => this.#resolve({ answer: this.#refusal(), split: false }))
    if (ballot.granted) {
      ballot.reported = true
      return this.#end(() => this.#resolve({ answer: ballot.granted as Granted, split: false }))
    }
    if (!this.#late && this.#known < majority) return
    let [voted, agreeing, refused, open, failed] = [0, 0, 0, 0, 0]
    for (const [i, { member }] of places.entries()) {
      const seat = ballot.seats[i]
      const answer = this.#answers[i]
      if (seat?.vote) {
        if (seat.agreeing) agreeing += member.up && !this.#late ? 1 : 0
        else if (seat.counted) voted += 1
        else if (member.repeats || !this.#awaits(member)) failed += 1
      } else if (!this.#answered[i]) open += member.up && !this.#late ? 1 : 0
      else if (answer instanceof Error) failed += 1
      else refused += 1
    }
    // A majority has voted, but the claim is not granted: some leases have ended while other answers were awaited.
    if (voted >= majority) return this.#askLapsed()
    open += agreeing
    const answered = voted + agreeing + refused
    if (places.length - failed < majority) {
      const settled = this.#late || places.every((_, i) => this.#answered[i])
      return settled ? this.#fail() : this.#waitForOthers()
    }
    if (answered < majority) return
    if (voted + open >= majority) return this.#waitForOthers()
    const answer = this.#refusal()
    // The ticket has to be set before this poll ends. Other calls may wait for the same claim, and end at the same
    // moment. The last of them would take the claim back from the servers if the claim had no ticket
    // (`QuorumKind.#putBack`).
    if (this.#mode === 'queue') ballot.ticket ??= latestTicket(ballot)
    tellOutcome(ballot.claim, voted > 0 ? 'split' : 'refused')
    const { ticket = answer.ticket } = ballot
    this.#end(() => this.#resolve({ answer: { ...answer, ticket }, split: voted > 0 }))
  }

  /** The number of servers that have answered, or have voted for the claim before. */
  get #known(): number {
    let known = 0
    for (const [i, { vote }] of this.#ballot.seats.entries()) if (vote || this.#answered[i]) known += 1
    return known
  }

  /**
   * Returns whether the poll waits until the votes of this server count. If the poll waits, this method also sets a
   * timer that calls `#judge` again.
   */
  #awaits({ standing }: Member): boolean {
    const left = this.#begun + this.#patience - this.#clock.now()
    if (left <= 0) return false
    const wait = Math.max(1, Math.min(left, standing.wait))
    this.#counting ??= this.#clock.after(wait, () => {
      this.#counting = undefined
      // Votes that count by now are made valid first (`Ballots.#askYoung`).
      this.#ballots.changed(this.#ballot)
    })
    return true
  }

  #askLapsed(): void {
    const now = this.#clock.now()
    if (this.#ballot.seats.every(({ vote }) => !vote || vote.deadline > now)) return
    // Servers are asked again only once. If the lease is shorter than the round trip, each new vote would lapse as
    // well.
    if (this.#askedAgain) {
      this.#ballots.grantLapsed(this.#ballot)
      return this.#judge()
    }
    this.#askedAgain = true
    for (const [i, seat] of this.#ballot.seats.entries()) {
      if (!seat.vote || seat.vote.deadline > now) continue
      seat.vote = undefined
      this.#ask(i, 0)
    }
  }

  #waitForOthers(): void {
    this.#timer ??= this.#clock.after(graceAfter(this.#begun, this.#clock.now()), () => {
      this.#late = true
      this.#judge()
    })
  }

  #fail(): void {
    const { places } = this.#ballots
    const reasons = places.map(({ member }, i) => {
      const answer = this.#answers[i]
      if (answer instanceof Error) return answer
      const seat = this.#ballot.seats[i]
      return this.#answered[i] && !(seat?.vote && !seat.counted) ? undefined : reasonOf(member)
    })
    tellOutcome(this.#ballot.claim, 'failed')
    this.#end(() => this.#reject(noMajority(reasons)))
  }

  get #refusals(): Refused[] {
    return this.#answers.filter((answer): answer is Refused => !!answer && 'granted' in answer && !answer.granted)
  }

  /** Returns the refusals of the servers, merged into one. */
  #refusal(): Refused {
    return merged(this.#refusals, this.#ballots.places.length - this.#ballots.majority, this.#begun)
  }

  #end(settle: () => void): void {
    this.#done = true
    this.#timer?.cancel()
    this.#counting?.cancel()
    this.#ballot.polls -= 1
    this.#unwatch()
    settle()
  }
}

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
 */
import type { Clock, Timer } from '../../clock.ts'
import type { Granted, Refused, VoteMode } from '../../kind.ts'
import type { Answer, Ballot } from './ballot.ts'
import type { Ballots } from './ballots.ts'
import { type Member, noMajority, reasonOf } from './member.ts'
import { tellOutcome } from './outcomes.ts'
import { graceAfter } from './round.ts'

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
   * (standing.ts).
   */
  #patience = 0
  #counting: Timer | undefined
  #done = false

  /**
   * Starts a poll. `patience`: for how long the poll waits for servers whose votes do not count yet, in ms
   * (standing.ts).
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
    this.#answers = ballot.seats.map(() => undefined)
    this.#answered = ballot.seats.map(() => false)
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
    // The caller has given up.
    if (ballot.over) return this.#end(() => this.#resolve({ answer: this.#refusal(), split: false }))
    if (ballot.granted) {
      ballot.reported = true
      return this.#end(() => this.#resolve({ answer: ballot.granted as Granted, split: false }))
    }
    let [voted, agreeing, refused, open, failed] = [0, 0, 0, 0, 0]
    for (const [i, { member }] of places.entries()) {
      const seat = ballot.seats[i]
      const answer = this.#answers[i]
      if (seat?.vote) {
        if (seat.agreeing) agreeing += member.up && !this.#late ? 1 : 0
        else if (seat.counted) voted += 1
        else if (this.#awaits(member)) open += 1
        else failed += 1
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
    if (this.#mode === 'queue') ballot.ticket = answer.ticket
    tellOutcome(ballot.claim, voted > 0 ? 'split' : 'refused')
    this.#end(() => this.#resolve({ answer, split: voted > 0 }))
  }

  /**
   * Returns whether the poll waits until the votes of this server count. If the poll waits, this method also sets a
   * timer that calls `#judge` again.
   */
  #awaits({ standing }: Member): boolean {
    const left = this.#begun + this.#patience - this.#clock.now()
    if (left <= 0) return false
    const wait = Math.max(1, Math.min(left, Number.isFinite(standing.wait) ? standing.wait : left))
    this.#counting ??= this.#clock.after(wait, () => {
      this.#counting = undefined
      this.#judge()
    })
    return true
  }

  #askLapsed(): void {
    const now = this.#clock.now()
    if (this.#ballot.seats.every(({ vote }) => !vote || vote.deadline > now)) return
    // Servers are asked again only once. If the lease is shorter than the round trip, each new vote would lapse as
    // well.
    if (this.#askedAgain) {
      this.#ballots.election.grantLapsed(this.#ballot)
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

  /** Returns the refusals of the servers, merged into one. */
  #refusal(): Refused {
    const refusals = this.#answers.filter(
      (answer): answer is Refused => !!answer && 'granted' in answer && !answer.granted,
    )
    return merged(refusals, this.#ballots.places.length - this.#ballots.majority, this.#begun)
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

/**
 * Merges the refusals of several servers. `spare`: how many more servers the quorum has than a majority needs. `since`:
 * when the servers were asked, in monotonic ms.
 */
export function merged(refusals: readonly Refused[], spare: number, since: number): Refused {
  const byEnd = [...refusals].sort((a, b) => a.ttl - b.ttl)
  const places = refusals.map(({ position }) => position).sort((a, b) => a - b)
  const tickets = refusals.map(({ ticket }) => Number(ticket))
  // A server that has voted for a waiter names this waiter as its holder. Such a vote is later than the grant of the
  // hold. So if equally many servers name two holders, the earlier one counts.
  const byGrant = [...refusals].sort((a, b) => (a.holder?.since ?? 0) - (b.holder?.since ?? 0))
  const says = mostFrequent(byGrant, ({ holder }) => holder?.label ?? '')
  return {
    granted: false,
    sent: refusals.length > 0 ? Math.min(...refusals.map(({ sent }) => sent)) : since,
    // After `ttl` ms, the holder's lease may have ended on a majority of the servers.
    ttl: byEnd[Math.max(0, byEnd.length - 1 - spare)]?.ttl ?? 0,
    position: places[places.length >> 1] ?? 0,
    ticket: String(Math.max(0, ...tickets)),
    holder: says?.holder,
    owner: says?.owner,
    // `clock` is not used here: a server's message is compared with the clock in that server's own refusal
    // (`Seat.seen`).
    clock: 0,
  }
}

/** Returns the value with the most frequent name; of several, the one that reaches this frequency first. */
function mostFrequent<T>(values: readonly T[], nameOf: (value: T) => string): T | undefined {
  const counts = new Map<string, number>()
  let best: T | undefined
  for (const value of values) {
    const count = (counts.get(nameOf(value)) ?? 0) + 1
    counts.set(nameOf(value), count)
    if (best === undefined || count > (counts.get(nameOf(best)) ?? 0)) best = value
  }
  return best
}

/**
 * One question to all servers: ask all, decide by majority, grace for the rest. Attempts, heartbeats, renewals, releases,
 * subscriptions and inspections are its uses.
 *
 * A round is over when no further answer can change the result. If one can, and a majority has answered, the round waits
 * for the others, but only a few times as long as the majority took: a dead or slow server must not delay a call. Without
 * this limit, two callers could block each other: if one of three servers is dead and each caller has one vote, both would
 * wait for the vote of the dead server. If so many servers have failed that no majority can answer, the round waits for
 * the others in the same way, so that the error can name the reason of each failure.
 */
import type { Clock, Timer } from '../../clock.ts'
import type { Refused } from '../../kind.ts'
import { type Member, noMajority, reasonOf, type Wanted } from './member.ts'

/** The time limit of a round for the last servers, in ms: `times` × the time that the round has taken, plus `least`. */
const OTHERS = { times: 3, least: 10 }

export interface Electorate {
  readonly members: readonly Member[]
  readonly majority: number
  readonly clock: Clock
}

interface Count {
  readonly answered: number
  readonly failed: number
  readonly open: number
}

export interface Question {
  /**
   * `over`: no further answer can change the result. `waits`: the round must not end now, whoever has answered.
   * `enough`: whether a majority has answered.
   */
  verdict(enough: boolean): 'over' | 'open' | 'waits'
  /** How many servers have answered, have failed, or may still answer; if absent: as the round has recorded. */
  count?(): Count
  /** The minimum of the time limit for the last servers, in ms. */
  least?(): number | undefined
  /** Called when the round is over. */
  ended?(enough: boolean): void
}

export class Round {
  /** Resolves when the round is over, to whether a majority has answered. */
  readonly over: Promise<boolean>
  /** When the round began, in monotonic ms. */
  readonly begun: number
  /** Whether the round no longer waits for servers that have not answered. */
  late = false
  readonly #of: Electorate
  readonly #question: Question
  /** For each server, its error or what else is recorded; undefined while the server has done nothing. */
  readonly #outcomes: (Error | 'answered' | 'partly' | undefined)[]
  #resolve!: (enough: boolean) => void
  #timer: Timer | undefined
  #ended = false

  constructor(of: Electorate, question: Question) {
    this.#of = of
    this.#question = question
    this.begun = of.clock.now()
    this.#outcomes = new Array(of.members.length).fill(undefined)
    this.over = new Promise(resolve => {
      this.#resolve = resolve
    })
  }

  /** Resolves when the round is over. Rejects if no majority has answered. */
  async settled(): Promise<void> {
    if (!(await this.over)) throw noMajority(this.missing)
  }

  /** Asks a server as soon as it can be asked, unless the round is over then. */
  ask(server: number, wanted: Wanted, send: () => Promise<unknown>): void {
    ;(this.#of.members[server] as Member).whenReady(this, wanted, error => {
      if (error) this.failed(server, error)
      else if (!this.#ended) this.expect(server, send())
    })
  }

  /** Records the answer of a server, or its failure, when the promise settles. */
  expect(server: number, answer: Promise<unknown>): void {
    answer.then(
      () => this.answered(server),
      error => this.failed(server, error),
    )
  }

  answered(server: number): void {
    this.#outcomes[server] = 'answered'
    this.judge()
  }

  /** Records that a server has answered, and that another answer may come, or may not. */
  partly(server: number): void {
    this.#outcomes[server] ??= 'partly'
    this.judge()
  }

  failed(server: number, error: Error): void {
    this.#outcomes[server] = error
    this.judge()
  }

  has(server: number): boolean {
    return this.#outcomes[server] === 'answered'
  }

  get errors(): (Error | undefined)[] {
    return this.#outcomes.map(outcome => (outcome instanceof Error ? outcome : undefined))
  }

  /** For each server that has not answered, why. */
  get missing(): (Error | undefined)[] {
    return this.#outcomes.map((outcome, i) =>
      outcome === 'answered' ? undefined : outcome instanceof Error ? outcome : reasonOf(this.#of.members[i]!),
    )
  }

  /** Ends the round, if it is over. */
  judge(): void {
    if (this.#ended) return
    const { members, majority, clock } = this.#of
    const { answered, failed, open } = this.#question.count?.() ?? this.#count
    const enough = answered >= majority
    const verdict = this.#question.verdict(enough)
    if (verdict === 'over') return this.#end(enough)
    if (verdict === 'waits' || (!enough && members.length - failed >= majority)) return
    if (this.late || open === 0) return this.#end(enough)
    const grace = (this.#question.least?.() ?? OTHERS.least) + OTHERS.times * (clock.now() - this.begun)
    this.#timer ??= clock.after(grace, () => {
      this.late = true
      this.judge()
    })
  }

  get #count(): Count {
    const count = { answered: 0, failed: 0, open: 0 }
    for (const outcome of this.#outcomes) {
      if (outcome instanceof Error) count.failed += 1
      else if (outcome) count.answered += 1
      if (outcome === undefined || outcome === 'partly') count.open += 1
    }
    return count
  }

  #end(enough: boolean): void {
    this.#ended = true
    this.#timer?.cancel()
    for (const member of this.#of.members) member.drop(this)
    this.#question.ended?.(enough)
    this.#resolve(enough)
  }
}

/** Resolves when a majority of the servers has answered. `answers`: one for each server. */
export function majorityOf(of: Electorate, answers: readonly Promise<unknown>[]): Promise<void> {
  const round = new Round(of, { verdict: enough => (enough ? 'over' : 'open') })
  for (const [i, answer] of answers.entries()) round.expect(i, answer)
  return round.settled()
}

/**
 * Returns the time until which a majority of the servers has a hold; 0 if no majority has it. `ends` are the times at
 * which the hold ends on the servers that have it.
 */
export function untilMajority(ends: readonly number[], majority: number): number {
  return ends.length < majority ? 0 : [...ends].sort((a, b) => b - a)[majority - 1]!
}

/** Counts the servers on which a hold was ended, and the servers on which the hold was gone already. */
export class VoteTally {
  readonly #servers: number
  readonly #majority: number
  #ended = 0
  #gone = 0

  constructor({ members, majority }: Electorate) {
    this.#servers = members.length
    this.#majority = majority
  }

  add(outcome: 'ended' | 'gone'): void {
    if (outcome === 'ended') this.#ended += 1
    else this.#gone += 1
  }

  /**
   * Whether the release has ended a hold that may still have had a majority: at least one server has ended the hold,
   * and enough servers for a majority may have had it until then. A server may have had the hold unless it has reported
   * that the hold was gone already.
   */
  get ended(): boolean {
    return this.#ended > 0 && this.#servers - this.#gone >= this.#majority
  }

  /** `over` if `ended` keeps its value, whatever the other servers answer. */
  verdict(enough: boolean): 'over' | 'open' {
    const decided = this.#ended >= this.#majority || this.#servers - this.#gone < this.#majority
    return enough && decided ? 'over' : 'open'
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
    // (`Seat.refused`).
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

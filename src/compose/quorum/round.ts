/**
 * One question to all servers. The round is over when a majority has answered and no further answer can change the
 * result. If a further answer can change the result, the round waits for it, but only a few times as long as the
 * majority took. If so many servers have failed that no majority can answer, the round waits for the others in the same
 * way, so that the error can name the reason of each failure. Usually the servers fail at about the same moment.
 */
import type { Clock, Timer } from '../../clock.ts'
import type { Refused } from '../../kind.ts'
import { type Member, noMajority, reasonOf } from './member.ts'

/** The time limit of a round for the last servers, in ms: `times` × the time that the round has taken, plus `least`. */
const OTHERS = { times: 3, least: 10 }

/** Returns how many more ms a round may wait for the remaining servers. `begun`: when the round began. */
export function graceAfter(begun: number, now: number, least = OTHERS.least): number {
  return least + OTHERS.times * (now - begun)
}

export class Round {
  /**
   * Resolves to the error of each server; undefined for a server that has not failed. Rejects if no majority has
   * answered.
   */
  readonly over: Promise<readonly (Error | undefined)[]>
  readonly #members: readonly Member[]
  readonly #majority: number
  readonly #clock: Clock
  readonly #begun: number
  readonly #least: () => number | undefined
  /** For each server, its error or 'answered'; undefined while the server has done neither. */
  readonly #outcomes: (Error | 'answered' | undefined)[]
  readonly #drops: (() => void)[] = []
  #resolve!: (errors: readonly (Error | undefined)[]) => void
  #reject!: (error: Error) => void
  #timer: Timer | undefined
  #ended = false

  constructor(members: readonly Member[], majority: number, clock: Clock, least = (): number | undefined => undefined) {
    this.#members = members
    this.#majority = majority
    this.#clock = clock
    this.#least = least
    this.#begun = clock.now()
    this.#outcomes = new Array(members.length).fill(undefined)
    this.over = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.over.catch(() => {})
  }

  /** Asks a server as soon as it can be reached, unless the round is over then. */
  ask(server: number, send: () => Promise<unknown>, decided: () => boolean): void {
    const member = this.#members[server] as Member
    const ask = () => this.expect(server, send(), decided)
    if (member.outOfReach) this.#drops.push(member.keep(ask, error => this.failed(server, error)))
    else ask()
  }

  /**
   * Records the answer of a server, or its failure, when the promise settles. `decided` returns whether no further
   * answer can change the result. It is called after the answer has arrived.
   */
  expect(server: number, answer: Promise<unknown>, decided: () => boolean): void {
    answer.then(
      () => this.answered(server, decided()),
      error => this.failed(server, error),
    )
  }

  /** Records that the server has answered. `decided`: whether no further answer can change the result. */
  answered(server: number, decided: boolean): void {
    this.#outcomes[server] = 'answered'
    if (this.#count('answered') < this.#majority) return
    if (decided) this.#end()
    else this.#waitForOthers()
  }

  has(server: number): boolean {
    return this.#outcomes[server] === 'answered'
  }

  failed(server: number, error: Error): void {
    this.#outcomes[server] = error
    const failed = this.#outcomes.filter(outcome => outcome instanceof Error).length
    if (this.#count('answered') >= this.#majority || this.#members.length - failed < this.#majority)
      this.#waitForOthers()
  }

  /** For each server that has not answered, why. */
  get missing(): (Error | undefined)[] {
    return this.#outcomes.map((outcome, i) =>
      outcome === 'answered' ? undefined : (outcome ?? reasonOf(this.#members[i]!)),
    )
  }

  #count(outcome: 'answered' | undefined): number {
    let count = 0
    for (const each of this.#outcomes) if (each === outcome) count += 1
    return count
  }

  #waitForOthers(): void {
    // A late answer may make the result open again.
    if (this.#ended) return
    if (this.#count(undefined) === 0) return this.#end()
    this.#timer ??= this.#clock.after(graceAfter(this.#begun, this.#clock.now(), this.#least()), () => this.#end())
  }

  #end(): void {
    this.#ended = true
    this.#timer?.cancel()
    for (const drop of this.#drops) drop()
    const errors = this.#outcomes.map(outcome => (outcome instanceof Error ? outcome : undefined))
    if (this.#count('answered') >= this.#majority) return this.#resolve(errors)
    this.#reject(noMajority(this.missing))
  }
}

/** Resolves once a majority of `parts` has resolved, and rejects once no majority can resolve any more. */
export function mostOf(parts: readonly Promise<unknown>[], majority: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let [done, failed] = [0, 0]
    for (const part of parts) {
      part.then(
        () => ++done === majority && resolve(),
        error => ++failed > parts.length - majority && reject(error),
      )
    }
  })
}

/** Counts the servers on which a hold was ended, and the servers on which the hold was gone already. */
export class Tally {
  readonly #servers: number
  readonly #majority: number
  #ended = 0
  #gone = 0

  constructor(servers: number, majority: number) {
    this.#servers = servers
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

  /** Whether `ended` keeps its value, whatever the other servers answer. */
  get decided(): boolean {
    return this.#ended >= this.#majority || this.#servers - this.#gone < this.#majority
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

/**
 * One question to all servers. The round is over when a majority has answered and no further answer can change the
 * result. If a further answer can change the result, the round waits for it, but only a few times as long as the
 * majority took. If so many servers have failed that no majority can answer, the round waits for the others in the same
 * way, so that the error can name the reason of each failure. Usually the servers fail at about the same moment.
 */
import type { Clock, Timer } from '../../clock.ts'
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
  #resolve!: (errors: readonly (Error | undefined)[]) => void
  #reject!: (error: Error) => void
  #timer: Timer | undefined

  constructor(members: readonly Member[], majority: number, clock: Clock, least = (): number | undefined => undefined) {
    this.#members = members
    this.#majority = majority
    this.#clock = clock
    this.#least = least
    this.#begun = clock.now()
    this.#outcomes = members.map(() => undefined)
    this.over = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.over.catch(() => {})
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

  #count(outcome: 'answered' | undefined): number {
    return this.#outcomes.filter(each => each === outcome).length
  }

  #waitForOthers(): void {
    if (this.#count(undefined) === 0) return this.#end()
    this.#timer ??= this.#clock.after(graceAfter(this.#begun, this.#clock.now(), this.#least()), () => this.#end())
  }

  #end(): void {
    this.#timer?.cancel()
    const errors = this.#outcomes.map(outcome => (outcome instanceof Error ? outcome : undefined))
    if (this.#count('answered') >= this.#majority) return this.#resolve(errors)
    this.#reject(noMajority(this.#outcomes.map((outcome, i) => missing(outcome, this.#members[i] as Member))))
  }
}

function missing(outcome: Error | 'answered' | undefined, member: Member): Error | undefined {
  return outcome === 'answered' ? undefined : (outcome ?? reasonOf(member))
}

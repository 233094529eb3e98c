/**
 * One question to all servers: over as soon as the answers decide it; or a few times as long after the answer of a majority as that took,
 * whoever is still missing; or when so many have failed that no majority can answer.
 */
import type { Clock, Timer } from '../../clock.ts'
import { noMajority } from './member.ts'

/** How long others are waited for once a majority has answered: so many times as long as that took, and at least so many ms. */
export const OTHERS = { times: 3, least: 10 }

export class Round {
  /** With the error of each server that has failed. */
  readonly over: Promise<readonly (Error | undefined)[]>
  readonly #errors: (Error | undefined)[]
  readonly #servers: number
  readonly #majority: number
  readonly #clock: Clock
  readonly #begun: number
  #resolve!: (errors: readonly (Error | undefined)[]) => void
  #reject!: (error: Error) => void
  #answered = 0
  #failed = 0
  #timer: Timer | undefined

  constructor(servers: number, majority: number, clock: Clock) {
    this.#servers = servers
    this.#majority = majority
    this.#clock = clock
    this.#begun = clock.now()
    this.#errors = new Array(servers).fill(undefined)
    this.over = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.over.catch(() => {})
  }

  answered(_server: number, decided: boolean): void {
    this.#answered += 1
    this.#judge(decided)
  }

  failed(server: number, error: Error): void {
    this.#errors[server] = error
    this.#failed += 1
    if (this.#servers - this.#failed < this.#majority) {
      this.#timer?.cancel()
      this.#reject(noMajority(this.#errors))
    } else this.#judge(false)
  }

  #judge(decided: boolean): void {
    if (this.#answered < this.#majority) return
    if (decided || this.#answered + this.#failed === this.#servers) return this.#end()
    const pause = OTHERS.least + OTHERS.times * (this.#clock.now() - this.#begun)
    this.#timer ??= this.#clock.after(pause, () => this.#end())
  }

  #end(): void {
    this.#timer?.cancel()
    this.#resolve(this.#errors)
  }
}

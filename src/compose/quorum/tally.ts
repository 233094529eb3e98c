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

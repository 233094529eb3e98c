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
   * Whether at least one server has ended the hold, and a majority may have had the hold. A server that has not
   * answered may have had the hold, too.
   */
  get ended(): boolean {
    return this.#ended > 0 && this.#servers - this.#gone >= this.#majority
  }

  /** Whether no missing answer can change `ended`. */
  get decided(): boolean {
    return this.#ended >= this.#majority || this.#servers - this.#gone < this.#majority
  }
}

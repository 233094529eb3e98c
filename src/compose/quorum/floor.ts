/**
 * The floor for tokens and tickets: a time, in µs, slightly ahead of the clocks of all servers. Each request contains
 * the floor, and each server then issues exactly this number. So all servers issue the same number: a grant needs no
 * second round trip, and all queues have the same order.
 *
 * If the floor is too low, a grant needs a second round trip. If the floor is too high, tokens are far ahead of the
 * time of day. A server that has lost its data continues from the time of day, so its next token would be smaller than
 * an earlier one (I2).
 *
 * The floor follows the servers' time of day, never the tokens that they issue. Tokens are ahead of the time of day
 * because of earlier floors. If two clients computed their floors from each other's tokens, the tokens would move
 * further and further into the future.
 */

/** How far the floor is ahead of the fastest clock when a request arrives at a server, in µs. */
const AHEAD = 5_000
/** The longest round trip that is added to the floor, in ms. Otherwise a slow answer would make the floor too high. */
const SLOWEST = 20
/** How long a reading of a clock is used, in ms. The clocks are read again after half of this time. */
const MEMORY = 10_000

interface Reading {
  /**
   * The server's clock in the answer, minus this client's clock when the answer arrived, in µs. The true difference is
   * larger by the time for which the answer was under way. That time is at most the round trip.
   */
  readonly ahead: number
  /** The round trip of the reading, in ms, at most SLOWEST. */
  readonly took: number
  readonly at: number
}

export class Floor {
  readonly #now: () => number
  readonly #readings: (Reading | undefined)[]
  readonly #read: () => void
  #asked = Number.NEGATIVE_INFINITY

  /** `read` starts to read the clocks of the servers, and calls `reading` for each answer. */
  constructor(now: () => number, servers: number, read: () => void) {
    this.#now = now
    this.#readings = new Array(servers).fill(undefined)
    this.#read = read
  }

  /** The floor for a request that is sent now, in µs; 0: no server's clock is known. */
  get next(): number {
    const now = this.#now()
    if (now - this.#asked >= MEMORY / 2) {
      this.#asked = now
      this.#read()
    }
    let ahead = Number.NEGATIVE_INFINITY
    for (const reading of this.#readings) {
      if (reading && now - reading.at < MEMORY) ahead = Math.max(ahead, reading.ahead + reading.took * 1000)
    }
    return ahead === Number.NEGATIVE_INFINITY ? 0 : Math.ceil(now * 1000 + ahead) + AHEAD
  }

  /**
   * Records a server's clock, in µs, from the answer to a request sent at `sent`. Of several answers, the quickest is
   * kept, because it is the most precise.
   */
  reading(server: number, clock: number, sent: number): void {
    const at = this.#now()
    const took = Math.min(at - sent, SLOWEST)
    const known = this.#readings[server]
    if (known && at - known.at < MEMORY && known.took < took) return
    this.#readings[server] = { ahead: clock - at * 1000, took, at }
  }
}

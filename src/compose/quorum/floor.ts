/**
 * The floor for tokens and tickets: a time, in µs, slightly ahead of the clocks of all servers. Each request contains
 * the floor, and each server then issues exactly this number. So all servers issue the same number: a grant needs no
 * second round trip, and all queues have the same order.
 *
 * If the floor is too low, a grant needs a second round trip. So the floor is ahead by the longest way to a server, even
 * if that takes hundreds of ms. If the floor is too high, a client's tickets are later than those of other clients that
 * ask after it, and tokens are far ahead of the time of day. A server that has lost its data continues from the time of
 * day, so its next token would be smaller than an earlier one (I2).
 *
 * The floor follows the servers' time of day, never the tokens that they issue. Tokens are ahead of the time of day
 * because of earlier floors. If two clients computed their floors from each other's tokens, the tokens would move
 * further and further into the future.
 */

/** How far the floor is ahead of the fastest clock when a request arrives at a server, in µs. */
const AHEAD = 5_000
/** The same for requests that are slower than a reading of the clock was, as a fraction of its round trip. */
const LATE = 0.1
/** The longest round trip that is added to the floor, in ms. Otherwise a slow answer would make the floor too high. */
const SLOWEST = 400
/** How long after a reading the clocks are read again, when a request is sent, in ms. */
const AGAIN = 5_000
/**
 * How long a reading is used if no newer one of this server arrives, in ms. If the client makes a call after a pause,
 * there is no newer one yet.
 */
const MEMORY = 600_000

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
  /** The latest reading of each server, and the one before if it is recent. */
  readonly #readings: (readonly Reading[])[]
  readonly #read: () => void
  #asked = Number.NEGATIVE_INFINITY

  /** `read` starts to read the clocks of the servers, and calls `reading` for each answer. */
  constructor(now: () => number, servers: number, read: () => void) {
    this.#now = now
    this.#readings = new Array(servers).fill([])
    this.#read = read
  }

  /** The floor for a request that is sent now, in µs; 0: no server's clock is known. */
  get next(): number {
    const now = this.#now()
    if (now - this.#asked >= AGAIN) {
      this.#asked = now
      this.#read()
    }
    let ahead = Number.NEGATIVE_INFINITY
    for (const [newest, before] of this.#readings) {
      if (!newest || now - newest.at >= MEMORY) continue
      // The quicker reading is the more precise one.
      const quicker = before && before.took < newest.took ? before : newest
      ahead = Math.max(ahead, quicker.ahead + quicker.took * 1000 * (1 + LATE))
    }
    return ahead === Number.NEGATIVE_INFINITY ? 0 : Math.ceil(now * 1000 + ahead) + AHEAD
  }

  /** Records a server's clock, in µs, from the answer to a request sent at `sent`. */
  reading(server: number, clock: number, sent: number): void {
    const at = this.#now()
    const [before] = this.#readings[server] ?? []
    const newest = { ahead: clock - at * 1000, took: Math.min(at - sent, SLOWEST), at }
    this.#readings[server] = before && at - before.at < 2 * AGAIN ? [newest, before] : [newest]
  }
}

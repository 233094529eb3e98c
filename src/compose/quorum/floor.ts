/**
 * The floor under tokens and tickets: a time, in µs, a little ahead of the clocks of all servers. Each of them issues the floor itself
 * then, and so all the same number: a grant needs no second round trip, and all queues have one order. A floor that is too low costs that
 * round trip, and one that is too high nothing.
 *
 * It follows the servers' own time of day, never the tokens that they issue: those are ahead of it by what floors were, and two clients
 * that learnt from each other's tokens would drive them into the future without end.
 */

/** How far the floor is ahead of the furthest clock, in µs: more than what a request takes longer to one server than to another. */
const AHEAD = 5_000
/** A clock that was read counts for so many ms, and is read again after half of them. */
const MEMORY = 10_000

interface Reading {
  /** µs by which the server's clock was ahead of ours, or a little less. */
  readonly ahead: number
  readonly at: number
}

export class Floor {
  readonly #now: () => number
  readonly #readings: (Reading | undefined)[]
  readonly #read: () => void
  #asked = Number.NEGATIVE_INFINITY

  /** `read`: reads the clocks of the servers, and tells `reading` of each. */
  constructor(now: () => number, servers: number, read: () => void) {
    this.#now = now
    this.#readings = new Array(servers).fill(undefined)
    this.#read = read
  }

  /** 0: no clock is known. */
  get next(): number {
    const now = this.#now()
    if (now - this.#asked >= MEMORY / 2) {
      this.#asked = now
      this.#read()
    }
    let ahead = Number.NEGATIVE_INFINITY
    for (const reading of this.#readings) {
      if (reading && now - reading.at < MEMORY) ahead = Math.max(ahead, reading.ahead)
    }
    return ahead === Number.NEGATIVE_INFINITY ? 0 : Math.ceil(now * 1000 + ahead) + AHEAD
  }

  /** What a server's clock showed, in µs, in answer to a request that left at `sent`. */
  reading(server: number, clock: number, sent: number): void {
    this.#readings[server] = { ahead: clock - sent * 1000, at: this.#now() }
  }
}

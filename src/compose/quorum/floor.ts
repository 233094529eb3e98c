/**
 * The floor under tokens and tickets: a time, in µs, a little ahead of the clocks of all servers. Each of them issues the floor itself
 * then, and so all the same number: a grant needs no second round trip, and all queues have one order. A floor that is too low costs that
 * round trip. One that is too high is ahead of the time of day, from which a server goes on that has lost its data: the next token would be
 * smaller (I2).
 *
 * It follows the servers' own time of day, never the tokens that they issue: those are ahead of it by what floors were, and two clients
 * that learnt from each other's tokens would drive them into the future without end.
 */

/** How far the floor is ahead of the furthest clock when a request comes to the server, in µs. */
const AHEAD = 5_000
/** A request takes so many ms there and back at most, as far as the floor is concerned: a slow answer says little of the time. */
const SLOWEST = 20
/** A clock that was read counts for so many ms, and is read again after half of them. */
const MEMORY = 10_000

interface Reading {
  /** µs by which the server's clock was ahead of ours, at least. */
  readonly ahead: number
  /** ms that the answer took. */
  readonly took: number
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
      if (reading && now - reading.at < MEMORY) ahead = Math.max(ahead, reading.ahead + reading.took * 1000)
    }
    return ahead === Number.NEGATIVE_INFINITY ? 0 : Math.ceil(now * 1000 + ahead) + AHEAD
  }

  /** What a server's clock showed, in µs, in answer to a request that left at `sent`. The quickest answer says most. */
  reading(server: number, clock: number, sent: number): void {
    const at = this.#now()
    const took = Math.min(at - sent, SLOWEST)
    const known = this.#readings[server]
    if (known && at - known.at < MEMORY && known.took < took) return
    this.#readings[server] = { ahead: clock - at * 1000, took, at }
  }
}

/**
 * "The lock is free" comes from each server. One that is free on a minority is not free, so whoever waits is woken by the message that
 * makes a majority: not by the first, in vain, nor by those that follow, once more.
 */

/** A message that comes later than this, in ms, is about something else. */
const TOGETHER = 1_000

interface Opening {
  readonly since: number
  readonly servers: Set<number>
  /** Who has released; undefined: not one alone. */
  by: string | undefined
}

export class Openings {
  readonly #now: () => number
  readonly #majority: number
  /** By lock and what is said of it, oldest first. */
  readonly #open = new Map<string, Opening>()

  constructor(now: () => number, majority: number) {
    this.#now = now
    this.#majority = majority
  }

  /** The server says so, because of `by`. Undefined: not yet, or not any more, by this message a majority does. */
  said(what: string, server: number, by?: string): Pick<Opening, 'by'> | undefined {
    const now = this.#now()
    for (const [old, { since }] of this.#open) {
      if (now - since < TOGETHER) break
      this.#open.delete(old)
    }
    let opening = this.#open.get(what)
    // The same server again: the lock was taken and released in the meantime.
    if (!opening || opening.servers.has(server)) {
      this.#open.delete(what)
      opening = { since: now, servers: new Set(), by }
      this.#open.set(what, opening)
    }
    // Two clients may have put back one vote each.
    if (opening.by !== by) opening.by = undefined
    return opening.servers.add(server).size === this.#majority ? opening : undefined
  }
}

/**
 * Counts the servers' messages that a lock is free. Every server sends its own message, but a lock that is free only on
 * a minority of the servers is not free. So only the message that completes a majority wakes the waiters. An earlier
 * message would wake them in vain, and a later one would wake them a second time.
 */

/**
 * Messages about the same release arrive within this many ms of each other. A later message is about another release.
 */
const TOGETHER = 1_000

interface Opening {
  readonly since: number
  readonly servers: Set<number>
  /** The client that has released the lock; undefined: the client is unknown, or there was more than one. */
  by: string | undefined
}

export class Openings {
  readonly #now: () => number
  readonly #majority: number
  /** The messages counted so far, by their text and lock, oldest first. */
  readonly #open = new Map<string, Opening>()

  constructor(now: () => number, majority: number) {
    this.#now = now
    this.#majority = majority
  }

  /**
   * Records a message of this server, caused by the client `by`. If this message completes a majority, returns which
   * client has released the lock; otherwise returns undefined.
   */
  said(what: string, server: number, by?: string): Pick<Opening, 'by'> | undefined {
    const now = this.#now()
    for (const [old, { since }] of this.#open) {
      if (now - since < TOGETHER) break
      this.#open.delete(old)
    }
    let opening = this.#open.get(what)
    // A second message of the same server shows that the lock was taken and released in the meantime. The count begins
    // again.
    if (!opening || opening.servers.has(server)) {
      this.#open.delete(what)
      opening = { since: now, servers: new Set(), by }
      this.#open.set(what, opening)
    }
    // If the messages name different clients, each of these clients may have given back the vote of one server. Then no
    // single client has released the lock.
    if (opening.by !== by) opening.by = undefined
    return opening.servers.add(server).size === this.#majority ? opening : undefined
  }
}

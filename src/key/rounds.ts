/**
 * The rounds of attempts with which the line of a key asks Redis for its lock. A round begins with an attempt of the
 * head, if the lock may be free since the last attempt was sent (`wake`). Then the line waits for the answers of the
 * round.
 *
 * In a lock that several owners may hold, each grant lets the next waiter of the line ask, until one is refused. The
 * more rounds there were in a row in which every attempt was granted, the more waiters ask in the next one. So even
 * thousands of readers that waited for a writer are admitted within a few round trips, and Redis refuses no more of
 * these attempts than it grants (I9).
 */

/** At most this many attempts are under way at a time. */
const WIDEST = 128

export class Rounds {
  /** Whether a round is under way, or the head is about to begin one, once it has subscribed. */
  asking = false
  /** Whether there is a wake-up that no round has used yet. */
  #woken = false
  /** How many attempts of the present round are unanswered. */
  #unanswered = 0
  /** Whether an attempt was refused in the present round. */
  #refused = false
  /** The number of consecutive rounds in which all attempts were granted. */
  #row = 0

  wake(): void {
    this.#woken = true
  }

  /** Begins a round, if there is a head and an unused wake-up. Returns how many waiters may ask. */
  begin(head: boolean): number {
    this.asking = head && this.#woken
    if (!this.asking) return 0
    this.#woken = this.#refused = false
    this.#unanswered = 0
    return this.#row > 1 ? Math.min(2 ** (this.#row - 1), WIDEST) : 1
  }

  asked(): void {
    this.#unanswered += 1
  }

  /** Returns whether that was the last answer of the round, and all attempts were granted ('all') or not ('over'). */
  answered(granted: boolean): 'all' | 'over' | undefined {
    this.#refused ||= !granted
    this.#unanswered -= 1
    if (this.#unanswered > 0) return undefined
    this.#row = this.#refused ? 0 : this.#row + 1
    return this.#refused ? 'over' : 'all'
  }

  /** An attempt has failed. Returns whether that was the last one of the round. */
  failed(): boolean {
    this.#row = 0
    this.#unanswered -= 1
    return this.#unanswered <= 0
  }
}

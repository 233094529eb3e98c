/**
 * Unfair waiters of different clients take turns. After a client has released the lock, it waits before it tries again:
 * every other client that received the message of the release may take one turn first. So the client whose last turn is
 * the longest ago waits for no other client, and tries first. The other clients give it time to try, even if it is far
 * from the server. If all clients tried at once, the one nearest to the server would nearly always win.
 *
 *   A releases: B and C hear "free A"      A waits for the turns of B and C, C waits for B      B tries at once
 *   B releases: A and C hear "free B"      B waits for the turns of C and A, A waits for C      C tries at once
 *
 * If a client does not take its turn, the others lose some ms, and then try. Perhaps the client was late, so the others
 * wait for it again the next time. But perhaps the client is gone, or listens without wanting the lock: its
 * subscription outlives its last waiter by a moment, and a monitor never wants the lock. The constants MISSED, SHARE
 * and CREDIT limit the time that is lost to such clients.
 *
 * A `KeyState` keeps an `Others` for a moment after its last waiter has gone, because a caller in a loop has no waiter
 * between its release and its next call. If no other client receives the message of a release, there is none. A mistake
 * costs a turn or a few ms, never the lock, because a client that leaves a turn to others also has a timer (I4).
 */

/** How long one client's turn lasts, in ms. */
export const TURN = 7

/** A client that has missed this many turns in a row no longer takes turns. */
const MISSED = 3
/**
 * In any period, a client may lose this fraction of the period, and about `CREDIT` ms in addition, by waiting for
 * clients that miss their turns.
 */
const SHARE = 0.2
const CREDIT = 5 * TURN

/**
 * For this many ms, a client leaves the lock to clients that listen, but have taken no turns yet. In this time they can
 * try.
 */
const CHANCE = 3
/** Between two waits of `CHANCE` ms, there are at least this many ms. */
const PAUSE = 100

/** Data about the other clients that listen to one key. A round is the time between two releases by this client. */
export class Others {
  /** How many other clients received the message of this client's last release. */
  listening = 0
  /** When the lock was last released, by this client or another. */
  freedAt: number
  /** Clients that take turns, each with the round of its last turn. */
  readonly #lastTurn = new Map<string, number>()
  #round = 0
  /** How many of the clients that take turns have had their turn in this round. */
  #served = 0
  /**
   * Whether a client has had a second turn in this round. Before that turn, it left the lock to the clients that have
   * had no turn. So those clients do not want one.
   */
  #roundOver = false
  /** Whether this client has the lock and has not released it yet. */
  #ours = false
  /** Whether this client has had its turn in this round. Hand-offs within the client belong to the same turn. */
  #hadOurs = false
  /** Whether this client has waited for other clients' turns since the last release. */
  #waited = false
  /**
   * How many ms this client had lost up to `#lostAt`, because it waited for clients that did not take their turn. This
   * number shrinks as time passes: `#debt` subtracts `SHARE` of the time since `#lostAt`.
   */
  #lost = 0
  #lostAt = 0
  /** When this client last waited `CHANCE` ms. */
  #chanceAt = Number.NEGATIVE_INFINITY

  constructor(now: number) {
    this.freedAt = now
  }

  /**
   * Starts a new round. Called when this client is about to release the lock, and also when it hands the lock on to a
   * waiter of its own.
   */
  startRound(now: number): void {
    this.freedAt = now
    this.#waited = false
    this.#roundOver = false
    this.#ours = false
    if (this.#served === 0 && !this.#hadOurs) return
    this.#hadOurs = false
    this.#served = 0
    this.#round += 1
    for (const [client, round] of this.#lastTurn) {
      if (this.#round - round > MISSED) this.#lastTurn.delete(client)
    }
  }

  /** Called when the client `by` has released the lock. */
  freed(by: string, now: number): void {
    this.freedAt = now
    this.#waited = false
    const lastTurn = this.#lastTurn.get(by)
    if (lastTurn === this.#round) this.#roundOver = true
    else if (lastTurn !== undefined || this.#lastTurn.size < this.listening) {
      this.#lastTurn.set(by, this.#round)
      this.#served += 1
    }
  }

  /** Returns for how many more ms this client leaves the lock to other clients. */
  wait(now: number): number {
    if (this.#ours) return 0
    const late = this.#lateOnes(now)
    const given = late > 0 ? TURN : this.#mayBeMore(now) ? CHANCE : 0
    return Math.max(0, this.freedAt + given - now)
  }

  /** Called when this client has waited for as long as `wait` said. */
  waited(now: number): void {
    if (this.#lateOnes(now) > 0) this.#waited = true
    else this.#chanceAt = now
  }

  /** Called when this client has been granted the lock. `free`: the lock was free when this client tried. */
  taken(free: boolean, now: number): void {
    if (free && this.#waited) {
      this.#lost = this.#debt(now) + TURN
      this.#lostAt = now
    }
    this.#waited = false
    this.#ours = true
    if (free) this.#hadOurs = true
  }

  /** Returns how many clients may still take a turn before this client. */
  #lateOnes(now: number): number {
    if (this.#roundOver || this.#debt(now) >= CREDIT) return 0
    return Math.min(this.#lastTurn.size, this.listening) - this.#served
  }

  /**
   * Returns whether this client should now wait `CHANCE` ms. It should if the round is not over, if some clients listen
   * but have taken no turns, and if the last such wait was at least `PAUSE` ms ago.
   */
  #mayBeMore(now: number): boolean {
    return !this.#roundOver && this.listening > this.#lastTurn.size && now - this.#chanceAt >= PAUSE
  }

  #debt(now: number): number {
    return Math.max(0, this.#lost - SHARE * (now - this.#lostAt))
  }
}

/**
 * Learns from a release how many other clients listen, and so take turns with this one. `heard`: how many clients have
 * received the message that the lock is free. `reached`: whether this client is one of them, because it listens.
 * Returns undefined if no other client listens.
 */
export function othersAfter(
  heard: number,
  reached: boolean,
  known: Others | undefined,
  now: number,
): Others | undefined {
  if (heard === 0 && reached) {
    // This client listens, so it would have received a message about the release. As no client has received one, none
    // was sent: the release did not free the lock for unfair waiters. So this client need not wait for the turns of
    // other clients.
    if (known) known.freedAt = now - TURN
    return known
  }
  const listening = reached ? heard - 1 : heard
  if (listening === 0) return undefined
  const others = known ?? new Others(now)
  others.listening = listening
  others.freedAt = now
  return others
}

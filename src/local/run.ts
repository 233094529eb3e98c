/**
 * A run of hand-offs within a client, from a grant by Redis to the release in Redis. In between, unfair callers of this
 * client hand the lock on to each other without asking Redis. This is safe, because the first hold remains in Redis and
 * excludes all others.
 *
 * The idea is lock cohorting (Dice, Marathe, Shavit: "Lock Cohorting: A General Technique for Designing NUMA Locks",
 * 2012): threads that are close to each other pass the lock on among themselves, within bounds, before the lock goes to
 * others.
 *
 *   Exclusion (I1)  a lease is handed on only while it certainly lasts, and a hand-off does not prolong it.
 *   Fencing (I2)    each grant has its own token, from a block after the first grant's token. During the run, Redis
 *                   uses no token of that block for another grant. The release says which token was the last, so that
 *                   the lock's clock does not run ahead of the time of day.
 *   Order (I3, I4)  a run ends when its block of tokens is used up, when it has lasted `LONGEST_RUN` ms, or when a fair
 *                   waiter is known to be queued. Then Redis chooses the next holder. Runs are short for the sake of
 *                   other clients. If no other client received the message of the last release, a run may last
 *                   `LONGEST_ALONE` ms.
 */
import type { Claim, Granted, HoldName } from '../kind.ts'

/** The longest time between the grant by Redis and a hand-off, in ms. */
const LONGEST_RUN = 4
/**
 * The longest time between the grant by Redis and a hand-off, in ms, if no other client received the message of the
 * last release.
 */
const LONGEST_ALONE = 25

/** A grant that was handed on by another hold of this client. */
export interface Inherited extends Granted {
  readonly run: Run
}

export class Run {
  /** The name of the hold in Redis. */
  readonly name: HoldName
  /** The newest token of this run that Redis knows. */
  recorded: number
  /**
   * The owner that has the lock now. In a run, the owner is the id of the newest hold, which no other caller can guess.
   */
  owner: string
  /** Whether a fair waiter is queued. If so, the lock has to go back to Redis. */
  queued = false
  readonly #first: number
  readonly #size: number
  readonly #until: number
  #used = 0
  #over = false

  /** `grant` came with a block of tokens. `alone` says whether all known waiters of the lock are in this client. */
  constructor(claim: Claim, grant: Granted, now: number, alone: boolean) {
    this.name = claim
    this.owner = claim.owner
    this.recorded = grant.token
    this.#first = grant.token
    this.#size = grant.block ?? 0
    this.#until = now + (alone ? LONGEST_ALONE : LONGEST_RUN)
  }

  /** Returns for how many ms the run may continue; 0 if it is over. */
  left(now: number): number {
    if (this.#over || this.queued || this.#used >= this.#size) return 0
    return Math.max(0, this.#until - now)
  }

  /** Ends the run, because the lock goes back to Redis, or is lost. */
  end(): void {
    this.#over = true
  }

  /** Issues the next token of the block. */
  issue(): number {
    this.#used += 1
    return this.#first + this.#used
  }

  /**
   * The last token that this run has issued; undefined if it has issued none. In that case, the token of the run's
   * first grant is the last one.
   */
  get last(): number | undefined {
    return this.#used > 0 ? this.#first + this.#used : undefined
  }
}

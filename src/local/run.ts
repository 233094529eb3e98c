/**
 * A run of hand-offs within a client: from the grant by Redis to the release there. In between, its unfair holds may
 * hand the lock on from one to the next without asking Redis: at once, because the hold that Redis knows stays where it
 * is, and so does the exclusion.
 *
 * The idea is lock cohorting (Dice, Marathe, Shavit: "Lock Cohorting: A General Technique for Designing NUMA Locks",
 * 2012): who shares something close by passes the lock on there, within bounds, before it goes back to everybody.
 *
 *   Exclusion (I1)  a lease is handed on only while it surely lasts, and for no longer than it lasts.
 *   Fencing (I2)    each grant has a token of its own, from the block of tokens after that of the first grant, which Redis gives
 *                   to nobody else meanwhile. The release says which was the last, so that the clock does not run ahead.
 *   Order (I3, I4)  a run ends with its block, or `LONGEST_RUN` after its begin, or when a fair waiter is known to be
 *                   queued: then Redis decides who is next. It is for the others that runs are so short: where the last
 *                   release has found none, it may go on for `LONGEST_ALONE`.
 */
import type { Claim, Granted, HoldName } from '../kind.ts'

/** No hand-off later than this many ms after the grant by Redis. */
const LONGEST_RUN = 4
/** The same, where the last release has found that no other client listens. */
const LONGEST_ALONE = 25

/** A grant by another hold of this client. */
export interface Inherited extends Granted {
  readonly run: Run
}

export class Run {
  /** The hold in Redis. */
  readonly name: HoldName
  /** The token of the grant that Redis knows of. */
  recorded: number
  /** Who has the lock now: the unguessable id of one hold. */
  owner: string
  /** A fair waiter is queued: the lock has to go back. */
  queued = false
  readonly #first: number
  readonly #size: number
  readonly #until: number
  #used = 0
  #over = false

  /** `grant` came with a block of tokens. `alone`: nobody outside this client is known to wait. */
  constructor(claim: Claim, grant: Granted, now: number, alone: boolean) {
    this.name = claim
    this.owner = claim.owner
    this.recorded = grant.token
    this.#first = grant.token
    this.#size = grant.block ?? 0
    this.#until = now + (alone ? LONGEST_ALONE : LONGEST_RUN)
  }

  /** For how many ms the run may go on; 0: it is over. */
  left(now: number): number {
    if (this.#over || this.queued || this.#used >= this.#size) return 0
    return Math.max(0, this.#until - now)
  }

  /** The lock goes back to Redis, or is lost. */
  end(): void {
    this.#over = true
  }

  /** The next token. */
  issue(): number {
    this.#used += 1
    return this.#first + this.#used
  }

  /** The last token that was issued; undefined: none besides that of the grant. */
  get last(): number | undefined {
    return this.#used > 0 ? this.#first + this.#used : undefined
  }
}

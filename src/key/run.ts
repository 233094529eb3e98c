/**
 * A run of hand-offs within a client, from a grant by Redis to the release in Redis. In between, unfair callers of this
 * client hand the lock on to each other without asking Redis. This is safe: in Redis, the hold of the first grant
 * remains, so no other client can get the lock.
 *
 * The idea is lock cohorting (Dice, Marathe, Shavit: "Lock Cohorting: A General Technique for Designing NUMA Locks",
 * 2012): threads that are close to each other pass the lock on among themselves, within bounds, before the lock goes to
 * others.
 *
 *   Exclusion (I1)  a lease is handed on only while it certainly lasts, and a hand-off does not prolong it.
 *   Fencing (I2)    each grant has its own token. The first grant reserves a block of tokens after its own token, and
 *                   Redis gives none of these to another grant during the run. The release tells Redis the last token
 *                   that was used. So Redis counts only the used part of the block. If it counted the whole block, the
 *                   lock's token clock would run ahead of the time of day.
 *   Order (I3, I4)  a run ends when its block of tokens is used up, when it has lasted `LONGEST_RUN` ms, or when a fair
 *                   waiter is known to be queued. Then Redis chooses the next holder. Runs are short for the sake of
 *                   other clients.
 *
 * Redis learns of a new holder only if it still holds the lock `RECORD_AFTER` ms after the hand-off; most holders hand
 * the lock on within a moment. After that, `inspect` shows the new holder, and its lease has its full length in Redis,
 * too. A record that arrives late or twice does no harm. In Redis, there is one hold for the whole run. A record changes
 * only that hold, and an older token never replaces a newer one.
 */
import type { Claim, Granted, HoldName } from '../kind.ts'
import type { Due } from './schedule.ts'

/** The longest time between the grant by Redis and a hand-off, in ms. */
const LONGEST_RUN = 4

/** A grant that came by a hand-off from another hold of this client. */
export interface Inherited extends Granted {
  readonly run: Run
}

/** Who records the holders of a run in Redis (records.ts). */
export interface RunRecords {
  /** The present holder has to be recorded now. */
  late(run: Run): void
}

export class Run implements Due {
  /** The name of the hold in Redis. */
  readonly name: HoldName
  /** The newest token of this run that Redis knows. */
  recorded: number
  /** The record that was sent and is not answered yet. */
  recording: Promise<void> | undefined
  /**
   * The owner that has the lock now. Only callers that gave no owner take part in a run. So the owner is the id of the
   * present holder's call, which no other caller can guess.
   */
  owner: string
  /** Whether a fair waiter is queued. If so, the run is over, and Redis chooses the next holder. */
  queued = false
  slot = -1
  dueAt = Number.POSITIVE_INFINITY
  readonly #first: number
  readonly #size: number
  #until: number
  readonly #records: RunRecords
  #used = 0
  #over = false

  /** `grant` has reserved a block of tokens. */
  constructor(claim: Claim, grant: Granted, now: number, records: RunRecords) {
    this.name = claim
    this.owner = claim.owner
    this.recorded = grant.token
    this.#first = grant.token
    this.#size = grant.block ?? 0
    this.#until = now + LONGEST_RUN
    this.#records = records
  }

  /** Returns for how many ms the run may continue; 0 if it is over. */
  left(now: number): number {
    if (this.#over || this.queued || this.#used >= this.#size) return 0
    return Math.max(0, this.#until - now)
  }

  /** The first holder gets its hold `ms` after the grant, because replicas had to have it before. */
  delay(ms: number): void {
    this.#until += ms
  }

  /** Ends the run: the lock is no longer handed on within this client. */
  end(): void {
    this.#over = true
  }

  /** Issues the next token of the block. */
  issue(): number {
    this.#used += 1
    return this.#first + this.#used
  }

  /**
   * The last token that this run has issued; undefined if it has issued none. The token of the first grant does not
   * count, because Redis has issued it.
   */
  get last(): number | undefined {
    return this.#used > 0 ? this.#first + this.#used : undefined
  }

  due(): void {
    this.#records.late(this)
  }
}

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
import type { Claim, Granted, HoldName, Kind } from '../kind.ts'
import type { Due, Schedule } from './schedule.ts'

/** The longest time between the grant by Redis and a hand-off, in ms. */
const LONGEST_RUN = 4
/** If a new holder still has the lock this many ms after the hand-off, it is recorded in Redis. */
const RECORD_AFTER = 1

/** A hold that may belong to a run (hold.ts). */
export interface RunHold {
  readonly claim: Claim
  readonly token: number
  readonly run: Run | undefined
  /** The time until which this client can rely on the hold, in monotonic ms. */
  readonly deadline: number
  /** The length of the lease, in ms. */
  readonly length: number
  prolong(deadline: number): void
}

/** A grant that came by a hand-off from another hold of this client. */
export interface Inherited extends Granted {
  readonly run: Run
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
  readonly #records: Pick<Records, 'late'>
  #used = 0
  #over = false

  /** `grant` has reserved a block of tokens. */
  constructor(claim: Claim, grant: Granted, now: number, records: Pick<Records, 'late'>) {
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

  /** Called when the first holder gets its hold `ms` after the grant, because replicas had to have it before. */
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

  /** Called when the present holder has to be recorded. */
  due(): void {
    this.#records.late(this)
  }
}

/**
 * Returns whether the hold may hand the lock on. The time left has to suit the next holder: at least half of the
 * lease's length, and no more than its whole length. After `lease.renew`, more time than that can be left. The next
 * holder would then get more time than it asked for.
 */
export function goesOn({ run, deadline, length }: RunHold, now: number): boolean {
  if (run === undefined || run.left(now) <= 0) return false
  const left = deadline - now
  return left >= length / 2 && left <= length
}

/** The records of the holders in Redis. */
export class Records<H extends RunHold = RunHold> {
  readonly #kind: Kind
  readonly #schedule: Schedule
  readonly #holds: { hold(id: string): H | undefined }
  readonly #doubt: (hold: H) => void
  readonly #failed: (error: unknown) => void

  /**
   * `holds`: the client's holds, by the ids by which Redis knows them. `doubt` is called when Redis no longer knows a
   * hold, `failed` with a failure that no caller's promise reports.
   */
  constructor(
    kind: Kind,
    schedule: Schedule,
    holds: { hold(id: string): H | undefined },
    doubt: (hold: H) => void,
    failed: (error: unknown) => void,
  ) {
    this.#kind = kind
    this.#schedule = schedule
    this.#holds = holds
    this.#doubt = doubt
    this.#failed = failed
  }

  /** Called after a hand-off. Plans to record the new holder. */
  later(run: Run, now: number): void {
    if (run.slot < 0) this.#schedule.set(run, now + RECORD_AFTER)
  }

  /** Records the holder of the run, as `later` has planned. */
  late(run: Run): void {
    this.now(run)?.catch(this.#failed)
  }

  /** Cancels the record that `later` has planned. */
  forget(run: Run): void {
    this.#schedule.delete(run)
  }

  /**
   * Records the holder now. Resolves when Redis knows the holder. Returns undefined if Redis knows the holder already.
   */
  now(run: Run): Promise<void> | undefined {
    this.#schedule.delete(run)
    const hold = this.#holds.hold(run.name.id)
    if (hold && hold.token > run.recorded) {
      // A record that fails is not sent again at once. The next call of `now`, or the next hand-off, leads to a new
      // one.
      const recording = this.#tell(run, hold).finally(() => {
        if (run.recording === recording) run.recording = undefined
      })
      run.recording = recording
    }
    return run.recording
  }

  async #tell(run: Run, { claim, token }: H): Promise<void> {
    const { recorded } = run
    run.recorded = token
    try {
      const passed = await this.#kind.pass?.(run.name, claim, token)
      const holder = this.#holds.hold(run.name.id)
      if (!holder) return
      if (!passed) return this.#doubt(holder)
      run.queued ||= passed.queued
      // With the option `replicas`, the new deadline in Redis's answer is not used, because the replicas may not have it
      // yet. The next renewal waits for the replicas, and then sets the deadline.
      if (!this.#kind.replicated) holder.prolong(passed.deadline)
    } catch (error) {
      if (run.recorded === token) run.recorded = recorded
      throw error
    }
  }
}

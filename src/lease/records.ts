/**
 * Records in Redis the new holder of a lock that was handed on within this client. After that, `inspect` shows the new
 * holder, and the holder's lease has its full length in Redis.
 *
 * Records are late and rare. Most holders hand the lock on within a moment, so a holder is recorded only if it still
 * holds the lock after `RECORD_AFTER`. A record that arrives late or twice does no harm: it is about the same hold in
 * Redis, and an older token never replaces a newer one.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Kind } from '../kind.ts'
import type { Hold } from '../local/hold.ts'
import type { LocalLocks } from '../local/local-locks.ts'
import type { Run } from '../local/run.ts'

/** A new holder is recorded in Redis if it still holds after this many ms. */
const RECORD_AFTER = 1

export interface RecordListener {
  /** Called when Redis no longer knows the hold. */
  doubt(hold: Hold): void
  /** Reports a failure that no caller's promise reports. */
  failed(error: unknown): void
}

export class Records {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #locks: LocalLocks
  readonly #listener: RecordListener
  /** The runs of hand-offs whose holder is to be recorded, each with its timer. */
  readonly #timers = new Map<Run, Timer>()
  /** Records that were sent and are not answered yet. */
  readonly #underWay = new Map<Run, Promise<void>>()

  constructor(kind: Kind, clock: Clock, locks: LocalLocks, listener: RecordListener) {
    this.#kind = kind
    this.#clock = clock
    this.#locks = locks
    this.#listener = listener
  }

  /** Plans to record the new holder of a lock that was handed on, after `RECORD_AFTER`. */
  later(run: Run): void {
    if (this.#timers.has(run)) return
    const timer = this.#clock.after(RECORD_AFTER, () => this.now(run)?.catch(this.#listener.failed))
    this.#timers.set(run, timer)
  }

  /**
   * Records the holder now. Resolves when Redis knows the holder. Returns undefined if Redis knows the holder already.
   */
  now(run: Run): Promise<void> | undefined {
    this.forget(run)
    const hold = this.#locks.hold(run.name.id)
    if (hold && hold.token > run.recorded) {
      // If this record fails, it is sent again when a caller needs it, or after the next hand-off.
      const recording = this.#tell(run, hold).finally(() => {
        if (this.#underWay.get(run) === recording) this.#underWay.delete(run)
      })
      this.#underWay.set(run, recording)
    }
    return this.#underWay.get(run)
  }

  /** Drops the planned record, because the lock goes back to Redis, or is lost. */
  forget(run: Run): void {
    if (this.#timers.size === 0) return
    this.#timers.get(run)?.cancel()
    this.#timers.delete(run)
  }

  async #tell(run: Run, { claim, token }: Hold): Promise<void> {
    const { handOff, confirmation } = this.#kind
    if (!handOff) return
    const { recorded } = run
    run.recorded = token
    try {
      const passed = await handOff.pass(run.name, claim, token)
      const holder = this.#locks.hold(run.name.id)
      if (!holder) return
      if (!passed) return this.#listener.doubt(holder)
      run.queued ||= passed.queued
      // If replicas have to confirm grants, this deadline does not count, because the replicas may not have the record.
      // The next renewal waits for the replicas, so its deadline counts.
      if (!confirmation) holder.prolong(passed.deadline)
    } catch (error) {
      if (run.recorded === token) run.recorded = recorded
      throw error
    }
  }
}

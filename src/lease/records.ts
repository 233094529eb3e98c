/**
 * Records in Redis the holder of a lock that was handed on within this client. `inspect` shows that holder, and its
 * lease gets its full length.
 *
 * A record is made late and seldom. A run of hand-offs is over in a few milliseconds, so only a holder that still holds
 * after that is recorded, and most never are. A record that arrives late or twice changes nothing, because it is about
 * the same hold, and an older token never replaces a newer one.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Kind } from '../kind.ts'
import type { Hold } from '../local/hold.ts'
import type { LocalLocks } from '../local/local-locks.ts'
import type { Run } from '../local/run.ts'

/** A new holder is recorded in Redis if it still holds after this many ms. */
const RECORD_AFTER = 1

export interface RecordListener {
  /** Redis no longer knows the hold. */
  doubt(hold: Hold): void
  /** A failure that no caller's promise reports. */
  failed(error: unknown): void
}

export class Records {
  readonly #kind: Kind
  readonly #clock: Clock
  readonly #locks: LocalLocks
  readonly #listener: RecordListener
  /** Records that are still to be made. */
  readonly #timers = new Map<Run, Timer>()
  /** Records that are under way. */
  readonly #underWay = new Map<Run, Promise<void>>()

  constructor(kind: Kind, clock: Clock, locks: LocalLocks, listener: RecordListener) {
    this.#kind = kind
    this.#clock = clock
    this.#locks = locks
    this.#listener = listener
  }

  /** The lock was handed on: records the new holder a moment later. */
  later(run: Run): void {
    if (this.#timers.has(run)) return
    const timer = this.#clock.after(RECORD_AFTER, () => this.now(run)?.catch(this.#listener.failed))
    this.#timers.set(run, timer)
  }

  /** Records the holder now. Resolves when Redis knows who has the lock; undefined: it knows already. */
  now(run: Run): Promise<void> | undefined {
    this.forget(run)
    const hold = this.#locks.hold(run.name.id)
    if (hold && hold.token > run.recorded) {
      // A record that fails is made again when a caller needs it, or after the next hand-off.
      const recording = this.#tell(run, hold).finally(() => {
        if (this.#underWay.get(run) === recording) this.#underWay.delete(run)
      })
      this.#underWay.set(run, recording)
    }
    return this.#underWay.get(run)
  }

  /** The lock goes back to Redis, or is lost: drops the record that is still to be made. */
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
      // If replicas have to confirm, this deadline does not count, because they may not have the record. The next
      // renewal waits for them, so its deadline counts.
      if (!confirmation) holder.prolong(passed.deadline)
    } catch (error) {
      if (run.recorded === token) run.recorded = recorded
      throw error
    }
  }
}

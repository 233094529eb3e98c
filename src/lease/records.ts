/**
 * Records in Redis the new holder of a lock that was handed on within this client. After that, `inspect` shows the new
 * holder, and the new holder's lease has its full length in Redis, too.
 *
 * Most holders hand the lock on within a moment, so a holder is recorded only if it still holds the lock after
 * `RECORD_AFTER` ms. A record that arrives late or twice does no harm. In Redis, there is one hold for the whole run of
 * hand-offs. A record changes only that hold, and an older token never replaces a newer one.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Kind } from '../kind.ts'
import type { Hold } from '../local/hold.ts'
import type { LocalLocks } from '../local/local-locks.ts'
import type { Run } from '../local/run.ts'

/** If a new holder still has the lock this many ms after the hand-off, it is recorded in Redis. */
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
  /** The timers that `later` has set, by the run of hand-offs whose present holder they will record. */
  readonly #timers = new Map<Run, Timer>()
  /** Records that were sent and are not answered yet. */
  readonly #underWay = new Map<Run, Promise<void>>()

  constructor(kind: Kind, clock: Clock, locks: LocalLocks, listener: RecordListener) {
    this.#kind = kind
    this.#clock = clock
    this.#locks = locks
    this.#listener = listener
  }

  /** Called after a hand-off. Plans to record the new holder `RECORD_AFTER` ms later. */
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
      // A record that fails is not sent again at once. The next call of `now`, or the next hand-off, leads to a new
      // one.
      const recording = this.#tell(run, hold).finally(() => {
        if (this.#underWay.get(run) === recording) this.#underWay.delete(run)
      })
      this.#underWay.set(run, recording)
    }
    return this.#underWay.get(run)
  }

  /** Cancels the record that `later` has planned. */
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
      // If replicas have to confirm grants, the new deadline in Redis's answer is not used, because the replicas may
      // not have it yet. The next renewal waits for the replicas, and then sets the deadline.
      if (!confirmation) holder.prolong(passed.deadline)
    } catch (error) {
      if (run.recorded === token) run.recorded = recorded
      throw error
    }
  }
}

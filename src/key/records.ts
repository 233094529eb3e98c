/** The records, in Redis, of the holders to whom a client has handed a lock on. */
import type { Kind } from '../kind.ts'
import type { Hold } from './hold.ts'
import type { Run, RunRecords } from './run.ts'
import type { Schedule } from './schedule.ts'

/** If a new holder still has the lock this many ms after the hand-off, it is recorded in Redis. */
const RECORD_AFTER = 1

export class Records implements RunRecords {
  readonly #kind: Kind
  readonly #schedule: Schedule
  readonly #holds: { hold(id: string): Hold | undefined }

  /** `holds`: the client's holds, by the ids by which Redis knows them. */
  constructor(kind: Kind, schedule: Schedule, holds: { hold(id: string): Hold | undefined }) {
    this.#kind = kind
    this.#schedule = schedule
    this.#holds = holds
  }

  /** Plans to record the new holder, after a hand-off. */
  later(run: Run, now: number): void {
    if (run.slot < 0) this.#schedule.set(run, now + RECORD_AFTER)
  }

  /** Records the holder of the run, as `later` has planned. */
  late(run: Run): void {
    const keeper = this.#holds.hold(run.name.id)?.keeper
    this.now(run)?.catch(error => keeper?.failed(error))
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

  async #tell(run: Run, { claim, token }: Hold): Promise<void> {
    const { recorded } = run
    run.recorded = token
    try {
      const passed = await this.#kind.pass?.(run.name, claim, token)
      const holder = this.#holds.hold(run.name.id)
      if (!holder) return
      if (!passed) return holder.keeper.doubt(holder)
      run.queued ||= passed.queued
      // With the option `replicas`, the new deadline in Redis's answer is not used, because the replicas may not have it
      // yet. The next renewal waits for the replicas, and then sets the deadline.
      if (!this.#kind.traits.replicated) holder.prolong(passed.deadline)
    } catch (error) {
      if (run.recorded === token) run.recorded = recorded
      throw error
    }
  }
}

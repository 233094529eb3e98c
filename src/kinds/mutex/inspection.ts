/** Inspection of mutexes. */
import type { Parts } from '../../kind.ts'
import { PAGE, QueuedInspection } from '../queued-inspection.ts'
import type { MutexScripts } from '../scripts.ts'
import { type LockState, Moment, type QueueEntry, type StatePage } from '../state.ts'
import { decodeState, inTurn } from './state.ts'

export class MutexInspection extends QueuedInspection {
  readonly #parts: Parts<MutexScripts>

  constructor(parts: Parts<MutexScripts>, sweep: (key: string) => Promise<void>) {
    super(parts, sweep)
    this.#parts = parts
  }

  /** Reads a long queue page by page. All that is shown was there when the first page was read. */
  async inspect(key: string): Promise<LockState> {
    const moment = new Moment()
    const first = await this.#page(key, moment, PAGE)
    const waiters = [...first.waiters]
    for (let page = first; page.size === PAGE; waiters.push(...page.waiters)) {
      page = await this.#page(key, moment, PAGE, page.last)
    }
    const { state, pace } = first
    return { ...state, waiters: inTurn(waiters, { holders: state.holders, pace }) }
  }

  /** Reads whether the lock is held. Unlike `inspect`, does not read the queue. */
  async isLocked(key: string): Promise<boolean> {
    return (await this.#page(key, new Moment())).state.locked
  }

  /** Reads the lock, and at most so many waiters of its queue: those after `behind`, or the first ones. */
  async #page(key: string, moment: Moment, most?: number, behind?: QueueEntry): Promise<StatePage> {
    const { names, scripts } = this.#parts
    const { values } = await scripts.run('inspect', names.of(key), [most, behind?.ticket, behind?.claim])
    return decodeState(key, values, moment)
  }
}

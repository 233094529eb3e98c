/** Inspection of mutexes. */
import type { Parts } from '../../kind.ts'
import { PAGE, QueuedInspection } from '../queued-inspection.ts'
import type { LockState, QueueEntry, StatePage } from '../state.ts'
import type { MutexNames } from './names.ts'
import type { scripts } from './scripts.generated.ts'
import { decodeState, inTurn } from './state.ts'

export class MutexInspection extends QueuedInspection {
  readonly #parts: Parts<typeof scripts, MutexNames>

  constructor(parts: Parts<typeof scripts, MutexNames>, sweep: (key: string) => Promise<void>) {
    super(parts, sweep)
    this.#parts = parts
  }

  /** Reads a long queue page by page. Waiters that join or leave during the reading may or may not be in the result. */
  async inspect(key: string): Promise<LockState> {
    const first = await this.#page(key)
    const { state } = first
    const found = { holders: state.holders, pace: first.pace }
    if (first.size < PAGE) return { ...state, waiters: inTurn(first.waiters, found) }
    const waiters = new Map(first.waiters.map(waiter => [waiter.id, waiter]))
    for (let page = first; page.size === PAGE; ) {
      page = await this.#page(key, page.last)
      for (const waiter of page.waiters) if (!waiters.has(waiter.id)) waiters.set(waiter.id, waiter)
    }
    return { ...state, waiters: inTurn([...waiters.values()], found) }
  }

  /** Reads the lock and one page of its queue: the waiters after `behind`, or the first ones. */
  async #page(key: string, behind?: QueueEntry): Promise<StatePage> {
    const args = { most: PAGE, ticket: behind?.ticket, behind: behind?.claim }
    const { values } = await this.#parts.scripts.run('inspect', this.#parts.names.of(key), args)
    return decodeState(key, values)
  }

  /** Reads whether the lock is held. Unlike `inspect`, does not read the queue. */
  async isLocked(key: string): Promise<boolean> {
    const none = { most: undefined, ticket: undefined, behind: undefined }
    const { values } = await this.#parts.scripts.run('inspect', this.#parts.names.of(key), none)
    return decodeState(key, values).state.locked
  }
}

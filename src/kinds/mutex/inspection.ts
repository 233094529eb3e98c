/** Looking at mutexes from outside, and taking one away. */
import { LockConnectionError } from '../../errors.ts'
import type { Inspection, Parts } from '../../kind.ts'
import type { MutexNames } from './names.ts'
import type { scripts } from './scripts.generated.ts'
import { decodeState, type LockState, type QueueEntry, type StatePage } from './state.ts'

/** Waiters read by one script call: it bounds how long the server does nothing else. */
const PAGE = 500

export class MutexInspection implements Inspection<LockState> {
  readonly #parts: Parts<typeof scripts, MutexNames>
  readonly #sweep: (key: string) => Promise<void>

  /** `sweep`: goes on where a forced release has not come to the next waiter. */
  constructor(parts: Parts<typeof scripts, MutexNames>, sweep: (key: string) => Promise<void>) {
    this.#parts = parts
    this.#sweep = sweep
  }

  /** A queue of more than a page is read page by page: who joins or leaves meanwhile may be in it, or not. */
  async inspect(key: string): Promise<LockState> {
    const first = await this.#page(key)
    if (first.size < PAGE) return { ...first.state, waiters: first.waiters }
    const waiters = new Map(first.waiters.map(waiter => [waiter.id, waiter]))
    for (let page = first; page.size === PAGE; ) {
      page = await this.#page(key, page.last)
      for (const waiter of page.waiters) if (!waiters.has(waiter.id)) waiters.set(waiter.id, waiter)
    }
    return { ...first.state, waiters: [...waiters.values()].map((waiter, i) => ({ ...waiter, position: i + 1 })) }
  }

  /** The lock, and the waiters that stand behind the one given, or the first. */
  async #page(key: string, behind?: QueueEntry): Promise<StatePage> {
    const args = { most: PAGE, ticket: behind?.ticket, behind: behind?.claim }
    const { values } = await this.#parts.scripts.run('inspect', this.#parts.names.of(key), args)
    return decodeState(key, values)
  }

  /** As `inspect`, without reading the queue. */
  async isLocked(key: string): Promise<boolean> {
    const none = { most: undefined, ticket: undefined, behind: undefined }
    const { values } = await this.#parts.scripts.run('inspect', this.#parts.names.of(key), none)
    return decodeState(key, values).state.locked
  }

  async *list(pattern: string): AsyncGenerator<LockState, void, undefined> {
    for await (const keys of this.#parts.list(pattern, 'hash')) {
      for (const state of await Promise.all(keys.map(key => this.#found(key)))) {
        if (state && (state.locked || state.waiters.length > 0)) yield state
      }
    }
  }

  /** Undefined: a key of another kind stands where its queue would be, which must not hide all locks from those who look. */
  async #found(key: string): Promise<LockState | undefined> {
    try {
      return await this.inspect(key)
    } catch (error) {
      if (error instanceof LockConnectionError && /^WRONGTYPE/.test((error.cause as Error).message)) return undefined
      throw error
    }
  }

  async forceRelease(key: string): Promise<boolean> {
    const { names, newId, scripts } = this.#parts
    const { status } = await scripts.run('forceRelease', names.of(key), { request: newId() })
    if (status === 'unfinished') await this.#sweep(key)
    return status !== 'free'
  }
}

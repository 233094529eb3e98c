/** What inspection and forced release have in common for all kinds with a fair queue. */
import { LockConnectionError } from '../errors.ts'
import type { Inspection, Parts } from '../kind.ts'
import type { QueueScripts } from './scripts.ts'
import type { LockState } from './state.ts'

/** One script call reads at most this many waiters or holders. This bounds the time for which it blocks the server. */
export const PAGE = 500

export abstract class QueuedInspection implements Inspection<LockState> {
  readonly #parts: Parts<QueueScripts>
  readonly #sweep: (key: string) => Promise<void>

  /**
   * `sweep` continues the search for the next holder. It is called if one script call was not enough for a forced
   * release.
   */
  constructor(parts: Parts<QueueScripts>, sweep: (key: string) => Promise<void>) {
    this.#parts = parts
    this.#sweep = sweep
  }

  abstract inspect(key: string): Promise<LockState>

  abstract isLocked(key: string): Promise<boolean>

  async find(key: string): Promise<LockState | undefined> {
    try {
      const state = await this.inspect(key)
      return state.locked || state.waiters.length > 0 ? state : undefined
    } catch (error) {
      // The key has a value of another type, so it is not a lock. It must not make a listing of all locks fail.
      if (error instanceof LockConnectionError && /\bWRONGTYPE\b/.test((error.cause as Error).message)) return undefined
      throw error
    }
  }

  async forceRelease(key: string, only?: string): Promise<boolean> {
    const { names, newId, scripts } = this.#parts
    const request = newId()
    const force = () => scripts.run('forceRelease', names.of(key), [request, only])
    let answer = await force()
    if (answer.status !== 'unfinished') return answer.status !== 'free'
    while (answer.status === 'unfinished') answer = await force()
    await this.#sweep(key)
    return true
  }
}

/** What inspection and forced release have in common for all kinds with a fair queue. */
import { LockConnectionError } from '../errors.ts'
import type { Inspection, Parts } from '../kind.ts'
import type { scripts } from './mutex/scripts.generated.ts'
import type { LockState } from './state.ts'

/** Waiters or holders that one script call reads, at most: it bounds the time for which the call blocks the server. */
export const PAGE = 500

/** The only script that is called here; the scripts of a kind may include others. */
type ForcingScripts = Pick<typeof scripts, 'forceRelease'>

export abstract class QueuedInspection implements Inspection<LockState> {
  readonly #parts: Parts<ForcingScripts>
  readonly #sweep: (key: string) => Promise<void>

  /** `sweep`: continues the search for the next holder that a forced release has not finished. */
  constructor(parts: Parts<ForcingScripts>, sweep: (key: string) => Promise<void>) {
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
      // If one lock's keys have another type, a listing of all locks must still show the others.
      if (error instanceof LockConnectionError && /\bWRONGTYPE\b/.test((error.cause as Error).message)) return undefined
      throw error
    }
  }

  async forceRelease(key: string, only?: string): Promise<boolean> {
    const { names, newId, scripts } = this.#parts
    const request = newId()
    const force = () => scripts.run('forceRelease', names.of(key), { request, only })
    let answer = await force()
    if (answer.status !== 'unfinished') return answer.status !== 'free'
    while (answer.status === 'unfinished') answer = await force()
    await this.#sweep(key)
    return true
  }
}

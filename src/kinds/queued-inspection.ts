/** Looking at locks from outside, and taking one away, as far as it is the same for all kinds that have a fair queue. */
import { LockConnectionError } from '../errors.ts'
import type { Inspection, Parts } from '../kind.ts'
import type { scripts } from './mutex/scripts.generated.ts'
import type { LockState } from './state.ts'

/** Waiters, or holders, read by one script call: it bounds how long the server does nothing else. */
export const PAGE = 500

/** A kind may take more arguments than these. */
type ForcingScripts = Pick<typeof scripts, 'forceRelease'>

export abstract class QueuedInspection implements Inspection<LockState> {
  readonly #parts: Parts<ForcingScripts>
  readonly #sweep: (key: string) => Promise<void>

  /** `sweep`: goes on where a forced release has not come to the next waiter. */
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
      // A key of another type, where it or its queue would be, must not hide all locks from those who look.
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

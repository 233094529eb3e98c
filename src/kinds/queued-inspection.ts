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

  async *list(pattern: string): AsyncGenerator<LockState, void, undefined> {
    for await (const keys of this.#parts.list(pattern, 'hash')) {
      for (const state of await Promise.all(keys.map(key => this.#found(key)))) {
        if (state && (state.locked || state.waiters.length > 0)) yield state
      }
    }
  }

  async forceRelease(key: string): Promise<boolean> {
    const { names, newId, scripts } = this.#parts
    const request = newId()
    let answer = await scripts.run('forceRelease', names.of(key), { request })
    if (answer.status !== 'unfinished') return answer.status !== 'free'
    while (answer.status === 'unfinished') answer = await scripts.run('forceRelease', names.of(key), { request })
    await this.#sweep(key)
    return true
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
}

/** The semaphore: several owners hold permits of it at a time, as many as it has. */
import { LockError } from '../../errors.ts'
import type { Claim, KindDefinition, Parts } from '../../kind.ts'
import { QueuedKind } from '../queued-kind.ts'
import type { LockState } from '../state.ts'
import { PermitsInspection, stateOfSemaphore } from './inspection.ts'
import { namesOf, type PermitsNames } from './names.ts'
import { scripts } from './semaphore/scripts.generated.ts'

/** So many semaphores are warned about, at most. */
const MOST_WARNED = 1_000

export class Semaphore extends QueuedKind {
  readonly shared = true
  readonly reentrant = false
  readonly inTurns = false
  // Whoever waits may want another number of permits, so nothing is handed on within the client.
  protected readonly block = 0
  readonly handOff = undefined
  readonly inspection: PermitsInspection
  readonly #warn: (error: LockError) => void
  readonly #warned = new Set<string>()

  constructor(parts: Parts<typeof scripts, PermitsNames>) {
    super(parts)
    this.#warn = parts.warn
    this.inspection = new PermitsInspection(parts, stateOfSemaphore, key => this.sweep(key))
  }

  /** Each is judged by its own number, so that one can be raised while both are in use; but it may be a mistake. */
  protected override differs({ key, wants }: Claim, among: string, label: string): void {
    if (this.#warned.has(key) || this.#warned.size === MOST_WARNED) return
    this.#warned.add(key)
    const numbers = `${wants?.split('/')[1]} permits in this call, and ${among} in the call of ${label}`
    this.#warn(
      new LockError(
        'ERR_LOCK_PERMITS',
        `semaphore "${key}" has ${numbers}; each call is judged by its own number`,
        key,
      ),
    )
  }
}

export const semaphore: KindDefinition<LockState, typeof scripts, PermitsNames> = {
  name: 'semaphore',
  namesOf,
  scripts,
  make: parts => new Semaphore(parts),
}

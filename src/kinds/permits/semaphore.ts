/** The semaphore. Several owners may hold permits at a time, up to the number that it has. */
import { LockError } from '../../errors.ts'
import type { Claim, KindDefinition, Parts } from '../../kind.ts'
import { QueuedKind } from '../queued-kind.ts'
import type { LockState } from '../state.ts'
import { PermitsInspection, stateOfSemaphore } from './inspection.ts'
import { namesOf, type PermitsNames } from './names.ts'
import { scripts } from './semaphore/scripts.generated.ts'

/** A client warns about at most this many semaphores. */
const MOST_WARNED = 1_000

export class Semaphore extends QueuedKind {
  readonly shared = true
  readonly reentrant = false
  readonly inTurns = false
  // There are no hand-offs within the client, because the next waiter may want another number of permits.
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

  /**
   * Warns that a claim and a holder give different numbers of permits. Each claim is judged by its own number, so a
   * deployment can raise the number while old clients still run. But different numbers may also be a mistake.
   */
  protected override differs({ key, wants }: Claim, among: string, label: string): void {
    if (this.#warned.has(key) || this.#warned.size === MOST_WARNED) return
    this.#warned.add(key)
    const numbers = `${wants?.split('/')[1]} permits in this call, but ${among} in the call of its holder ${label}`
    this.#warn(
      new LockError(
        'ERR_LOCK_PERMITS',
        `semaphore "${key}" has ${numbers}; pass the same number in all calls, because each call is limited only by the number passed to it`,
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
